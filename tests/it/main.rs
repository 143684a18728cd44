//! The one binary of integration tests.

mod edit_laws;
#[path = "../support/front_matter_gen.rs"]
mod front_matter_gen;
mod frontmatter_cases;
mod public_front_matters;
#[path = "../support/random.rs"]
mod random;
