//! A registry in memory, for tests. It can simulate lost answers, lost requests, an unreachable registry, and a
//! registry with a clock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{
    Answer, Change, ClaimRegistry, Listed, Name, RegistryError, Revision, Standing, Together, Value,
};

/// What happens to the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Unreachable,
    /// The call is carried out, but its answer is lost.
    AnswerLost,
    /// The request is lost.
    RequestLost,
}

#[derive(Debug, Default)]
struct Inside {
    records: BTreeMap<Name, (Value, i64)>,
    faults: Vec<Fault>,
    now: i64,
    has_clock: bool,
    n_calls: usize,
}

/// A client; its copies are clients of the same registry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory(Arc<Mutex<Inside>>);

impl Memory {
    pub(crate) fn with_clock() -> Self {
        let memory = Self::default();
        memory.0.lock().unwrap().has_clock = true;
        memory
    }

    /// Each of the next calls gets one of these faults, in this order.
    pub(crate) fn fail(&self, faults: &[Fault]) {
        self.0.lock().unwrap().faults = faults.iter().rev().copied().collect();
    }

    pub(crate) fn wait(&self, seconds: i64) {
        self.0.lock().unwrap().now += seconds;
    }

    pub(crate) fn calls(&self) -> usize {
        self.0.lock().unwrap().n_calls
    }
}

impl Inside {
    fn has_lapsed(&self, name: &Name) -> bool {
        self.records.get(name).is_some_and(|(value, seen)| self.now - seen > value.ttl)
    }

    fn may(&self, change: &Change) -> bool {
        let is = |name: &Name, old: &Revision| self.records.get(name).is_some_and(|it| it.0.revision == *old);
        match change {
            Change::Create { name, new } => !self.records.contains_key(name) || is(name, &new.revision),
            Change::Replace { name, old, new, is_take_over } => {
                let may_take = !*is_take_over || !self.has_clock || self.has_lapsed(name);
                is(name, &new.revision) || is(name, old) && may_take
            }
            Change::Delete { name, old } => !self.records.contains_key(name) || is(name, old),
        }
    }

    fn make(&mut self, change: &Change) {
        match change {
            Change::Create { name, new } | Change::Replace { name, new, .. } => {
                self.records.insert(name.clone(), (new.clone(), self.now));
            }
            Change::Delete { name, .. } => drop(self.records.remove(name)),
        }
    }
}

impl ClaimRegistry for Memory {
    fn value(&self, body: String, ttl: i64) -> Result<Value, RegistryError> {
        let revision = Revision(blake3::hash(body.as_bytes()).to_hex().to_string());
        Ok(Value { revision, body, ttl })
    }

    fn change(&self, changes: &[Change], together: Together) -> Result<Vec<Answer>, RegistryError> {
        let mut inside = self.0.lock().unwrap();
        inside.n_calls += 1;
        let fault = inside.faults.pop();
        match fault {
            Some(Fault::Unreachable) => return Err(RegistryError::Unreachable("cut off".to_owned())),
            Some(Fault::RequestLost) => return Err(RegistryError::Unanswered("cut".to_owned())),
            _ => {}
        }
        let may: Vec<_> = changes.iter().map(|it| inside.may(it)).collect();
        let is_all = may.iter().all(|it| *it);
        let mut answers = Vec::new();
        for (change, may) in changes.iter().zip(may) {
            answers.push(match (may, together) {
                (false, _) => Answer::Lost,
                (true, Together::AllOrNone) if !is_all => Answer::NotTried,
                (true, _) => {
                    inside.make(change);
                    Answer::Done
                }
            });
        }
        match fault {
            Some(Fault::AnswerLost) => Err(RegistryError::Unanswered("cut".to_owned())),
            _ => Ok(answers),
        }
    }

    fn list(&self) -> Result<Vec<Listed>, RegistryError> {
        let mut inside = self.0.lock().unwrap();
        inside.n_calls += 1;
        if inside.faults.pop().is_some() {
            return Err(RegistryError::Unreachable("cut off".to_owned()));
        }
        let all = inside.records.iter().map(|(name, (value, seen))| {
            let age = Duration::from_secs(u64::try_from(inside.now - seen).unwrap_or(0));
            let standing = Standing { age, has_lapsed: inside.has_lapsed(name) };
            Listed {
                name: name.clone(),
                revision: value.revision.clone(),
                body: Some(value.body.clone()),
                standing: inside.has_clock.then_some(standing),
            }
        });
        Ok(all.collect())
    }
}

#[test]
fn the_registry_in_memory_passes_the_table() {
    super::table::check(&Memory::default(), &Memory::default(), false);
    let one = Memory::default();
    super::table::check(&one, &one.clone(), true);
    let one = Memory::with_clock();
    super::table::check(&one, &one.clone(), true);
}
