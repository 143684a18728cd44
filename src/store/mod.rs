//! Plans as they are now, and changes of them.
//!
//! Reading goes through `load`, writing through `transaction`. Claims of steps are looked up in `leases` and `claims`.

pub(crate) mod claims;
pub(crate) mod fencing;
pub mod idempotency;
pub mod interrupted;
pub(crate) mod leases;
pub(crate) mod load;
pub(crate) mod plan_file;
pub(crate) mod plan_stream;
pub mod refresh;
pub(crate) mod relink;
pub(crate) mod repeat;
pub(crate) mod resolve;
pub(crate) mod step_file;
pub(crate) mod steps_list_line;
pub mod transaction;
