//! The only user of SQLite.
