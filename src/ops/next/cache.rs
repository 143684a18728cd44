//! What `next` of all plans answered, kept for whoever asks next.
//!
//! The answer hangs on what the files say, on the claims that are recorded beside them, on the configuration and on the
//! time. The files are the index's of one commit; that it holds all that they say now is for a watching process to know
//! (`context::DaemonClient`). The rest is compared here. Where a look had to ask anything more (processes, other working
//! trees, branches), where a claim may lapse soon, and where nobody watches, nothing is kept. So what is told is so at the
//! moment of the question, as if the plans had been read; a law compares the two.
//!
//! Only the first candidates are kept, of which people are told; whoever wants all has them made anew.

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

/// The name of the record.
const NAME: &str = "next";

/// What answers are made by; another number where they are made, or kept, in another way.
const FORM: u32 = 1;

/// The digits of a hash.
const HASH: usize = 64;

/// How many candidates are kept.
pub(super) const FEW: usize = 10;

/// For how many seconds at most an answer is kept: until then no claim lapses by its own time stamp.
const HOLDS: i64 = 600;

/// An answer and what it was made from.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    reader: String,
    commit: String,
    /// As [`Leases::stand`] has it.
    records: String,
    at: Time,
    /// From then on time alone may make it another one.
    until: Time,
    state: String,
    step: Option<StepShape>,
    why: String,
    candidates: Vec<(StepShape, String)>,
    n_candidates: usize,
}

/// What was found, or what is needed to keep what a look finds.
pub(super) enum Asked {
    Kept(Box<NextReport>),
    /// The commit of the index that is known to be right, if anybody knows one, and the records before anything was read.
    Look(Option<Generation>, Records),
}

/// As [`Leases::stand`] has it; none where nothing may be kept.
pub(super) struct Records(Option<String>);

/// Asks whether an answer that was kept is one to this question, for no more than so many candidates.
pub(super) fn ask(context: &Context, most: Option<usize>) -> Asked {
    let (Freshness::Attested(witness), Reading::Index) = (&context.freshness, context.reading) else {
        return Asked::Look(None, Records(None));
    };
    let records = Leases::of(context).stand();
    let is_few = most.is_some_and(|it| it <= FEW);
    let kept = is_few.then(|| read(context)).flatten().filter(|it| it.holds(context, &records));
    let commit = witness.commit();
    let is_right = |it: &Kept| commit.is_some_and(|commit| commit.to_string() == it.commit);
    match kept.filter(is_right).and_then(Kept::report) {
        Some(report) => Asked::Kept(Box::new(report)),
        None => Asked::Look(commit, Records(Some(records))),
    }
}

/// Reads what is kept; behind its hash, because nothing else shows that it is damaged.
fn read(context: &Context) -> Option<Kept> {
    let bytes = context.plans.memos()?.get(NAME)?;
    let (hash, kept) = bytes.split_at_checked(HASH)?;
    let is_whole = hash == blake3::hash(kept).to_hex().as_bytes();
    is_whole.then(|| serde_json::from_slice(kept).ok()).flatten()
}

fn write(context: &Context, kept: &[u8]) {
    if let Some(Ok(Some(memos))) = context.plans.memos().map(|it| it.try_lock()) {
        let hash = blake3::hash(kept).to_hex();
        memos.put(NAME, &[hash.as_bytes(), kept].concat()).ok();
    }
}

/// Keeps what was found in this commit, if it may be told again.
pub(super) fn keep(
    context: &Context,
    Records(records): Records,
    commit: Option<Generation>,
    (leases, plans): (&Leases<'_>, &Plans),
    report: &NextReport,
) {
    let (Some(records), Some(commit)) = (records, commit) else { return };
    let until = context.now.plus_seconds(HOLDS);
    // Who wants all candidates finds no others than are kept.
    if read(context).is_some_and(|it| it.holds(context, &records) && it.commit == commit.to_string()) {
        return;
    }
    if leases.asked_more() || !plans.is_steady(context.now, until) {
        return;
    }
    let candidates = report.candidates.as_deref().unwrap_or_default();
    let few = candidates.iter().take(FEW).map(|it| (it.step.clone(), it.why.clone()));
    let kept = Kept {
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
    let Ok(bytes) = serde_json::to_vec(&kept) else { return };
    // Numbers of the user's own that would not come back as they are: such an answer is made anew each time.
    let again = serde_json::from_slice::<Kept>(&bytes).and_then(|it| serde_json::to_vec(&it));
    if again.is_ok_and(|it| it == bytes) {
        write(context, &bytes);
    }
}

impl Kept {
    /// Whether all is as it was but, perhaps, the files.
    fn holds(&self, context: &Context, records: &str) -> bool {
        self.reader == reader_of(context)
            && self.records == records
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

/// What lets two processes read and judge the same files in the same way.
fn reader_of(context: &Context) -> String {
    let Context { config, .. } = context;
    let how = (FORM, env!("CARGO_PKG_VERSION"), &config.words, config.max_attempts(), context.root_name());
    blake3::hash(format!("{how:?}").as_bytes()).to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests;
