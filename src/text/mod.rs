//! Bytes, spans and edits.

pub mod front_matter;

pub mod scalar;

pub mod yaml;

pub mod header_edit;
