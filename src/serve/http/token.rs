//! The secret that every request has to bring.

use std::fmt;

use crate::api::error::Error;
use crate::disk::PlansDir;
use crate::ops::token;

/// 256 random bits in hexadecimal letters.
#[derive(Clone)]
pub(super) struct Token {
    secret: String,
}

impl fmt::Debug for Token {
    /// No log and no message shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Returns the stored token of these plans; makes one if there is none, or if a new one is wanted.
    pub(super) fn of(plans: &PlansDir, is_new: bool) -> Result<Self, Error> {
        let stored = if is_new { None } else { token::token(plans)? };
        let secret = stored.map_or_else(|| token::renew(plans), Ok)?;
        Ok(Self { secret })
    }

    pub(super) fn as_str(&self) -> &str {
        &self.secret
    }

    /// Compares in a time that does not depend on how much of it is right.
    pub(super) fn is(&self, given: &[u8]) -> bool {
        // Equal hashes in constant time; blake3 compares its own so.
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
