//! Selects a sample of the combinations of saves, crashes and faults, because running all of them takes hours.
#![expect(clippy::disallowed_methods, reason = "the size of the run comes from the environment")]

/// Selects every n-th of a stream of combinations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    every: usize,
    at: usize,
}

impl Sample {
    pub(super) fn all() -> Self {
        Self { every: 1, at: 0 }
    }

    pub(crate) fn takes(&mut self) -> bool {
        self.at += 1;
        self.at.is_multiple_of(self.every)
    }
}

/// The sample of crashes and faults. The full size (see `given`) includes all of them.
pub(crate) fn sample(bounded: usize) -> Sample {
    Sample { every: given().map_or(bounded, |it| it.unwrap_or(1)), at: 0 }
}

/// The sample of crashes and faults during a save. All combinations would take days, so the full size includes only
/// every 100th.
pub(super) fn sample_beside_saves(bounded: usize) -> Sample {
    Sample { every: given().map_or(bounded, |it| it.unwrap_or(100)), at: 0 }
}

/// The sample of pairs of moments: the beginning and the end of an editor's save, or the moments of two saves. If the
/// environment sets any size, all pairs are included.
pub(super) fn sample_saves(bounded: usize) -> Sample {
    Sample { every: given().map_or(bounded, |_| 1), at: 0 }
}

/// The size that `PLANWATCH_R3` sets: `Some(Some(n))` for every n-th combination, or `Some(None)` for the full size if
/// the value is not a positive number. `None` if the variable is not set.
fn given() -> Option<Option<usize>> {
    let size = std::env::var("PLANWATCH_R3").ok()?;
    Some(size.parse().ok().filter(|it| *it > 0))
}
