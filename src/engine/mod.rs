//! One file per verb: request in, report out.
