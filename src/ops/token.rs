//! `token`: the secret that requests over HTTP must carry. A daemon makes it once for each plans directory.

use crate::api::error::Error;
use crate::disk::PlansDir;

/// Random bytes in a token; it is written in twice as many hexadecimal digits.
const BYTES: usize = 32;

/// Returns the token of these plans; `None` if no daemon has made one. A file that holds anything else counts as none.
pub fn token(plans: &PlansDir) -> Result<Option<String>, Error> {
    let is_whole = |it: &String| it.len() == 2 * BYTES && it.bytes().all(|it| it.is_ascii_hexdigit());
    Ok(plans.token()?.filter(is_whole))
}

/// Makes a new token and stores it; an older one is no longer valid.
pub(crate) fn renew(plans: &PlansDir) -> Result<String, Error> {
    let mut bytes = [0; BYTES];
    plans.random(&mut bytes)?;
    let token: String = bytes.iter().map(|it| format!("{it:02x}")).collect();
    plans.put_token(&token)?;
    Ok(token)
}
