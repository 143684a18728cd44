//! The queue of a process that claims for others, kept from one claim to the next.
//!
//! Such a process is told in which plans anything has happened since it asked last, so that nothing else need be looked at.
//! Of the plans from which the queue's steps come it remembers what was in their files. As long as nothing has
//! happened but in those, what happened there is what it did itself, and the records of claims are as they were, the queue
//! is what a look would find now. Anything else is a reason to look again, as in [`super::kept`].

use std::collections::{BTreeSet, HashMap, HashSet};

use super::candidates::{self, KEPT, Ready};
use super::queue_cache::{self, Basis, Stand};
use crate::api::context::Context;
use crate::index::Key;
use crate::plan::model::Plan;
use crate::plan::plans::Plans;
use crate::plan::rules;
use crate::plan::time::Time;
use crate::store::claims::LONG_LEASE;
use crate::store::leases::Leases;
use crate::store::load;

/// The directories of live plans in which anything has happened since this was asked last, everything included that was
/// finished before; none: that is not known.
pub(crate) type Since<'a> = &'a dyn Fn() -> Option<BTreeSet<String>>;

/// What is kept.
#[derive(Debug, Default)]
pub struct Resident {
    standing: Option<Standing>,
}

/// A queue with what it was made from.
#[derive(Debug)]
struct Standing {
    /// Who reads the same files in another way finds another queue.
    surroundings: String,
    basis: Basis,
    /// The files of the plans from which the steps come, by their directories, sorted by path.
    files: HashMap<String, Vec<Noted>>,
    /// The paths of steps that were claimed since.
    claimed: HashSet<String>,
}

/// A file as a queue was made from it: path, hash, and when it was modified, unless that does not matter.
type Noted = (String, String, Option<Time>);

impl Resident {
    /// Lists the steps that are ready, in the order in which they are handed out, as [`candidates::look`] does.
    ///
    /// With it comes whether it was kept, so that a look may find more behind its end. None: nobody tells what has
    /// happened, and whoever asks has to look by other means.
    pub(crate) fn queue(
        &mut self,
        context: &Context,
        surroundings: &str,
        since: Since<'_>,
    ) -> Option<(Vec<Ready>, bool)> {
        let standing = self.standing.take().filter(|it| it.surroundings == surroundings);
        let seen = since()?;
        let still = standing.and_then(|mut it| it.still(context, &seen).map(|queue| (it, queue)));
        let still = still.filter(|(_, queue)| !queue.is_empty());
        let is_kept = still.is_some();
        let (standing, queue) = match still {
            Some((standing, queue)) => (Some(standing), queue),
            None => look(context, surroundings),
        };
        self.standing = standing;
        Some((queue, is_kept))
    }

    /// Notes that this process has claimed a step, and the hash of what its file holds by that.
    ///
    /// A claim with a lease that is shorter than a queue is kept ends it.
    pub(crate) fn claimed(&mut self, path: &str, hash: &str, lease: i64) {
        if lease < LONG_LEASE {
            self.standing = None;
        }
        self.standing = self.standing.take().and_then(|it| it.with_claimed(path, hash));
    }
}

fn directory(path: &str) -> &str {
    path.split_once('/').map_or(path, |it| it.0)
}

fn look(context: &Context, surroundings: &str) -> (Option<Standing>, Vec<Ready>) {
    let leases = Leases::of(context);
    let listed = leases.listed(&|_| true);
    let plans = load::as_filed_for_now(context);
    let begun = queue_cache::appeared(&listed, leases.listed(&|_| false));
    let plans = leases.tell_hopefully(plans);
    let turns: Vec<_> = rules::in_turn(&plans, context.now, |_| true).take(KEPT).collect();
    let queue = turns.iter().map(|it| candidates::ready(&plans, it.step)).collect();
    let is_steady = plans.is_steady(context.now, context.now.plus_seconds(queue_cache::HOLDS));
    let basis = is_steady.then(|| Basis::of(&leases, context.now, (listed, begun), &turns)).flatten();
    let standing = basis.map(|basis| {
        let files = files_of(&plans, &basis);
        Standing { surroundings: surroundings.to_owned(), basis, files, claimed: HashSet::new() }
    });
    drop(turns);
    load::let_go(plans);
    (standing, queue)
}

/// What was read of the plans from which a queue's steps come.
fn files_of(plans: &Plans, basis: &Basis) -> HashMap<String, Vec<Noted>> {
    let names: HashSet<_> = basis.steps.iter().map(|it| directory(&it.path)).collect();
    let is_asked = |it: &&Plan| names.contains(directory(&it.path));
    let files = |plan: &Plan| {
        let steps = plan.steps.iter().map(|it| (&it.path, &it.etag, it.modified));
        let all = steps.chain([(&plan.path, &plan.etag, plan.modified)]);
        let noted = |(path, etag, modified): (&String, &Option<String>, _)| {
            etag.as_ref().map(|etag| (path.clone(), etag.clone(), modified))
        };
        let mut all: Vec<_> = all.filter_map(noted).collect();
        all.sort();
        (directory(&plan.path).to_owned(), all)
    };
    plans.live().filter(is_asked).map(files).collect()
}

/// Whether files are as they were noted. Of steps without a date the older one goes first, so their age counts.
fn is_same(noted: &[Noted], now: &[(String, String, Time)]) -> bool {
    let is_one = |((path, hash, at), now): (&Noted, &(String, String, Time))| {
        *path == now.0 && *hash == now.1 && at.is_none_or(|it| it == now.2)
    };
    noted.len() == now.len() && noted.iter().zip(now).all(is_one)
}

impl Standing {
    /// The queue as it is now; none: only a look can tell.
    fn still(&mut self, context: &Context, seen: &BTreeSet<String>) -> Option<Vec<Ready>> {
        let recorded = self.basis.recorded(context)?;
        let is_as_noted = |name: &String| {
            let key = Key { is_archived: false, name: name.clone() };
            let (noted, now) = (self.files.get(name), load::hashes_in(context, &key));
            noted.zip(now).is_some_and(|(noted, now)| is_same(noted, &now))
        };
        if !seen.iter().all(is_as_noted) {
            return None;
        }
        let stand = |it: &queue_cache::Kept| match self.claimed.contains(&it.path) {
            true => Some(Stand::Claimed),
            false => it.stand_untouched(&recorded),
        };
        let stands: Option<Vec<_>> = self.basis.steps.iter().map(stand).collect();
        self.basis.left(&stands?)
    }

    /// What is so with this claim; none if its step is none of the queue.
    fn with_claimed(mut self, path: &str, hash: &str) -> Option<Self> {
        let file = self.files.get_mut(directory(path))?.iter_mut().find(|it| it.0 == path)?;
        (file.1, file.2) = (hash.to_owned(), None);
        self.claimed.insert(path.to_owned());
        Some(self)
    }
}
