//! Tests of the whole, one module per subject.

mod disk_race;
