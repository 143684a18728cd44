//! Selects some of the combinations of moments, as all of them take hours.
#![expect(clippy::disallowed_methods, reason = "the size of the run comes from the environment")]

/// Selects every n-th of a stream of combinations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    every: usize,
    at: usize,
}

impl Sample {
    pub(super) fn all() -> Self {
        Self { every: 1, at: 0 }
    }

    pub(super) fn takes(&mut self) -> bool {
        self.at += 1;
        self.at.is_multiple_of(self.every)
    }
}

pub(super) fn sample(bounded: usize) -> Sample {
    let every = match std::env::var("PLANWATCH_R3").as_deref() {
        Ok("full") => 1,
        Ok(number) => number.parse().unwrap_or(bounded),
        Err(_) => bounded,
    };
    Sample { every, at: 0 }
}

/// Selects pairs of moments, of which each takes a run to learn how many calls follow. The full size takes all.
pub(super) fn sample_pairs() -> Sample {
    let every = if std::env::var_os("PLANWATCH_R3").is_some() { 1 } else { 24 };
    Sample { every, at: 0 }
}
