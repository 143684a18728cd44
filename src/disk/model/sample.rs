//! Selects some of the combinations of moments, because all of them take hours.
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

/// Selects calls, crashes and faults. The full size takes all.
pub(crate) fn sample(bounded: usize) -> Sample {
    Sample { every: given().map_or(bounded, |it| it.unwrap_or(1)), at: 0 }
}

/// Selects what else goes wrong at a moment of a save. All combinations would take days, so the full size takes a
/// sample, too.
pub(super) fn sample_beside_saves(bounded: usize) -> Sample {
    Sample { every: given().map_or(bounded, |it| it.unwrap_or(100)), at: 0 }
}

/// Selects the moments of a save in two parts. The full size takes all.
pub(super) fn sample_saves(bounded: usize) -> Sample {
    Sample { every: given().map_or(bounded, |_| 1), at: 0 }
}

/// The size that the environment asks for: every n-th combination for a number n, or else the full size. `None` if it
/// asks for no size.
fn given() -> Option<Option<usize>> {
    let size = std::env::var("PLANWATCH_R3").ok()?;
    Some(size.parse().ok().filter(|it| *it > 0))
}
