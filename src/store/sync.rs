//! Claims that hold on all machines: the protocol between this clone and the registry that its team shares.
//!
//! `state` stores this clone's records, `seen` compares listings, `claiming` creates, removes and renews records, `moved`
//! handles steps that get another id, `ending` fences the end of work, `settling` finishes interrupted changes, and `merged`
//! finds records whose work is on the shared branch.
//!
//! # Who holds a step
//! Between machines, the record at the registry decides who holds a step. On one machine, the lease decides
//! (`store::leases`). A claim is first made on this machine, then at the registry. If the registry has
//! another clone's record that has not lapsed, the claim on this machine is undone. Work ends at the registry first, then
//! in the step's file, so the end of the work is refused if its record was taken over.
//!
//! # Without an answer
//! A claim, its end, its removal and its move to another step id are stored in this clone before they are sent. A
//! change without an answer stays *unsettled*: the next `claim`, `run` or `sync` settles it.

pub(crate) mod claiming;
pub(crate) mod ending;
pub(crate) mod foreign;
pub(crate) mod local;
pub(crate) mod merged;
pub(crate) mod moved;
pub(crate) mod seen;
pub(crate) mod settling;
pub(crate) mod state;
#[cfg(test)]
pub(crate) mod tests;

use std::time::Duration;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::sync_config::{ClaimsAt, SyncConfig};
use crate::disk::{self, Head};
use crate::git::{Git, GitError, RemoteError};
use crate::plan::id::StepId;
use crate::store::registry::git_refs::{GitRefs, LOCAL_BRANCH};
use crate::store::registry::record::{NewRecord, Record, State};
use crate::store::registry::{Answer, Change, ClaimRegistry, Name, RegistryError, Revision, Together, Value};

use seen::Seen;
use state::{Last, OwnRecord, SyncState};

/// The hint of `remote-unreachable` if there was no answer. `claim` adds what it can do without one.
pub(crate) const TRY_LATER: &str = "try again later";

/// The maximum number of attempts at a change whose record changes meanwhile.
const TRIES: usize = 4;

/// The shortest ttl, in seconds, of a record that only its owner's commands renew.
const TTL: i64 = 4 * 60 * 60;

/// The shortest ttl, in seconds, of a record that a running process renews.
const RENEWED_TTL: i64 = 15 * 60;

/// The content of the record that describes the registry.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Description {
    pub(crate) v: u32,
    pub(crate) id: String,
    pub(crate) claims: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) branch: Option<String>,
}

/// This clone's side of the protocol.
pub(crate) struct Sync<'a> {
    pub(crate) context: &'a Context,
    pub(crate) config: SyncConfig,
    pub(crate) state: SyncState,
    registry: Box<dyn ClaimRegistry>,
    /// The repository, and the URL of the remote; none in tests with another registry.
    pub(crate) remote: Option<(Git, String)>,
    host: String,
}

#[cfg(feature = "postgres")]
fn database(context: &Context, url: &str, id: &str) -> Result<Box<dyn ClaimRegistry>, Error> {
    use crate::store::registry::postgres::Postgres;
    let login = &context.here.database;
    let url = login.url.as_deref().unwrap_or(url);
    let registry = Postgres::new(url, id, login, context.plans.disk()).map_err(|why| {
        let hint = "correct `claims` of [sync] in planwatch.toml, or PLANWATCH_CLAIMS_URL";
        Error::conflict("claims-url", why, hint)
    })?;
    Ok(Box::new(registry))
}

#[cfg(not(feature = "postgres"))]
fn database(_: &Context, _: &str, _: &str) -> Result<Box<dyn ClaimRegistry>, Error> {
    let message = "this build of planwatch cannot store claims in a database";
    let hint = "build it with `--features postgres`; published binaries have this feature";
    Err(Error::conflict("registry-unknown", message, hint))
}

/// The result of a change of this clone's own record.
#[derive(Debug)]
pub(crate) enum Pushed {
    Done,
    /// Another clone has claimed the step, or has ended it. The text says who did so, for people.
    Lost(String),
    /// The registry did not confirm the change: it did not answer or it refused, or an error occurred on this machine.
    /// The change is stored, and tried again later.
    Unsettled(RegistryError),
}

pub(crate) struct Looked {
    pub(crate) seen: Seen,
    /// The record that describes the registry is missing.
    pub(crate) is_unnamed: bool,
}

impl<'a> Sync<'a> {
    /// Returns `None` if claims are not shared with other machines.
    pub(crate) fn of(context: &'a Context) -> Result<Option<Self>, Error> {
        context.config.sync.clone().map(|it| Self::configured(context, it)).transpose()
    }

    /// Like [`Self::of`], with a configuration that need not be in `planwatch.toml` yet.
    pub(crate) fn configured(context: &'a Context, config: SyncConfig) -> Result<Self, Error> {
        let Some(state) = SyncState::configured(context, &config) else {
            return Err(GitError::NotARepository { path: context.plans.root().display().to_string() }.into());
        };
        let git = Git::at(context.plans.root())?;
        let url = url_of(&git, &config.remote)?;
        let registry: Box<dyn ClaimRegistry> = match &config.claims {
            ClaimsAt::Refs(namespace) => {
                Box::new(GitRefs::new(git.clone(), url.clone(), *namespace, config.branch.clone()))
            }
            ClaimsAt::Url(url) => database(context, url, &config.id)?,
        };
        Ok(Self { context, config, state, registry, remote: Some((git, url)), host: disk::host_name() })
    }

    /// Like [`ClaimRegistry::prepare`].
    pub(crate) fn prepare(&self) -> Result<(), Error> {
        self.registry.prepare().map_err(|it| self.error(&it))
    }

    /// Like [`ClaimRegistry::watch`].
    pub(crate) fn watch(&self, on_change: Box<dyn Fn() + Send + std::marker::Sync>) -> bool {
        self.registry.watch(on_change)
    }

    /// Like [`Self::of`]; an error if claims are not shared.
    pub(crate) fn required(context: &'a Context) -> Result<Self, Error> {
        Self::of(context)?.ok_or_else(|| {
            let message = "claims are not shared with other machines yet";
            Error::conflict("sync-not-set-up", message, "`planwatch sync init` sets up the sharing")
        })
    }

    #[cfg(test)]
    pub(crate) fn with(context: &'a Context, registry: Box<dyn ClaimRegistry>, host: &str) -> Self {
        let (config, state) = (context.config.sync.clone().unwrap(), SyncState::of(context).unwrap());
        Self { context, config, state, registry, remote: None, host: host.to_owned() }
    }

    /// Lists the records, and stores the listing.
    pub(crate) fn look(&self) -> Result<Looked, Error> {
        self.list().map_err(|it| self.error(&it))
    }

    fn list(&self) -> Result<Looked, RegistryError> {
        let local = |it: Error| RegistryError::Local(it.to_string());
        let alone = self.state.lock_listing().map_err(local)?;
        let before = self.state.seen();
        let listed = self.registry.list();
        if listed.is_ok() && !self.registry.lists_branch() {
            self.fetch_branch()?;
        }
        let last = match &listed {
            Ok(_) => Last { at: Some(self.context.now.whole_seconds()), error: None },
            Err(error) => Last { error: Some(error.to_string()), ..self.state.last() },
        };
        self.state.put_last(&last).map_err(local)?;
        let listed = listed?;
        let description = listed.iter().find(|it| it.name == Name::registry()).cloned();
        if let Some(text) = description.as_ref().and_then(|it| it.body.as_deref()) {
            self.check_registry(text)?;
        }
        let seen = before.after(&self.config.id, listed, &state::now(self.context));
        self.state.put_seen(&before, &seen).map_err(local)?;
        drop(alone);
        Ok(Looked { seen, is_unnamed: description.is_none() })
    }

    fn fetch_branch(&self) -> Result<(), RegistryError> {
        let Some(((git, url), branch)) = self.remote.as_ref().zip(self.config.branch.as_ref()) else {
            return Ok(());
        };
        git.fetch_refs(url, &[format!("+refs/heads/{branch}:{LOCAL_BRANCH}{branch}")]).or_else(not_fetched)
    }

    /// Marks each ended record of another clone if the remote no longer has the branch that the record names.
    pub(crate) fn note_branches(&self) -> Result<(), Error> {
        let Some((git, url)) = &self.remote else { return Ok(()) };
        let before = self.state.seen();
        let branch =
            |it: &seen::Sighting| it.record.as_ref().filter(|it| it.state.has_ended())?.branch.clone();
        let mut names: Vec<_> = before.records.values().filter_map(branch).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return Ok(());
        }
        let Ok(there) = git.remote_has(url, &names) else { return Ok(()) };
        let gone: Vec<_> = names.into_iter().zip(there).filter(|it| !it.1).map(|it| it.0).collect();
        let mut seen = before.clone();
        for sighting in seen.records.values_mut() {
            let is_own = |it: &Record| self.state.all_own().iter().any(|own| own.claim == it.id);
            let is_foreign = sighting.record.as_ref().is_some_and(|it| !is_own(it));
            sighting.is_branch_gone = is_foreign && branch(sighting).is_some_and(|it| gone.contains(&it));
        }
        self.state.put_seen(&before, &seen)
    }

    /// Refuses a registry with another id: two clones that use different registries would not see each other's claims.
    fn check_registry(&self, text: &str) -> Result<(), RegistryError> {
        let named: Option<Description> = serde_json::from_str(text).ok();
        match named {
            Some(it) if it.id == self.config.id => Ok(()),
            _ => Err(RegistryError::Local(DIFFERS.to_owned())),
        }
    }

    /// Writes the record that describes the registry, if it is missing.
    pub(crate) fn name_registry(&self) -> Result<(), Error> {
        let (id, claims, branch) =
            (self.config.id.clone(), self.config.claims_text(), self.config.branch.clone());
        let description = Description { v: 1, id, claims, branch };
        let body = serde_json::to_string(&description).unwrap_or_default();
        let named = self
            .registry
            .value(body, record_ttl(0, true))
            .and_then(|new| self.registry.change_one(Change::Create { name: Name::registry(), new }));
        match named.map_err(|it| self.error(&it))? {
            Answer::Done => Ok(()),
            Answer::Refused(why) => Err(self.error(&RegistryError::Refused(why))),
            Answer::Lost | Answer::NotTried => Err(self.error(&RegistryError::Local(DIFFERS.to_owned()))),
        }
    }

    /// Sends the wanted change of `own` to the registry. `others` are changes of other records, sent with the first
    /// attempt.
    pub(crate) fn push(&self, mut own: OwnRecord, others: &[Change]) -> Result<Pushed, Error> {
        self.state.put(&own)?;
        let mut changes = others.to_vec();
        for _ in 0..TRIES {
            let Some(change) = own.change() else {
                self.state.put_confirmed(own, state::now(self.context))?;
                return Ok(Pushed::Done);
            };
            if let Some(other) = self.ended_by_another(&own, &change)? {
                self.lose(own)?;
                return Ok(Pushed::Lost(other));
            }
            changes.insert(0, change);
            let answers = self.registry.change(&changes, Together::Each);
            if let Ok(answers) = &answers {
                self.note_removed(&changes[1..], &answers[1..])?;
            }
            changes.clear();
            match answers.map(|it| it.into_iter().next()) {
                Ok(Some(Answer::Done)) => {
                    self.state.put_confirmed(own, state::now(self.context))?;
                    return Ok(Pushed::Done);
                }
                Ok(Some(Answer::Refused(why))) => return Ok(Pushed::Unsettled(RegistryError::Refused(why))),
                Ok(_) => {}
                Err(error) => return Ok(Pushed::Unsettled(error)),
            }
            let seen = match self.list() {
                Ok(looked) => looked.seen,
                Err(error) => return Ok(Pushed::Unsettled(error)),
            };
            if let Some(lost) = adopt(&mut own, &seen) {
                self.lose(own)?;
                return Ok(lost);
            }
            self.state.put(&own)?;
        }
        Ok(Pushed::Unsettled(RegistryError::Changing))
    }

    /// Deletes a record if it has this value. Returns false if it has another value.
    pub(crate) fn delete(&self, name: &Name, old: &Revision) -> Result<bool, Error> {
        let change = Change::Delete { name: name.clone(), old: old.clone() };
        match self.registry.change_one(change).map_err(|it| self.error(&it))? {
            Answer::Done => Ok(true),
            Answer::Lost | Answer::NotTried => Ok(false),
            Answer::Refused(why) => Err(self.error(&RegistryError::Refused(why))),
        }
    }

    /// Makes changes of any clone's records, each independently, and returns how many were made. A change that fails is
    /// not tried again.
    pub(crate) fn change_others(&self, changes: &[Change]) -> Result<usize, Error> {
        let answers = self.registry.change(changes, Together::Each).map_err(|it| self.error(&it))?;
        self.note_removed(changes, &answers)?;
        Ok(answers.into_iter().filter(|it| *it == Answer::Done).count())
    }

    /// Forgets this clone's records that were removed because they are no longer needed.
    fn note_removed(&self, changes: &[Change], answers: &[Answer]) -> Result<(), Error> {
        for (change, answer) in changes.iter().zip(answers) {
            let Change::Delete { name, old } = change else { continue };
            let own = self.state.own_of(name).filter(|_| *answer == Answer::Done);
            if own.is_some_and(|it| it.held.is_some_and(|it| it.revision == *old)) {
                self.state.remove(name)?;
            }
        }
        Ok(())
    }

    fn value(&self, record: &Record) -> Result<Value, Error> {
        self.registry.value(record.body(), record.ttl).map_err(|it| self.error(&it))
    }

    fn new_record(&self, claim: &claiming::LocalClaim<'_>) -> Result<Record, Error> {
        let branch = self.head();
        Ok(Record::new(&NewRecord {
            step: claim.step,
            id: claim.id,
            by: claim.by,
            host: &self.host,
            branch: branch.as_deref(),
            at: self.context.now,
            ttl: record_ttl(claim.lease, claim.is_renewed),
            is_renewed: claim.is_renewed,
            nonce: self.nonce()?,
            state: State::Claimed,
        }))
    }

    /// The branch that is checked out; `None` for a detached HEAD.
    fn head(&self) -> Option<String> {
        match self.context.plans.head(&self.state.worktree) {
            Head::Branch(name) => Some(name),
            Head::Detached => None,
        }
    }

    fn nonce(&self) -> Result<u128, Error> {
        let mut bytes = [0; 16];
        self.context.plans.random(&mut bytes)?;
        Ok(u128::from_le_bytes(bytes))
    }

    /// Waits for a random time between zero and `most`.
    pub(crate) fn pause(&self, most: Duration) {
        let mut byte = [0];
        self.context.plans.random(&mut byte).ok();
        self.context.plans.disk().pause(most * u32::from(byte[0]) / 255);
    }

    pub(crate) fn error(&self, error: &RegistryError) -> Error {
        match (&self.config.claims, error) {
            (ClaimsAt::Refs(_), _) => Self::error_at(&self.config.remote, error),
            (ClaimsAt::Url(_), RegistryError::BranchNotFetched { .. }) => {
                Self::error_of(&of_remote(&self.config.remote), "check your access to it", error)
            }
            (ClaimsAt::Url(_), _) => {
                let hint = "check its URL, your password and the rights of the role";
                Self::error_of("the claims database", hint, error)
            }
        }
    }

    /// The error of a registry at a git remote.
    pub(crate) fn error_at(remote: &str, error: &RegistryError) -> Error {
        let hint = "check your access to it; claims need the right to push";
        Self::error_of(&of_remote(remote), hint, error)
    }

    /// `place` is what was contacted. `access` is the hint for a refusal.
    fn error_of(place: &str, access: &str, error: &RegistryError) -> Error {
        match error {
            RegistryError::Unreachable(why)
            | RegistryError::Unanswered(why)
            | RegistryError::BranchNotFetched { why, is_refusal: false } => {
                Error::conflict("remote-unreachable", format!("{place} does not answer: {why}"), TRY_LATER)
            }
            RegistryError::Changing => Error::conflict(
                "remote-unreachable",
                format!("the record at {place} changed during each of {TRIES} attempts"),
                "try again",
            ),
            RegistryError::Refused(why) | RegistryError::BranchNotFetched { why, is_refusal: true } => {
                Error::conflict("remote-refused", format!("{place} refuses: {why}"), access)
            }
            RegistryError::Local(why) if why == DIFFERS => Error::conflict(
                "registry-differs",
                format!("the registry at {place} is not the one that [sync] in planwatch.toml names"),
                "get the current planwatch.toml, for example with `git pull`",
            ),
            RegistryError::Local(why) => Error::failed("git-failed", why.clone(), ""),
        }
    }
}

/// It is no error if the remote does not have the branch.
fn not_fetched(error: RemoteError) -> Result<(), RegistryError> {
    Err(match error {
        RemoteError::NoRef => return Ok(()),
        RemoteError::Silent(why) => RegistryError::BranchNotFetched { why, is_refusal: false },
        RemoteError::Refused(why) => RegistryError::BranchNotFetched { why, is_refusal: true },
        RemoteError::Git(error) => RegistryError::Local(error.to_string()),
    })
}

fn of_remote(remote: &str) -> String {
    format!("the remote `{remote}`")
}

const DIFFERS: &str = "registry-differs";

/// Stores the registry's value in `own` if it is a value of this clone. If the registry does not have the record, sets
/// `own.held` to `None`. If the value is another clone's or cannot be read, returns the loss of the record.
fn adopt(own: &mut OwnRecord, seen: &Seen) -> Option<Pushed> {
    let Some(sighting) = seen.records.get(&own.name) else {
        own.held = None;
        forget_source(own);
        return None;
    };
    let is_ours = |it: &Record| it.id == own.claim || own.was.as_ref() == Some(&it.id);
    match sighting.record.as_ref().filter(|it| is_ours(it)) {
        Some(record) => {
            own.held = Some(held_value(&sighting.revision, record));
            forget_source(own);
            None
        }
        None => Some(Pushed::Lost(settling::holder(sighting.record.as_ref()))),
    }
}

pub(crate) fn held_value(revision: &Revision, record: &Record) -> Value {
    Value { revision: revision.clone(), body: record.body(), ttl: record.ttl }
}

fn forget_source(own: &mut OwnRecord) {
    if let Some(state::Wanted::Value { from, .. }) = &mut own.wanted {
        *from = None;
    }
}

/// The ttl of a record, in seconds. `lease` is in seconds, too.
pub(crate) fn record_ttl(lease: i64, is_renewed: bool) -> i64 {
    use crate::store::registry::record::{LONGEST_TTL, SHORTEST_TTL};
    lease.max(if is_renewed { RENEWED_TTL } else { TTL }).clamp(SHORTEST_TTL, LONGEST_TTL)
}

/// The URL of a remote of this clone.
pub(crate) fn url_of(git: &Git, remote: &str) -> Result<String, Error> {
    git.push_url(remote)?.ok_or_else(|| {
        let message = format!("this clone has no remote `{remote}`");
        Error::conflict("no-remote", message, "`git remote add NAME URL` adds one")
    })
}

/// The steps with a claim that a running process of another clone renews.
pub(crate) fn renewed_elsewhere(context: &Context) -> Vec<StepId> {
    let Some(state) = SyncState::of(context) else { return Vec::new() };
    let own: Vec<_> = state.all_own().into_iter().map(|it| it.claim).collect();
    let seen =
        state.seen().records.into_iter().filter(|(name, it)| name.is_in(state.dir()) && !it.has_lapsed);
    let records = seen.filter_map(|(_, it)| it.record);
    let is_theirs = |it: &Record| it.state == State::Claimed && it.is_renewed && !own.contains(&it.id);
    records.filter(is_theirs).filter_map(|it| it.step_id()).collect()
}
