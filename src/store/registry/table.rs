//! The rules that every registry must follow, as a table of changes by two clients with the expected answers.
//!
//! A registry passes if [`check`] passes with two clients of one empty registry.

use super::{Answer, Change, ClaimRegistry, Listed, Name, Revision, Together, Value};
use crate::plan::id::read_step_id;

/// Two clients of one registry.
struct Trial<'a> {
    one: &'a dyn ClaimRegistry,
    other: &'a dyn ClaimRegistry,
}

fn name(step: &str) -> Name {
    Name::of("plans", &read_step_id(step).unwrap())
}

fn value(registry: &dyn ClaimRegistry, text: &str) -> Value {
    let body = format!("{{\"v\":1,\"nonce\":\"{text}\"}}");
    let value = registry.value(body.clone(), 3600).unwrap();
    assert_eq!((&value.body, value.ttl), (&body, 3600));
    // The same value can be made again after a crash.
    assert_eq!(registry.value(body, 3600).unwrap(), value);
    value
}

fn create(step: &str, new: &Value) -> Change {
    Change::Create { name: name(step), new: new.clone() }
}

fn replace(step: &str, old: &Value, new: &Value) -> Change {
    Change::Replace { name: name(step), old: old.revision.clone(), new: new.clone(), is_take_over: false }
}

fn delete(step: &str, old: &Value) -> Change {
    Change::Delete { name: name(step), old: old.revision.clone() }
}

fn listed(registry: &dyn ClaimRegistry) -> Vec<(String, Revision, Option<String>)> {
    let all = registry.list().unwrap().into_iter();
    let mut all: Vec<_> =
        all.map(|Listed { name, revision, body, .. }| (name.to_string(), revision, body)).collect();
    all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    all
}

impl Trial<'_> {
    fn each(&self) {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|it| value(self.one, it));
        let table: [(&dyn ClaimRegistry, Change, Answer, &str); 16] = [
            (self.one, create("p:1", &a), Answer::Done, "created"),
            (self.one, create("p:1", &a), Answer::Done, "the same value again, after a lost answer"),
            (self.other, create("p:1", &b), Answer::Lost, "another value of a record that exists"),
            (self.other, replace("p:1", &b, &c), Answer::Lost, "a value that it never had"),
            (self.one, replace("p:1", &a, &c), Answer::Done, "replaced"),
            (self.one, replace("p:1", &a, &c), Answer::Done, "the same again"),
            (self.other, replace("p:1", &a, &d), Answer::Lost, "the second of two take-overs"),
            (self.one, delete("p:1", &a), Answer::Lost, "a deletion that expects a replaced value"),
            (self.other, delete("p:2", &a), Answer::Done, "deleted, and there is none"),
            (self.one, delete("p:1", &c), Answer::Done, "deleted"),
            (self.one, delete("p:1", &c), Answer::Done, "the same again"),
            (self.other, replace("p:1", &c, &d), Answer::Lost, "replaced after it was deleted"),
            (self.other, create("p:1", &d), Answer::Done, "created again"),
            (self.one, create("p:1.5", &a), Answer::Done, "beside it"),
            (self.one, delete("p:1.5", &a), Answer::Done, "and removed"),
            (self.other, delete("p:1", &d), Answer::Done, "empty again"),
        ];
        for (client, change, expected, what) in table {
            let made = self.one_of(client, &change);
            assert_eq!(made, expected, "{what}: {change:?}");
        }
        assert_eq!(listed(self.one), []);
    }

    fn one_of(&self, client: &dyn ClaimRegistry, change: &Change) -> Answer {
        // As in normal use, a client sends only values that it has built itself.
        if let Change::Create { new, .. } | Change::Replace { new, .. } = change {
            client.value(new.body.clone(), new.ttl).unwrap();
        }
        client.change_one(change.clone()).unwrap()
    }

    fn together(&self) {
        let [a, b, c] = ["e", "f", "g"].map(|it| value(self.one, it));
        let both = [create("p:1", &a), create("q:1", &b)];
        assert_eq!(self.one.change(&both, Together::AllOrNone).unwrap(), [Answer::Done, Answer::Done]);
        let some = [create("p:1", &c), create("r:1", &c)];
        let answers = self.one.change(&some, Together::AllOrNone).unwrap();
        assert!(answers.iter().all(|it| *it != Answer::Done), "{answers:?}");
        assert_eq!(listed(self.other).len(), 2, "nothing was changed");
        assert_eq!(self.one.change(&some, Together::Each).unwrap(), [Answer::Lost, Answer::Done]);
        let all = [delete("p:1", &a), delete("q:1", &b), delete("r:1", &c)];
        assert_eq!(
            self.one.change(&all, Together::Each).unwrap(),
            [Answer::Done, Answer::Done, Answer::Done]
        );
        assert_eq!(self.one.change(&[], Together::Each).unwrap(), []);
    }

    fn lists(&self) {
        let [a, b] = ["h", "i"].map(|it| value(self.one, it));
        let made = [create("p:1", &a), create("a b:2.5", &b)];
        self.one.change(&made, Together::Each).unwrap();
        let of =
            |step: &str, it: &Value| (name(step).to_string(), it.revision.clone(), Some(it.body.clone()));
        let mut expected = [of("p:1", &a), of("a b:2.5", &b)];
        expected.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(listed(self.other), expected);
        assert_eq!(listed(self.one), expected);
        self.one.change(&[delete("p:1", &a), delete("a b:2.5", &b)], Together::Each).unwrap();
        assert_eq!(listed(self.other), [], "what was deleted is not listed any more");
    }
}

/// Checks a registry with two clients. If `is_shared` is false, they are clients of different registries, and only
/// their separation is checked.
pub(crate) fn check(one: &dyn ClaimRegistry, other: &dyn ClaimRegistry, is_shared: bool) {
    let trial = Trial { one, other };
    if !is_shared {
        let a = value(one, "a");
        assert_eq!(one.change_one(create("p:1", &a)).unwrap(), Answer::Done);
        assert_eq!(listed(other), []);
        return;
    }
    trial.each();
    trial.together();
    trial.lists();
}
