//! Keys on the model.
