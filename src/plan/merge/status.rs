//! Decides which side's status and claim a merged step gets.

use crate::plan::words::{PlanStatus, Status, StepStatus};

/// The side whose value is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Winner {
    Ours,
    Theirs,
}

/// Compares the attempts of the versions. Each attempt is a pair of time and outcome.
#[derive(Debug, Clone, Default)]
pub(super) struct Tries {
    /// The attempts that only OURS has.
    pub(super) ours: Vec<(String, String)>,
    /// The attempts that only THEIRS has.
    pub(super) theirs: Vec<(String, String)>,
    /// Whether OURS has attempts that the base lacks, and whether THEIRS has.
    pub(super) are_new: [bool; 2],
    /// Whether OURS lacks attempts that the base has, and whether THEIRS does. This happens, for example, if a rebase
    /// replays a commit on an older version.
    pub(super) are_older: [bool; 2],
    /// Whether the base is itself a merge, as after a criss-cross merge. Then a side that lacks attempts of the base is
    /// merely out of date and has not changed the status.
    pub(super) is_base_merged: bool,
    /// Whether both sides have the same new title, for example because both contain the same squash. Then the sides have a
    /// common version that is newer than the base.
    pub(super) are_retitled: bool,
}

/// Decides between the statuses of a step. `None`: only a person can decide.
///
/// A missing status is `pending`. If the statuses differ, an unknown word can win in only two cases: the other side has not
/// changed the status, or the side with the unknown word has all attempts of the other side and at least one more.
pub(super) fn of_step(
    base: WrittenStatus<'_>,
    ours: WrittenStatus<'_>,
    theirs: WrittenStatus<'_>,
    tries: &Tries,
) -> Option<Winner> {
    if ours.is(&theirs) {
        return Some(Winner::Ours);
    }
    let more = match (tries.ours.is_empty(), tries.theirs.is_empty()) {
        (false, true) => Some(Winner::Ours),
        (true, false) => Some(Winner::Theirs),
        _ => None,
    };
    if tries.are_retitled && more.is_some() {
        return more;
    }
    // A side with the base's status may have left that status and come back to it, as with `reopen`, or may have
    // completed the step once more.
    let went_on = |side: Winner| more == Some(side) && tries.are_new == [true, true];
    let [is_older, is_their_older] = tries.are_older;
    if ours.is(&base) && !(is_their_older && tries.is_base_merged) {
        let stays =
            went_on(Winner::Ours) || is_completed_later(&ours, &tries.ours, &tries.theirs, is_their_older);
        return Some(if stays { Winner::Ours } else { Winner::Theirs });
    }
    if theirs.is(&base) && !(is_older && tries.is_base_merged) {
        let stays =
            went_on(Winner::Theirs) || is_completed_later(&theirs, &tries.theirs, &tries.ours, is_older);
        return Some(if stays { Winner::Theirs } else { Winner::Ours });
    }
    if more.is_some() {
        return more;
    }
    let (own, other) = (ours.known()?, theirs.known()?);
    let newest = |of: &[(String, String)]| of.iter().map(|(at, _)| at.clone()).max().unwrap_or_default();
    let last = |of: &[(String, String)]| of.iter().max().map(|(_, it)| it.clone()).unwrap_or_default();
    let rank = |status: StepStatus, of: &[(String, String)]| {
        let is_completed = status == StepStatus::Completed;
        (is_completed, newest(of), last(of), how_far(status))
    };
    let wins = rank(own, &tries.ours) >= rank(other, &tries.theirs);
    Some(if wins { Winner::Ours } else { Winner::Theirs })
}

/// Whether a side completed the step after the last attempt that only the other side has. If there is no such attempt,
/// the completion counts only if the other side has an older version of the step.
fn is_completed_later(
    side: &WrittenStatus<'_>,
    own: &[(String, String)],
    other: &[(String, String)],
    is_other_older: bool,
) -> bool {
    let Some(last) = own.iter().max() else { return false };
    let is_later = other.iter().map(|(at, _)| at).max().map_or(is_other_older, |it| last.0 > *it);
    side.known() == Some(StepStatus::Completed) && last.1 == "completed" && is_later
}

/// The rank of a status if the attempts do not decide. The status with the higher rank wins.
fn how_far(status: StepStatus) -> usize {
    let order = [
        StepStatus::Pending,
        StepStatus::InProgress,
        StepStatus::Blocked,
        StepStatus::Failed,
        StepStatus::Skipped,
        StepStatus::Completed,
    ];
    order.iter().position(|it| *it == status).unwrap_or_default()
}

/// Decides between the statuses of a plan. If only one side changed the status, that side wins. Otherwise active wins
/// over draft, and completed and abandoned win over both. `None`: a person must decide, as between completed and abandoned.
pub(super) fn of_plan(
    base: Option<PlanStatus>,
    ours: Option<PlanStatus>,
    theirs: Option<PlanStatus>,
) -> Option<Winner> {
    let how_far = |status: PlanStatus| match status {
        PlanStatus::Draft => 0,
        PlanStatus::Active => 1,
        PlanStatus::Completed | PlanStatus::Abandoned => 2,
    };
    match (ours, theirs) {
        _ if ours == theirs || theirs == base => Some(Winner::Ours),
        _ if ours == base => Some(Winner::Theirs),
        (Some(ours), Some(theirs)) => match how_far(ours).cmp(&how_far(theirs)) {
            std::cmp::Ordering::Less => Some(Winner::Theirs),
            std::cmp::Ordering::Greater => Some(Winner::Ours),
            std::cmp::Ordering::Equal => None,
        },
        _ => None,
    }
}

/// A step's status as a file states it.
#[derive(Debug, Clone, Copy)]
pub(super) struct WrittenStatus<'a> {
    pub(super) word: Option<&'a str>,
    pub(super) status: Option<StepStatus>,
}

impl WrittenStatus<'_> {
    fn known(&self) -> Option<StepStatus> {
        if self.word.is_none() { Some(StepStatus::Pending) } else { self.status }
    }

    fn is(&self, other: &Self) -> bool {
        match (self.known(), other.known()) {
            (Some(one), Some(other)) => one == other,
            (None, None) => self.word == other.word,
            _ => false,
        }
    }
}

/// A claim as it is written in a step's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenClaim {
    pub(super) id: String,
    pub(super) by: Option<String>,
    pub(super) at: Option<String>,
}

/// Decides which of two claims on one step stays: the earlier one, or, if the times are equal, the one with the smaller
/// id. A claim without a time counts as the later one.
pub(super) fn of_claims(ours: &WrittenClaim, theirs: &WrittenClaim) -> Winner {
    let rank = |it: &WrittenClaim| (it.at.is_none(), it.at.clone(), it.id.clone());
    if rank(ours) <= rank(theirs) { Winner::Ours } else { Winner::Theirs }
}

/// The canonical word of a step's status, for messages.
pub(super) fn word(of: WrittenStatus<'_>) -> &str {
    match of.status {
        Some(status) => status.word(),
        None => of.word.unwrap_or("pending"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(word: &str) -> WrittenStatus<'_> {
        WrittenStatus { word: Some(word), status: crate::plan::words::Words::default().read(word) }
    }

    /// `ours` and `theirs` are all attempts of each side, as pairs of time and outcome.
    #[track_caller]
    fn check(statuses: [&str; 3], ours: &[(&str, &str)], theirs: &[(&str, &str)], winner: Option<Winner>) {
        let own = |of: &[(&str, &str)], not: &[(&str, &str)]| {
            let only = of.iter().filter(|it| !not.contains(it));
            only.map(|(at, outcome)| ((*at).to_owned(), (*outcome).to_owned())).collect()
        };
        let are_new = [!ours.is_empty(), !theirs.is_empty()];
        let (ours_only, theirs_only) = (own(ours, theirs), own(theirs, ours));
        let tries = Tries { ours: ours_only, theirs: theirs_only, are_new, ..Tries::default() };
        let [base, one, other] = statuses.map(written);
        assert_eq!(of_step(base, one, other, &tries), winner, "{statuses:?} {ours:?} {theirs:?}");
        let are_new = [are_new[1], are_new[0]];
        let turned = Tries { ours: tries.theirs, theirs: tries.ours, are_new, ..tries };
        let other_way = of_step(base, other, one, &turned);
        let mirrored = winner.map(|it| if it == Winner::Ours { Winner::Theirs } else { Winner::Ours });
        if !one.is(&other) {
            assert_eq!(other_way, mirrored, "the sides exchanged: {statuses:?} {ours:?} {theirs:?}");
        }
    }

    #[test]
    fn the_table_of_statuses() {
        use Winner::{Ours, Theirs};
        const C1: (&str, &str) = ("01", "completed");
        const F2: (&str, &str) = ("02", "failed");
        const R3: (&str, &str) = ("03", "reopened");
        const B3: (&str, &str) = ("03", "blocked");
        // Changed on one side, with and without attempts.
        check(["pending", "completed", "pending"], &[C1], &[], Some(Ours));
        check(["pending", "pending", "blocked"], &[], &[B3], Some(Theirs));
        check(["pending", "completed", "pending"], &[], &[F2], Some(Ours));
        check(["completed", "pending", "completed"], &[R3], &[], Some(Ours));
        check(["pending", "failed", "pending"], &[F2], &[B3], Some(Ours));
        // Completed once more after the other side's last attempt, or before it.
        check(["completed", "completed", "in_progress"], &[C1, ("03", "completed")], &[F2], Some(Ours));
        check(["completed", "completed", "pending"], &[("02", "completed")], &[R3], Some(Theirs));
        check(["completed", "completed", "in_progress"], &[("03", "completed")], &[], Some(Theirs));
        check(["completed", "completed", "blocked"], &[("03", "note")], &[F2], Some(Theirs));
        // The same status on both sides, even if the words differ.
        check(["pending", "done", "completed"], &[C1], &[F2], Some(Ours));
        // One side has all attempts of the other side, and more.
        check(["pending", "completed", "failed"], &[C1], &[C1, F2], Some(Theirs));
        check(["pending", "completed", "pending"], &[C1], &[C1, R3], Some(Theirs));
        check(["in_progress", "completed", "pending"], &[C1], &[C1, R3], Some(Theirs));
        // Each side has attempts that the other side lacks.
        check(["pending", "completed", "failed"], &[C1], &[F2], Some(Ours));
        check(["in_progress", "failed", "blocked"], &[F2], &[B3], Some(Theirs));
        check(["in_progress", "failed", "blocked"], &[("03", "failed")], &[B3], Some(Ours));
        // Without attempts.
        check(["failed", "in_progress", "pending"], &[], &[], Some(Ours));
        check(["pending", "skipped", "blocked"], &[], &[], Some(Ours));
        // Without attempts, an unknown word wins only if the other side has not changed the status.
        check(["pending", "reviewing", "pending"], &[], &[], Some(Ours));
        check(["pending", "reviewing", "completed"], &[], &[], None);
    }

    #[test]
    fn a_side_that_lacks_attempts_of_the_base_has_not_changed_the_status_since() {
        let [completed, failed] = ["completed", "failed"].map(written);
        let more = vec![("02".to_owned(), "completed".to_owned())];
        // The base is a merge of both sides, and theirs is the older version of the step.
        let is_base_merged = true;
        let tries =
            Tries { ours: more.clone(), are_older: [false, true], is_base_merged, ..Tries::default() };
        assert_eq!(of_step(completed, completed, failed, &tries), Some(Winner::Ours));
        let turned = Tries { theirs: more, are_older: [true, false], is_base_merged, ..Tries::default() };
        assert_eq!(of_step(completed, failed, completed, &turned), Some(Winner::Theirs));
    }

    #[test]
    fn a_completion_after_a_squash_that_both_sides_have_stays() {
        let [completed, pending] = ["completed", "pending"].map(written);
        // The squash made the step pending, without an attempt.
        let again = vec![("02".to_owned(), "completed".to_owned())];
        let tries = Tries { ours: again.clone(), are_new: [true, false], ..Tries::default() };
        assert_eq!(of_step(completed, completed, pending, &tries), Some(Winner::Theirs));
        let tries = Tries { are_retitled: true, ..tries };
        assert_eq!(of_step(completed, completed, pending, &tries), Some(Winner::Ours));
        let turned = Tries { theirs: again, are_new: [false, true], are_retitled: true, ..Tries::default() };
        assert_eq!(of_step(completed, pending, completed, &turned), Some(Winner::Theirs));
    }

    #[test]
    fn a_completion_that_the_other_side_never_had_stays() {
        let [completed, pending, failed] = ["completed", "pending", "failed"].map(written);
        // A rebase replays a second completion on a version without the first one.
        let twice = ["01", "02"].map(|at| (at.to_owned(), "completed".to_owned())).to_vec();
        let tries = Tries { theirs: twice, are_older: [true, false], ..Tries::default() };
        assert_eq!(of_step(completed, pending, completed, &tries), Some(Winner::Theirs));
        let turned = Tries { ours: tries.theirs.clone(), are_older: [false, true], ..Tries::default() };
        assert_eq!(of_step(completed, completed, pending, &turned), Some(Winner::Ours));
        // A later failure of the other side still counts.
        let own = vec![("03".to_owned(), "failed".to_owned())];
        let tries = Tries { ours: own, ..tries };
        assert_eq!(of_step(completed, failed, completed, &tries), Some(Winner::Ours));
    }

    #[test]
    fn plans_go_forward_and_contradictions_are_conflicts() {
        use PlanStatus::{Abandoned, Active, Completed, Draft};
        let decide = |base, ours, theirs| of_plan(Some(base), Some(ours), Some(theirs));
        assert_eq!(decide(Draft, Active, Completed), Some(Winner::Theirs));
        assert_eq!(decide(Draft, Abandoned, Active), Some(Winner::Ours));
        assert_eq!(decide(Completed, Active, Completed), Some(Winner::Ours));
        assert_eq!(decide(Active, Completed, Abandoned), None);
    }

    #[test]
    fn the_earlier_claim_holds_then_the_smaller_id() {
        let claim = |id: &str, at: Option<&str>| WrittenClaim {
            id: id.to_owned(),
            by: None,
            at: at.map(str::to_owned),
        };
        let of =
            |a: (&str, Option<&str>), b: (&str, Option<&str>)| of_claims(&claim(a.0, a.1), &claim(b.0, b.1));
        assert_eq!(of(("g2", Some("01")), ("g1", Some("02"))), Winner::Ours);
        assert_eq!(of(("g2", Some("01")), ("g1", Some("01"))), Winner::Theirs);
        assert_eq!(of(("g2", None), ("g1", Some("01"))), Winner::Theirs);
    }
}
