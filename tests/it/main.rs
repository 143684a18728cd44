//! The one binary of integration tests.

mod frontmatter_cases;
