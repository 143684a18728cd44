//! The names of a run's branches: `planwatch-run/<run>/main`, where verified work is merged, and
//! `planwatch-run/<run>/<plan>/<step>`, where a worker commits.

use crate::plan::id::StepId;
use crate::store::ref_name::part;

/// The first part of the names of all branches of runs. `status --branches` and the choice of step numbers ignore these
/// branches.
const ALL: &str = "planwatch-run";

/// The last part of the name of the branch with the merged work. In the names of branches, a plan with this name is escaped.
const MAIN: &str = "main";

/// The common prefix of the full names of a run's refs.
pub(super) fn refs_of(run: &str) -> String {
    format!("refs/heads/{ALL}/{run}")
}

/// The full name of the branch with the merged work.
pub(super) fn main_of(run: &str) -> String {
    format!("{}/{MAIN}", refs_of(run))
}

/// The branch of a step, without `refs/heads/`.
pub(super) fn branch_of(run: &str, step: &StepId) -> String {
    let [plan, number] = parts(step);
    format!("{ALL}/{run}/{plan}/{number}")
}

/// The plan and the number of a step, escaped as two components of a ref name.
pub(super) fn parts(step: &StepId) -> [String; 2] {
    let plan = part(step.plan.as_str());
    // `main` is a ref of the run. A ref cannot also be a directory of other refs.
    let plan = if plan == MAIN { format!("%{:02x}{}", MAIN.as_bytes()[0], &MAIN[1..]) } else { plan };
    [plan, part(&step.number.to_string())]
}

/// A branch without `refs/heads/`, as git shows it.
pub(super) fn short(name: &str) -> &str {
    name.strip_prefix("refs/heads/").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::id::PlanId;

    #[test]
    fn no_branch_is_a_directory_of_another() {
        let of = |plan: &str, number: &str| {
            branch_of("g1", &StepId { plan: PlanId::new(plan), number: number.parse().unwrap() })
        };
        assert_eq!(of("auth", "2"), "planwatch-run/g1/auth/2");
        assert_eq!(of("Auth v2", "2.50"), "planwatch-run/g1/%41uth%20v2/2%2e5");
        assert_eq!(of("main", "1"), "planwatch-run/g1/%6dain/1");
        assert_eq!(of("%6dain", "1"), "planwatch-run/g1/%256dain/1");
        assert_eq!(short(&main_of("g1")), "planwatch-run/g1/main");
    }
}
