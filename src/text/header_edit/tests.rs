//! The rules of editing, one table each.
