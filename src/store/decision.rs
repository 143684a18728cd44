//! The result of a function that decides how a file is changed.
//!
//! The function gets the content of the file, under the lock of the plans directory. It runs again if another program saves
//! the file meanwhile. The caller gets the result of the run whose change is in the file, which need not be the last run.
//! If the file is left as it is, the caller gets the result of the last run. The caller must use only this result, not
//! side effects of the function.

use std::convert::Infallible;

/// The decision about a file. `W` is the new content, and `T` is what the caller gets with it. `L` is what the caller gets
/// if the file is left as it is. With the default `L`, a decision is always [`Self::Write`].
pub(crate) enum Decision<W, T = (), L = Infallible> {
    /// The file is not written if it already has this content.
    Write(W, T),
    /// The file is not changed.
    Leave(L),
}

impl<W, T, L> Decision<W, T, L> {
    pub(crate) fn try_map<X, Y, E>(
        self,
        map: impl FnOnce(W, T) -> Result<(X, Y), E>,
    ) -> Result<Decision<X, Y, L>, E> {
        match self {
            Self::Write(write, value) => {
                map(write, value).map(|(write, value)| Decision::Write(write, value))
            }
            Self::Leave(left) => Ok(Decision::Leave(left)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::context::Context;
    use crate::api::error::Error;
    use crate::disk::Open;
    use crate::disk::model::Machine;
    use crate::store::transaction::{Mode, Transaction};

    const PATH: &str = "p/step-1.md";

    type OnNew = fn() -> Decision<&'static str, &'static str, &'static str>;

    /// Decides on `old`. An editor then saves `new`, so the decision runs again, on `new`.
    fn decided_on([old, ours, new]: [&str; 3], on_new: OnNew) -> (String, String) {
        let machine = Machine::with(&[("/plans/p/plan.md", "# P\n"), ("/plans/p/step-1.md", old)]);
        let context = Context::on_model(&machine);
        let mut writing = Transaction::begin(&context, "test", Mode::Write).unwrap();
        let decided = writing.change(PATH, &|bytes| {
            if bytes == new.as_bytes() {
                return on_new().try_map(|text, value| Ok::<_, Error>((text.into(), value)));
            }
            let file = context.plans.disk().open(&context.plans.root().join(PATH), Open::InPlace).unwrap();
            file.write(new.as_bytes()).unwrap();
            Ok(Decision::Write(ours.into(), "of the first run"))
        });
        let value = match decided.unwrap() {
            Decision::Write(applied, value) => format!("{value}, {}", applied.was_written),
            Decision::Leave(left) => left.to_owned(),
        };
        (machine.text("/plans/p/step-1.md").unwrap(), value)
    }

    #[test]
    fn the_caller_gets_the_value_of_the_run_that_counts() {
        let check = |on_new, text: &str, value: &str| {
            let decided = decided_on(["# Old\n", "# Old, ours\n", "# New\n"], on_new);
            assert_eq!(decided, (text.to_owned(), value.to_owned()));
        };
        check(
            || Decision::Write("# New, ours\n", "of the second run"),
            "# New, ours\n",
            "of the second run, true",
        );
        check(|| Decision::Write("# New\n", "nothing to do"), "# New\n", "nothing to do, false");
        check(|| Decision::Leave("left"), "# New\n", "left");
    }

    #[test]
    fn a_decision_runs_again_on_the_claim_of_another_worker() {
        let claimed = "---\nstatus: in_progress\nclaim: {id: h1, by: zoe}\n---\n";
        let texts = ["---\nstatus: pending\n---\n", "---\nstatus: in_progress\n---\n", claimed];
        let decided = decided_on(texts, || Decision::Leave("claimed"));
        assert_eq!(decided, (claimed.to_owned(), "claimed".to_owned()));
    }
}
