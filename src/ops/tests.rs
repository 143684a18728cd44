//! Tests of what all verbs have in common. They also test, through the verbs, guarantees of the modules that verbs use.

mod all_or_nothing;
mod cycles;
mod files_opened;
mod first_steps;
mod keys;
mod order;
mod plan_saved;
mod preconditions;
mod ranges;
mod repeated_reports;
mod resting;
mod same_value;
mod saves;
mod staleness;
