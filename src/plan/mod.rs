//! What a plan is, and bytes to plan and back.
