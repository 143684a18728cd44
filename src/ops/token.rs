//! `token`: the secret that requests over HTTP must contain. Each plans directory has its own. The HTTP server creates it if
//! there is none, or if a new one is requested.

use crate::api::error::Error;
use crate::disk::PlansDir;

/// The number of random bytes in a token, which is written as hexadecimal digits.
const BYTES: usize = 32;

/// Returns the token of a plans directory. `None`: no token has been created, or the file contains something else.
pub fn token(plans: &PlansDir) -> Result<Option<String>, Error> {
    let is_whole = |it: &String| it.len() == 2 * BYTES && it.bytes().all(|it| it.is_ascii_hexdigit());
    Ok(plans.token()?.filter(is_whole))
}

/// Creates a token and stores it. An older token is replaced.
pub(crate) fn renew(plans: &PlansDir) -> Result<String, Error> {
    if plans.made_runtime_dir().is_none() {
        let message = "HTTP needs a token, and it cannot be stored, because `.planwatch` cannot be used";
        let hint =
            "`planwatch doctor` explains why; `--no-token` serves without a token, only to this machine";
        return Err(Error::failed("no-daemon", message, hint));
    }
    let mut bytes = [0; BYTES];
    plans.random(&mut bytes)?;
    let token: String = bytes.iter().map(|it| format!("{it:02x}")).collect();
    plans.put_token(&token)?;
    Ok(token)
}
