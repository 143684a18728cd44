//! The one binary of integration tests.

mod disk_lock;
mod disk_race;
mod frontmatter_cases;
