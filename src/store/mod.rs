//! Plans as they are now, and changes of them.
//!
//! Reading goes through `load`, writing through `transaction`. `leases` has the recorded claims of steps, and `claims` lists
//! the steps that can be claimed.

pub(crate) mod branches;
pub(crate) mod change_one_by_one;
pub(crate) mod changed_after_removal;
pub(crate) mod claims;
pub(crate) mod commit;
pub(crate) mod cycles;
pub(crate) mod decision;
pub(crate) mod fencing;
pub(crate) mod history;
pub mod idempotency;
pub mod interrupted;
pub(crate) mod knowledge;
pub(crate) mod leases;
pub mod live_index;
pub(crate) mod load;
pub(crate) mod new_plan;
pub(crate) mod new_step;
pub(crate) mod plan_file;
pub(crate) mod plan_status;
pub(crate) mod problems;
pub(crate) mod program;
pub(crate) mod project_saves;
pub mod prompt;
pub(crate) mod ref_name;
pub(crate) mod registry;
pub(crate) mod relink;
pub(crate) mod removed;
pub(crate) mod repeat;
pub(crate) mod resolve;
pub(crate) mod step_file;
pub(crate) mod step_moves;
pub(crate) mod steps_list_line;
pub(crate) mod sync;
pub(crate) mod task_boxes;
pub mod transaction;
pub(crate) mod typed_words;
pub mod verify;
