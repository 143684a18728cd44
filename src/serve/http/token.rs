//! The secret that requests must contain.

use std::fmt;

use crate::api::error::Error;
use crate::disk::PlansDir;
use crate::ops::token;

/// 256 random bits as hexadecimal digits.
#[derive(Clone)]
pub(in crate::serve) struct Token {
    secret: String,
}

impl fmt::Debug for Token {
    /// Hides the secret in logs and messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Returns the stored token of these plans; creates one if there is none, or if a new one is requested.
    pub(super) fn of(plans: &PlansDir, is_new: bool) -> Result<Self, Error> {
        let stored = if is_new { None } else { token::token(plans)? };
        let secret = stored.map_or_else(|| token::renew(plans), Ok)?;
        Ok(Self { secret })
    }

    pub(in crate::serve) fn as_str(&self) -> &str {
        &self.secret
    }

    /// Compares in constant time.
    pub(in crate::serve) fn is(&self, given: &[u8]) -> bool {
        // blake3 compares hashes in constant time.
        blake3::hash(given) == blake3::hash(self.secret.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_the_token() {
        let token = Token { secret: "ab".repeat(32) };
        assert!(token.is("ab".repeat(32).as_bytes()));
        for other in ["", "a", &"ab".repeat(31), &"ab".repeat(33), &"AB".repeat(32)] {
            assert!(!token.is(other.as_bytes()), "{other}");
        }
        assert!(!format!("{token:?}").contains("ab"));
    }
}
