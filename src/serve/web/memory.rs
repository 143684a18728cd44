//! Caches answers about all plans, because several browsers and pages request the same answer after a save.
//!
//! An answer is reused while the commit of the index, the claim records and the configuration are the same. The
//! daemon must also confirm that this commit contains every finished change. An answer is reused only for a short time,
//! because claims lapse and steps become stale.

use std::sync::{Arc, Mutex, PoisonError};

use crate::api::context::{Context, Reading};
use crate::api::daemon::Freshness;
use crate::api::error::Error;
use crate::plan::time::Time;
use crate::store::leases::Leases;

/// The largest number of cached answers.
const MOST: usize = 24;

/// How many seconds, at most, an answer is cached. During this time, the answer can miss that a process has ended, or that a
/// file of another working tree has changed.
const HOLDS: i64 = 5;

/// The cached answers, the newest last.
#[derive(Debug)]
pub(super) struct Memory<T>(Mutex<Vec<Kept<T>>>);

#[derive(Debug)]
struct Kept<T> {
    key: String,
    state: String,
    at: Time,
    until: Time,
    value: Arc<T>,
}

impl<T> Default for Memory<T> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<T> Memory<T> {
    /// Returns the cached answer for this key, or else makes a new one. Concurrent requests wait for each other, so that
    /// the answer is made only once. If it is not known that the index is current, each request makes its own answer.
    pub(super) fn get(
        &self,
        context: &Context,
        key: &str,
        make: impl FnOnce() -> Result<T, Error>,
    ) -> Result<Arc<T>, Error> {
        // A poisoned lock is usable, because no statement leaves the list half-changed.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(state) = state(context) else {
            drop(kept);
            return make().map(Arc::new);
        };
        let is_right =
            |it: &&Kept<T>| it.key == key && it.state == state && (it.at..it.until).contains(&context.now);
        if let Some(found) = kept.iter().find(is_right) {
            return Ok(Arc::clone(&found.value));
        }
        let value = Arc::new(make()?);
        let end = context.now.plus_seconds(HOLDS);
        let leases = Leases::of(context);
        // `first_end` considers only the leases that were read before. This call reads them.
        leases.claims_at_work(0);
        let until = leases.first_end().map_or(end, |it| it.min(end));
        kept.retain(|it| it.key != key && it.state == state);
        if kept.len() >= MOST {
            kept.remove(0);
        }
        kept.push(Kept { key: key.to_owned(), state, at: context.now, until, value: Arc::clone(&value) });
        Ok(value)
    }
}

/// What an answer depends on in addition to the time. `None` if the plans are read without the index, or if it is not known
/// that the index is current.
fn state(context: &Context) -> Option<String> {
    let (Freshness::Attested(daemon), Reading::Index) = (&context.freshness, context.reading) else {
        return None;
    };
    let records = Leases::of(context).fingerprint();
    Some(format!("{} {records} {:?}", daemon.commit()?, context.config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;
    use crate::ops::claim::{ClaimRequest, claim};

    #[test]
    fn an_answer_is_made_again_when_a_lease_ends_or_after_a_few_seconds() {
        let machine = Machine::with(&[("/plans/p/plan.md", "# P\n"), ("/plans/p/step-1.md", "# S\n")]);
        let request = ClaimRequest { lease: Some(60), ..ClaimRequest::default() };
        claim(&Context::on_model(&machine), &request).unwrap();
        let memory = Memory::default();
        let made_at = |seconds: i64| {
            let mut context = Context::on_model(&machine);
            context.reading = Reading::Index;
            context.freshness = Freshness::Attested(Box::new(|| "71".parse().ok()));
            context.now = context.now.plus_seconds(seconds);
            *memory.get(&context, "status", || Ok(seconds)).unwrap()
        };
        assert_eq!([0, 4, 5, 9, 10, 58, 59, 60, 64].map(made_at), [0, 0, 5, 5, 10, 58, 58, 60, 60]);
    }
}
