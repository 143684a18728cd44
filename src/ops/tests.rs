//! What every verb has in common, and what the modules below promise, tested through the verbs.

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
