//! The one binary of integration tests.

mod cases;
mod dry_run;
mod frontmatter_cases;
mod no_index;
mod problems;
mod races;
mod readme;
mod support;
mod tidy;
mod watching;
