//! What a decision about a file returns.
//!
//! A decision is made on what a file holds under the lock, and runs again when another program saves in between. It
//! therefore has no side effects that its caller reads: all that the caller needs is in the result, and the caller gets
//! the result of the run that counts.

use std::convert::Infallible;

/// What becomes of a file: `W` is what is written, `T` what the caller gets with it, `L` what it gets if nothing is to
/// be written. A decision that always writes has no `L`.
pub(crate) enum Decision<W, T = (), L = Infallible> {
    /// Nothing is written either if the file already holds this.
    Write(W, T),
    /// The file stays as its editors saved it.
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

    /// Decides on `old`, which an editor then replaces with `new`, and on `new`.
    fn decided(on_new: fn() -> Decision<&'static str, &'static str, &'static str>) -> (String, String) {
        let machine = Machine::with(&[("/plans/p/plan.md", "# P\n"), ("/plans/p/step-1.md", "# Old\n")]);
        let context = Context::on_model(&machine);
        let mut writing = Transaction::begin(&context, "test", Mode::Write).unwrap();
        let decided = writing.change(PATH, &|bytes| {
            if bytes == b"# New\n" {
                return on_new().try_map(|text, value| Ok::<_, Error>((text.into(), value)));
            }
            let file = context.plans.disk().open(&context.plans.root().join(PATH), Open::InPlace).unwrap();
            file.write(b"# New\n").unwrap();
            Ok(Decision::Write(b"# Old, ours\n".to_vec(), "of the first run"))
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
            assert_eq!(decided(on_new), (text.to_owned(), value.to_owned()));
        };
        check(
            || Decision::Write("# New, ours\n", "of the second run"),
            "# New, ours\n",
            "of the second run, true",
        );
        check(|| Decision::Write("# New\n", "nothing to do"), "# New\n", "nothing to do, false");
        check(|| Decision::Leave("left"), "# New\n", "left");
    }
}
