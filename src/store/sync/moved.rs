//! The records of claimed steps that get other ids, for example by `move`.
//!
//! A clone that does not have the move yet knows the step by its earlier id. Therefore the record under that id stays,
//! beside the one under the present id. All records of a claim are renewed, ended and removed together, and if another
//! clone takes over one of them, the claim is lost. A record under an earlier id is removed when the shared branch has
//! the move (`merged`).

use std::collections::HashSet;

use super::state::{OwnRecord, SyncState, Wanted};
use super::{Pushed, Sync, ending};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::id::StepId;
use crate::store::registry::{Answer, Change, Name, Together};

/// After steps got new ids, writes this clone's records of these steps under the new ids, in one change.
pub(crate) fn moved(context: &Context, moves: &[(StepId, StepId)]) {
    let Some(state) = SyncState::of(context) else { return };
    let moves = moves.iter().filter(|(from, to)| from != to && state.has_own(from));
    let own = |(from, to): &(StepId, StepId)| Some((state.own(from).filter(|it| !it.is_lost)?, to.clone()));
    let owns: Vec<_> = moves.filter_map(own).collect();
    if owns.is_empty() {
        return;
    }
    let moved = Sync::of(context).and_then(|it| it.map_or(Ok(true), |it| it.move_records(&owns)));
    let failed = match moved {
        Ok(true) => return,
        Ok(false) => "its record could not be moved".to_owned(),
        Err(error) => error.to_string(),
    };
    owns.iter().for_each(|(_, to)| ending::unsettled(context, to, &failed));
}

impl Sync<'_> {
    /// Writes records of moved steps under the new ids. Returns false if the registry did not make the changes.
    pub(super) fn move_records(&self, owns: &[(OwnRecord, StepId)]) -> Result<bool, Error> {
        let taken: HashSet<_> = owns.iter().map(|(_, to)| self.state.name_of(to)).collect();
        let mut all = Vec::new();
        for (own, to) in owns {
            all.extend(self.moved(own, to, &taken)?);
        }
        self.state.put_all(&all)?;
        let sent: Vec<_> = all.into_iter().filter(|it| it.change().is_some()).collect();
        let changes: Vec<Change> = sent.iter().filter_map(OwnRecord::change).collect();
        let answers = self.registry.change(&changes, Together::AllOrNone).map_err(|it| self.error(&it))?;
        if answers.iter().any(|it| *it != Answer::Done) {
            return Ok(false);
        }
        let now = super::state::now(self.context);
        sent.into_iter().try_for_each(|it| self.state.put_confirmed(it, now.clone()))?;
        Ok(true)
    }

    /// Writes the claim `new`, which has replaced `before`, into the records under earlier ids of the step.
    pub(super) fn inherit(&self, before: &OwnRecord, new: &OwnRecord) -> Result<Pushed, Error> {
        for own in self.state.inherited(before, new) {
            let Some(id) = &own.under else { continue };
            let own = OwnRecord { wanted: self.wanted(new, id, &new.step)?, ..own };
            match self.push(own, &[])? {
                Pushed::Done => {}
                other => return Ok(other),
            }
        }
        Ok(Pushed::Done)
    }

    /// If `id` is an earlier id of a moved step, creates the moved step's record under `id` again, unless this clone has a
    /// record under `id`. The record may be missing because another step that got this id replaced it with its own.
    pub(super) fn restore_earlier(&self, id: &StepId) -> Result<(), Error> {
        let name = self.state.name_of(id);
        let is_main = |it: &OwnRecord| it.under.is_none() && !it.is_lost && it.earlier.contains(id);
        for main in self.state.all_own().into_iter().filter(is_main) {
            if self.state.own_of(&name).is_some() {
                break;
            }
            let (under, wanted) = (Some(id.clone()), self.wanted(&main, id, &main.step)?);
            let (name, held, earlier) = (name.clone(), None, Vec::new());
            self.push(OwnRecord { name, under, wanted, held, earlier, file: None, was: None, ..main }, &[])?;
        }
        Ok(())
    }

    /// The records of a moved step: the one under its new id, and those under its earlier ids. `taken` contains the
    /// names of the records under the new ids of all moved steps. An earlier id with such a name gets no record.
    fn moved(&self, own: &OwnRecord, to: &StepId, taken: &HashSet<Name>) -> Result<Vec<OwnRecord>, Error> {
        let mut all = Vec::new();
        for id in own.earlier.iter().chain([&own.step]).filter(|it| !taken.contains(&self.state.name_of(it)))
        {
            let there = self.state.own_of(&self.state.name_of(id)).filter(|it| it.claim == own.claim);
            let Some(there) = there else { continue };
            let (step, under, wanted) = (to.clone(), Some(id.clone()), self.wanted(own, id, to)?);
            all.push(OwnRecord { step, under, wanted, earlier: Vec::new(), file: None, ..there });
        }
        let name = self.state.name_of(to);
        // Another step that had this id before may have left a record.
        let there = self.state.own_of(&name).filter(|it| !it.is_lost);
        let (held, was) = there.map(|it| (it.held, it.claim)).unzip();
        let (held, wanted, writer) = (held.flatten(), self.wanted(own, to, to)?, None);
        let mut earlier = own.earlier.clone();
        earlier.push(own.step.clone());
        earlier.retain(|it| it != to);
        // The file under the earlier id no longer exists, so it cannot be restored.
        let (step, file) = (to.clone(), None);
        all.push(OwnRecord { name, step, earlier, held, wanted, was, writer, file, ..own.clone() });
        Ok(all)
    }

    /// The value that the claim's record under this id should get; `None` if the claim has no value yet, as after a
    /// claim with `--offline`.
    fn wanted(&self, own: &OwnRecord, id: &StepId, now: &StepId) -> Result<Option<Wanted>, Error> {
        let Some(record) = own.record() else { return Ok(None) };
        let record = record.again(record.state, self.context.now, self.nonce()?).of_step(id, now);
        Ok(Some(Wanted::Value { value: self.value(&record)?, from: None }))
    }

    /// Notes that another clone has taken a claim over, and removes the other records of the claim.
    pub(super) fn lose(&self, own: OwnRecord) -> Result<(), Error> {
        let siblings = self.state.siblings(&own);
        let gone = siblings.iter().filter_map(|it| {
            let old = it.held.as_ref()?.revision.clone();
            Some(Change::Delete { name: it.name.clone(), old })
        });
        // If there is no answer, the records lapse, because they are no longer renewed.
        let gone: Vec<_> = gone.collect();
        if !gone.is_empty() {
            self.registry.change(&gone, Together::Each).ok();
        }
        let must_be_taken_back = own.must_be_taken_back;
        for it in siblings.into_iter().chain([own]) {
            match it.under {
                Some(_) => self.state.remove(&it.name)?,
                None => self.state.put(&OwnRecord {
                    is_lost: true,
                    wanted: None,
                    is_offline: false,
                    must_be_taken_back,
                    ..it
                })?,
            }
        }
        Ok(())
    }
}
