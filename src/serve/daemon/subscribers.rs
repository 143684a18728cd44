//! The receivers of changes: the observer, the feed, and clients that follow events through the socket.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use crate::plan::id::PlanId;
use crate::serve::daemon::api::Observer;
use crate::serve::daemon::dirty_notices::DirtyNotices;
use crate::serve::daemon::feed::Feed;
use crate::serve::daemon::listener::SocketRequest;
use crate::serve::ipc::event::{Event, Notification};
use crate::serve::ipc::protocol::{Answer, Request};

pub(crate) struct Subscribers<'a> {
    pub(crate) observer: &'a mut dyn Observer,
    pub(crate) feed: Option<Feed>,
    pub(crate) followers: Vec<SocketRequest>,
    pub(crate) notices: DirtyNotices,
}

impl<'a> Subscribers<'a> {
    pub(crate) fn new(observer: &'a mut dyn Observer, feed: Option<Feed>) -> Self {
        Self { observer, feed, followers: Vec::new(), notices: DirtyNotices::default() }
    }

    /// Records that a plan is changing; `None` means that any plan may be changing.
    pub(crate) fn mark_dirty(&mut self, plan: Option<PlanId>) {
        self.notices.mark(plan);
    }

    pub(crate) fn send_dirty_notices(&mut self) {
        for plan in self.notices.take(Instant::now()) {
            let answer = Answer::Changed { plan: plan.as_ref().map(|it| it.as_str().to_owned()) };
            self.followers
                .retain(|it| it.request != Request::Changes || it.reply.try_send(answer.clone()).is_ok());
            self.observer.changed(plan.as_ref());
            if let Some(feed) = &self.feed {
                feed.publish(Notification::Changed { plan });
            }
        }
    }

    /// Sends an event; returns whether the observer continues. Followers that read too slowly are disconnected.
    pub(crate) fn send(&mut self, event: &Event) -> ControlFlow<()> {
        if let Some(feed) = &self.feed {
            feed.publish(Notification::Event(Arc::new(event.clone())));
        }
        let json = event.to_json();
        self.followers.retain(|it| it.reply.try_send(Answer::Event { event: json.clone() }).is_ok());
        self.observer.event(event)
    }

    pub(crate) fn end(&mut self, why: &str) {
        self.observer.ending();
        for follower in self.followers.drain(..) {
            follower.close(Answer::End { why: why.to_owned() });
        }
    }
}
