//! Where everything stands.
