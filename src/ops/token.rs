//! `token`: the secret that requests over HTTP must contain. Each plans directory has its own. The HTTP server creates it if
//! there is none, or if a new one is requested.

use crate::api::error::Error;
use crate::disk::{DiskError, PlansDir};

/// The number of random bytes in a token, which is written as hexadecimal digits.
const BYTES: usize = 32;

/// Returns the token of a plans directory. `None`: no token has been created, or the file contains something else.
pub fn token(plans: &PlansDir) -> Result<Option<String>, Error> {
    let is_whole = |it: &String| it.len() == 2 * BYTES && it.bytes().all(|it| it.is_ascii_hexdigit());
    Ok(plans.token()?.filter(is_whole))
}

/// Creates a token and stores it. An older token is replaced.
pub(crate) fn renew(plans: &PlansDir) -> Result<String, Error> {
    let mut bytes = [0; BYTES];
    plans.random(&mut bytes)?;
    let token: String = bytes.iter().map(|it| format!("{it:02x}")).collect();
    plans.put_token(&token).map_err(|error| match error {
        DiskError::NotFound { .. } | DiskError::ReadOnly { .. } => {
            let message = "HTTP needs a token, and it cannot be stored, because `.planwatch` cannot be used";
            let hint =
                "`planwatch doctor` explains why; `--no-token` serves without a token, only to this machine";
            Error::failed("no-daemon", message, hint)
        }
        other => other.into(),
    })?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::disk::model::Machine;

    #[test]
    fn without_a_state_directory_the_error_names_the_cause() {
        // Nothing has created `.planwatch`.
        let machine = Arc::new(Machine::with(&[("/plans/p/plan.md", "# P\n")]));
        let error = renew(&machine.plans()).unwrap_err();
        assert_eq!(error.code(), "no-daemon");
        assert!(error.to_string().contains("`.planwatch` cannot be used"), "{error}");
    }
}
