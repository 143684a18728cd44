//! Delays the end of a client's input until earlier requests are answered.
//!
//! When the input ends, the library waits only five more seconds for answers. But a script can write its requests, close
//! the input, and only then read the answers. Therefore the end is delayed here while answers are pending.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{ClientNotification, ClientRequest, JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::Notify;

/// How long to wait for the next answer after the end of input, if no call is running.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// A transport that delays the end of its input until all requests are answered.
pub(super) struct DrainedTransport<T> {
    inner: T,
    open: Arc<Open>,
    /// Returns whether a call is running and the client still reads answers.
    is_at_work: Box<dyn Fn() -> bool + Send>,
    /// Called when the input ends, to stop subscriptions.
    at_end: Box<dyn Fn() + Send>,
    has_ended: bool,
}

/// Requests that are not answered yet.
#[derive(Default)]
struct Open {
    ids: Mutex<Ids>,
    changed: Notify,
}

#[derive(Default)]
struct Ids {
    /// Requests from the client.
    asked: HashSet<RequestId>,
    /// Requests to the client.
    questions: HashSet<RequestId>,
}

impl Open {
    fn ids(&self) -> MutexGuard<'_, Ids> {
        // No statement leaves the state half-changed, so a poisoned lock is usable.
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an incoming message.
    fn came(&self, message: &RxJsonRpcMessage<RoleServer>) {
        let mut ids = self.ids();
        match message {
            // A subscription is answered only when it ends, so the end of the input is not delayed until then.
            JsonRpcMessage::Request(it)
                if matches!(it.request, ClientRequest::SubscriptionsListenRequest(_)) => {}
            JsonRpcMessage::Request(it) => drop(ids.asked.insert(it.id.clone())),
            JsonRpcMessage::Response(it) => drop(ids.questions.remove(&it.id)),
            JsonRpcMessage::Error(it) => drop(it.id.as_ref().map(|id| ids.questions.remove(id))),
            JsonRpcMessage::Notification(it) => {
                // A cancelled request gets no answer.
                if let ClientNotification::CancelledNotification(it) = &it.notification
                    && let Some(id) = &it.params.request_id
                {
                    ids.asked.remove(id);
                }
            }
        }
    }
}

impl<T> DrainedTransport<T> {
    /// While `is_at_work` returns true, the end of the input is delayed without a time limit.
    pub(super) fn new(
        inner: T,
        is_at_work: impl Fn() -> bool + Send + 'static,
        at_end: impl Fn() + Send + 'static,
    ) -> Self {
        let (is_at_work, at_end) = (Box::new(is_at_work), Box::new(at_end));
        Self { inner, open: Arc::default(), is_at_work, at_end, has_ended: false }
    }

    /// Takes an open request to the client, and makes an error response to it. The client cannot respond any more, because
    /// the input has ended. `None` if no such request is open.
    fn unheard(&self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let mut ids = self.open.ids();
        let id = ids.questions.iter().next().cloned()?;
        ids.questions.remove(&id);
        Some(JsonRpcMessage::error(ErrorData::internal_error("the client closed its end", None), Some(id)))
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for DrainedTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(it) => Some(it.id.clone()),
            JsonRpcMessage::Error(it) => it.id.clone(),
            JsonRpcMessage::Request(it) => {
                self.open.ids().questions.insert(it.id.clone());
                self.open.changed.notify_one();
                None
            }
            JsonRpcMessage::Notification(_) => None,
        };
        let (sending, open) = (self.inner.send(message), Arc::clone(&self.open));
        async move {
            let sent = sending.await;
            if let Some(id) = answered {
                open.ids().asked.remove(&id);
                open.changed.notify_one();
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        if !self.has_ended {
            if let Some(message) = self.inner.receive().await {
                self.open.came(&message);
                return Some(message);
            }
            self.has_ended = true;
            (self.at_end)();
        }
        loop {
            if let Some(unheard) = self.unheard() {
                return Some(unheard);
            }
            if self.open.ids().asked.is_empty() {
                return None;
            }
            let changed = tokio::time::timeout(ANSWER_TIMEOUT, self.open.changed.notified()).await;
            if changed.is_err() && !(self.is_at_work)() {
                return None;
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use rmcp::model::{ElicitRequestParams, ElicitationSchema, ServerRequest, ServerResult};
    use rmcp::transport::async_rw::AsyncRwTransport;

    use super::*;

    type Scripted = DrainedTransport<AsyncRwTransport<RoleServer, &'static [u8], tokio::io::Sink>>;

    const INPUT: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"tools/list"}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
"#;

    /// A transport from which all messages of the input were received.
    async fn read() -> Scripted {
        let mut transport =
            DrainedTransport::new(AsyncRwTransport::new(INPUT, tokio::io::sink()), || true, || ());
        for _ in 0..4 {
            transport.receive().await.expect("there is more");
        }
        transport
    }

    /// Polls once, without waiting.
    fn now(transport: &mut Scripted) -> Poll<Option<RxJsonRpcMessage<RoleServer>>> {
        pin!(transport.receive()).poll(&mut Context::from_waker(Waker::noop()))
    }

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
    }

    async fn answer(transport: &mut Scripted, id: i64) {
        let answer = JsonRpcMessage::response(ServerResult::empty(()), RequestId::Number(id));
        transport.send(answer).await.unwrap();
    }

    #[test]
    fn the_input_ends_when_everything_is_answered_or_cancelled() {
        run(async {
            let mut transport = read().await;
            assert!(now(&mut transport).is_pending());
            answer(&mut transport, 3).await;
            assert!(now(&mut transport).is_pending());
            answer(&mut transport, 1).await;
            assert!(matches!(now(&mut transport), Poll::Ready(None)));
        });
    }

    #[test]
    fn a_closed_client_answers_no_question() {
        run(async {
            let mut transport = read().await;
            assert!(now(&mut transport).is_pending());
            let question = ElicitRequestParams::FormElicitationParams {
                meta: None,
                message: "Sure?".to_owned(),
                requested_schema: ElicitationSchema::builder().build().unwrap(),
            };
            let question = ServerRequest::ElicitRequest(rmcp::model::ElicitRequest::new(question));
            transport.send(JsonRpcMessage::request(question, RequestId::Number(9))).await.unwrap();
            let Poll::Ready(Some(heard)) = now(&mut transport) else { panic!("the question is answered") };
            assert_eq!(heard.into_error().and_then(|it| it.1), Some(RequestId::Number(9)));
            assert!(now(&mut transport).is_pending());
        });
    }
}
