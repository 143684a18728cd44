//! Tests of what all verbs have in common, and, through the verbs, of guarantees that the modules below them give.

mod all_or_nothing;
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
