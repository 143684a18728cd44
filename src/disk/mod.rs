//! The only floor that reads and writes files.
