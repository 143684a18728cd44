//! The state after the last listing: the records, when each value was first listed, and which records have lapsed.
//!
//! Clocks of machines differ, so no time of another machine is compared. A record has lapsed if two listings show the
//! same value and are at least the record's ttl apart, by this machine's monotonic clock. After a restart of the
//! machine, the measurement starts again. A registry with a clock decides itself which records have lapsed. A record of
//! ended work never lapses.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::store::registry::record::{Record, State};
use crate::store::registry::{Listed, Name, Revision};

/// A moment by this machine's monotonic clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Moment {
    /// Identifies the machine's start; `None` if that is unknown, and then no times are compared.
    pub(crate) boot: Option<String>,
    pub(crate) ms: u64,
}

impl Moment {
    /// The time since an earlier moment; `None` if the machine was restarted in between, or if its start is unknown.
    pub(crate) fn since(&self, earlier: &Self) -> Option<Duration> {
        let is_same = self.boot.is_some() && self.boot == earlier.boot;
        is_same.then(|| self.ms.checked_sub(earlier.ms)).flatten().map(Duration::from_millis)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sighting {
    #[serde(rename = "oid")]
    pub(crate) revision: Revision,
    /// `None` if it cannot be read.
    pub(crate) record: Option<Record>,
    /// When this value was first listed since the machine's start.
    pub(crate) first: Moment,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) has_lapsed: bool,
    /// The branch that the record names is no longer at the remote.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) is_branch_gone: bool,
}

fn is_false(it: &bool) -> bool {
    !it
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// The id of the registry.
    pub(crate) registry: String,
    pub(crate) records: BTreeMap<Name, Sighting>,
}

/// A change between two listings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeenChange {
    pub(crate) record: Record,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Claimed,
    Released,
    Ended(State),
    Lapsed,
}

impl Seen {
    /// The next state, after a listing.
    pub(crate) fn after(&self, registry: &str, listed: Vec<Listed>, now: &Moment) -> Self {
        let same = (self.registry == registry).then_some(&self.records);
        let claims = listed.into_iter().filter(|it| it.name.is_claim());
        let records = claims.map(|it| {
            let before = same.and_then(|all| all.get(&it.name)).filter(|old| old.revision == it.revision);
            (it.name.clone(), sighting(it, before, now))
        });
        Self { registry: registry.to_owned(), records: records.collect() }
    }

    /// What changed since an earlier state.
    pub(crate) fn changes_since(&self, earlier: &Self) -> Vec<SeenChange> {
        let is_same = self.registry == earlier.registry;
        let before = |name: &Name| earlier.records.get(name).filter(|_| is_same);
        let mut changes = Vec::new();
        for (name, now) in &self.records {
            let Some(record) = now.record.clone() else { continue };
            let old = before(name).and_then(|it| Some((it, it.record.as_ref()?)));
            let what = match old {
                Some((_, old)) if old.id == record.id && old.state != record.state => match record.state {
                    State::Claimed => Some(What::Claimed),
                    state => Some(What::Ended(state)),
                },
                Some((was, old)) if old.id == record.id => {
                    (now.has_lapsed && !was.has_lapsed).then_some(What::Lapsed)
                }
                _ if record.state == State::Claimed => Some(What::Claimed),
                _ => Some(What::Ended(record.state)),
            };
            changes.extend(what.map(|what| SeenChange { record, what }));
        }
        let gone = earlier.records.iter().filter(|(name, _)| is_same && !self.records.contains_key(name));
        let released = gone.filter_map(|(_, it)| it.record.clone().filter(|it| it.state == State::Claimed));
        changes.extend(released.map(|record| SeenChange { record, what: What::Released }));
        changes
    }
}

fn sighting(listed: Listed, before: Option<&Sighting>, now: &Moment) -> Sighting {
    let record = listed.body.as_deref().and_then(|it| Record::read(&listed.name, it));
    let first = before.map(|it| &it.first).filter(|it| it.boot.is_some() && it.boot == now.boot);
    let first = first.unwrap_or(now).clone();
    let has_lapsed = match (&record, listed.standing) {
        (Some(record), _) if record.state.has_ended() => false,
        (_, Some(standing)) => standing.has_lapsed,
        (Some(record), None) => {
            let ttl = Duration::from_secs(u64::try_from(record.ttl).unwrap_or(u64::MAX));
            before.is_some_and(|it| it.has_lapsed) || now.since(&first).is_some_and(|it| it >= ttl)
        }
        // A record whose ttl cannot be read does not lapse, unless the registry has a clock.
        (None, None) => false,
    };
    let is_branch_gone = before.is_some_and(|it| it.is_branch_gone);
    Sighting { revision: listed.revision, record, first, has_lapsed, is_branch_gone }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::id::read_step_id;
    use crate::store::registry::Standing;
    use crate::store::registry::record::NewRecord;

    const HOUR: u64 = 3_600_000;

    fn moment(boot: &str, ms: u64) -> Moment {
        Moment { boot: (!boot.is_empty()).then(|| boot.to_owned()), ms }
    }

    fn listed(nonce: u128, state: State) -> Listed {
        let step = read_step_id("p:1").unwrap();
        let new = NewRecord {
            step: &step,
            id: "g0000001",
            by: "ann",
            host: "h",
            branch: None,
            at: "2026-11-21T12:00:00Z".parse().unwrap(),
            ttl: 3600,
            is_renewed: false,
            nonce,
            state,
        };
        let body = Some(Record::new(&new).body());
        Listed { name: Name::of("plans", &step), revision: Revision(nonce.to_string()), body, standing: None }
    }

    fn look(seen: &Seen, listed: Vec<Listed>, now: &Moment) -> Seen {
        seen.after("id", listed, now)
    }

    fn has_lapsed(seen: &Seen) -> bool {
        seen.records.values().any(|it| it.has_lapsed)
    }

    #[test]
    fn a_value_lapses_when_two_listings_a_ttl_apart_show_it() {
        // The nonce and the moment (the machine's start and the milliseconds) of each listing, and whether the record
        // has lapsed after the last listing.
        type Listings = &'static [(u128, &'static str, u64)];
        let table: [(Listings, bool); 8] = [
            (&[(1, "a", 0)], false),
            (&[(1, "a", 5 * HOUR)], false),
            (&[(1, "a", 0), (1, "a", HOUR - 1)], false),
            (&[(1, "a", 0), (1, "a", HOUR)], true),
            (&[(1, "a", 0), (2, "a", HOUR)], false),
            (&[(1, "a", 0), (1, "b", 2 * HOUR)], false),
            (&[(1, "a", 0), (1, "b", 0), (1, "b", HOUR)], true),
            (&[(1, "", 0), (1, "", 2 * HOUR)], false),
        ];
        for (listings, expected) in table {
            let seen = listings.iter().fold(Seen::default(), |seen, (nonce, boot, ms)| {
                look(&seen, vec![listed(*nonce, State::Claimed)], &moment(boot, *ms))
            });
            assert_eq!(has_lapsed(&seen), expected, "{listings:?}");
        }
        // An ended record does not lapse, and the stored listing of another registry is ignored.
        let ended = || vec![listed(1, State::Completed)];
        assert!(!has_lapsed(&look(
            &look(&Seen::default(), ended(), &moment("a", 0)),
            ended(),
            &moment("a", 9 * HOUR)
        )));
        let open = || vec![listed(1, State::Claimed)];
        let other = Seen::default().after("other", open(), &moment("a", 0));
        assert!(!has_lapsed(&look(&other, open(), &moment("a", 9 * HOUR))));
    }

    #[test]
    fn a_registry_with_a_clock_decides_itself() {
        for has_lapsed in [true, false] {
            let standing = Some(Standing { age: Duration::from_secs(1), has_lapsed });
            let listed = Listed { standing, ..listed(1, State::Claimed) };
            let seen = look(&Seen::default(), vec![listed], &moment("", 0));
            assert_eq!(self::has_lapsed(&seen), has_lapsed);
        }
    }

    #[test]
    fn changes_are_reported_once() {
        let (a, b) = (moment("a", 0), moment("a", HOUR));
        let none = Seen::default().after("id", Vec::new(), &a);
        let claimed = look(&none, vec![listed(1, State::Claimed)], &a);
        let what = |now: &Seen, then: &Seen| {
            now.changes_since(then).into_iter().map(|it| it.what).collect::<Vec<_>>()
        };
        assert_eq!(what(&claimed, &none), [What::Claimed]);
        assert_eq!(what(&claimed, &claimed), []);
        let renewed = look(&claimed, vec![listed(2, State::Claimed)], &b);
        assert_eq!(what(&renewed, &claimed), []);
        let lapsed = look(&claimed, vec![listed(1, State::Claimed)], &b);
        assert_eq!(what(&lapsed, &claimed), [What::Lapsed]);
        let ended = look(&claimed, vec![listed(3, State::Failed)], &b);
        assert_eq!(what(&ended, &claimed), [What::Ended(State::Failed)]);
        assert_eq!(what(&none, &claimed), [What::Released]);
        assert_eq!(what(&none, &ended), []);
        let unreadable = Listed { body: Some("{".to_owned()), ..listed(4, State::Claimed) };
        let unreadable = look(&none, vec![unreadable], &a);
        assert_eq!(what(&unreadable, &none), []);
        assert_eq!(unreadable.records.len(), 1);
    }
}
