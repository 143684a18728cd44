//! The last answer of `next` for all plans, cached in the daemon's memory.
//!
//! The answer depends on the files, the claim records, the configuration and the time. The daemon reports which commit of
//! the index matches the current files. This module compares the other inputs. An answer is not cached if it depends on
//! anything else (processes, other working trees, branches) or if a claim that has no record on this machine lapses soon. If
//! a recorded claim may lapse soon, the answer is cached only until then. So a cached answer equals a new one; a test
//! compares the two. Without a daemon, nothing is cached.
//!
//! Only the first [`FEW`] candidates are cached. If a request asks for more candidates, the answer is computed each time.

use serde::{Deserialize, Serialize};

use super::{Candidate, NextReport};
use crate::api::context::{Context, Reading};
use crate::api::daemon::Freshness;
use crate::api::views::StepShape;
use crate::index::Generation;
use crate::plan::plans::Plans;
use crate::plan::rules::State;
use crate::plan::time::Time;
use crate::store::leases::Leases;

/// The version of the format of [`Cached`].
const FORM: u32 = 1;

pub(super) const FEW: usize = 10;

/// The maximum number of seconds for which an answer is cached. If a claim has no record on this machine, the time stamp
/// in its step's file decides when it lapses. If such a claim lapses within this number of seconds, the answer is not
/// cached at all.
const HOLDS: i64 = 600;

/// An answer and its cache key.
#[derive(Debug, Serialize, Deserialize)]
struct Cached {
    reader: String,
    commit: String,
    /// The result of [`Leases::fingerprint`].
    records: String,
    at: Time,
    /// From this time on, the answer may be different although nothing was changed.
    until: Time,
    state: String,
    step: Option<StepShape>,
    why: String,
    candidates: Vec<(StepShape, String)>,
    n_candidates: usize,
}

/// The cached answer, or what is needed to cache a new one.
pub(super) enum CacheReply {
    Cached(Box<NextReport>),
    /// There is no usable cached answer. Contains the current commit of the index, if a daemon attests one, and the
    /// fingerprint of the claim records. The fingerprint is taken before the plans are read.
    Look(Option<Generation>, Records),
}

/// The result of [`Leases::fingerprint`]. `None`: the answer must not be cached.
pub(super) struct Records(Option<String>);

/// Gets the cached answer from the daemon. The answer is used only if it is current and has enough candidates.
pub(super) fn ask(context: &Context, most: Option<usize>) -> CacheReply {
    let (Freshness::Attested(daemon), Reading::Index) = (&context.freshness, context.reading) else {
        return CacheReply::Look(None, Records(None));
    };
    let records = Leases::of(context).fingerprint();
    let (commit, cached) = daemon.commit_and_next();
    let cached = cached.and_then(|it| serde_json::from_str::<Cached>(&it).ok());
    let is_right = |it: &Cached| commit.is_some_and(|commit| it.holds(context, &records, commit));
    match cached.filter(is_right) {
        // A new answer with more candidates is not cached, because its first candidates are cached already.
        Some(_) if most.is_none_or(|it| it > FEW) => CacheReply::Look(commit, Records(None)),
        cached => match cached.and_then(Cached::report) {
            Some(report) => CacheReply::Cached(Box::new(report)),
            None => CacheReply::Look(commit, Records(Some(records))),
        },
    }
}

/// Sends the daemon the answer that was computed from this commit, if the answer may be cached.
pub(super) fn keep(
    context: &Context,
    Records(records): Records,
    commit: Option<Generation>,
    (leases, plans): (&Leases<'_>, &Plans),
    report: &NextReport,
) {
    let (Some(records), Some(commit)) = (records, commit) else { return };
    let Freshness::Attested(daemon) = &context.freshness else { return };
    let until = context.now.plus_seconds(HOLDS);
    if leases.is_uncacheable() || !plans.is_steady(context.now, until) {
        return;
    }
    let candidates = report.candidates.as_deref().unwrap_or_default();
    let few = candidates.iter().take(FEW).map(|it| (it.step.clone(), it.why.clone()));
    let cached = Cached {
        reader: reader_of(context),
        commit: commit.to_string(),
        records,
        at: context.now,
        until: leases.first_end().map_or(until, |it| it.min(until)),
        state: report.state.word().to_owned(),
        step: report.step.clone(),
        why: report.why.clone(),
        candidates: few.collect(),
        n_candidates: report.n_candidates,
    };
    let Ok(text) = serde_json::to_string(&cached) else { return };
    // The user's own keys may have numbers that change when they are written as JSON and read back. An answer with such a
    // number is not cached.
    let again = serde_json::from_str::<Cached>(&text).and_then(|it| serde_json::to_string(&it));
    if again.is_ok_and(|it| it == text) {
        daemon.cache_next(text);
    }
}

impl Cached {
    /// Whether the answer is still valid: its inputs are unchanged, and its time is not over.
    fn holds(&self, context: &Context, records: &str, commit: Generation) -> bool {
        self.reader == reader_of(context)
            && self.records == records
            && self.commit == commit.to_string()
            && (self.at..self.until).contains(&context.now)
    }

    fn report(self) -> Option<NextReport> {
        let candidate = |(step, why)| Candidate { step, why };
        Some(NextReport {
            state: State::ALL.into_iter().find(|it| it.word() == self.state)?,
            step: self.step,
            why: self.why,
            candidates: Some(self.candidates.into_iter().map(candidate).collect()),
            n_candidates: self.n_candidates,
            plan: None,
            is_archived: false,
        })
    }
}

/// A hash of what affects the answer besides the files, the claim records and the time: the version of planwatch, two values
/// of the configuration, and the name of the plans directory. The hash also covers the version of the cache's format.
fn reader_of(context: &Context) -> String {
    let Context { config, .. } = context;
    let how = (FORM, env!("CARGO_PKG_VERSION"), &config.words, config.max_attempts(), context.root_name());
    blake3::hash(format!("{how:?}").as_bytes()).to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests;
