//! What the index promises as a whole: it gives back what it was given, or says that it cannot.

pub(super) mod arbitrary;
mod damage;
mod encoded;
mod names;
mod often;
mod query;
mod round_trip;
mod sample;
mod texts;
