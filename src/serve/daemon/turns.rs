//! The turns of the event loop. Each turn waits for a message or a deadline, and uses one context.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::serve::daemon::messages::Message;

pub(crate) struct Turns<'a> {
    receiver: Receiver<Message>,
    pub(crate) make_context: &'a dyn Fn() -> Result<Context, Error>,
    /// The context of this turn, created on first use.
    context: OnceCell<Rc<Context>>,
}

impl<'a> Turns<'a> {
    pub(crate) fn new(
        receiver: Receiver<Message>,
        make_context: &'a dyn Fn() -> Result<Context, Error>,
    ) -> Self {
        Self { receiver, make_context, context: OnceCell::new() }
    }

    /// Begins a turn: waits for a message, at most until the deadline.
    pub(crate) fn begin(&mut self, deadline: Option<Instant>) -> Option<Message> {
        let message = match deadline {
            None => self.receiver.recv().ok(),
            Some(at) => self.receiver.recv_timeout(at.saturating_duration_since(Instant::now())).ok(),
        };
        self.context.take();
        message
    }

    /// Returns the next message that has already arrived.
    pub(crate) fn next_message(&self) -> Option<Message> {
        self.receiver.try_recv().ok()
    }

    pub(crate) fn now(&self) -> Result<Rc<Context>, Error> {
        if let Some(context) = self.context.get() {
            return Ok(Rc::clone(context));
        }
        let context = Rc::new(self.fresh_context()?);
        Ok(Rc::clone(self.context.get_or_init(|| context)))
    }

    /// Creates a context that never creates `.planwatch`.
    pub(crate) fn fresh_context(&self) -> Result<Context, Error> {
        let context = (self.make_context)()?;
        Ok(Context { plans: context.plans.only_looking(), ..context })
    }
}
