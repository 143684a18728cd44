//! The one binary of integration tests.

mod acknowledged;
mod cases;
mod claims;
mod completion;
mod conditions;
mod daemon;
mod disk_lock;
mod disk_race;
mod draft;
mod dry_run;
mod edit_laws;
mod export_import;
#[path = "../support/front_matter_gen.rs"]
mod front_matter_gen;
mod frontmatter_cases;
mod full_disk;
mod hostile_names;
mod http;
mod http_routes;
mod import_again;
mod import_words;
mod index_laws;
mod init;
mod interrupted;
#[path = "../support/json_schema.rs"]
mod json_schema;
mod json_values;
mod kept;
mod knowledge;
mod mcp;
mod mcp_live;
mod missing_plan;
mod no_index;
mod old_names;
mod plugin;
mod problems;
mod public_front_matters;
mod races;
#[path = "../support/random.rs"]
mod random;
mod reach;
mod readme;
mod run;
mod run_story;
mod schemas;
mod searching;
mod shared;
mod support;
mod tidy;
mod trust;
mod undoing;
mod watching;
