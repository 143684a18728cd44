//! Tests of the whole index: it returns exactly what was stored, or an error.

pub(super) mod arbitrary;
mod damage;
mod encoded;
mod names;
mod often;
mod query;
mod round_trip;
mod sample;
mod texts;
