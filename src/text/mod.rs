//! Bytes, spans and edits.
