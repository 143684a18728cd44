//! The one binary of integration tests.

mod cases;
mod frontmatter_cases;
mod no_index;
mod problems;
mod support;
mod tidy;
