//! The secret of one daemon, which every request has to know.

use std::fmt;

use crate::disk::PlansDir;
use crate::engine::error::Error;

/// 256 random bits in hexadecimal letters.
#[derive(Clone)]
pub(super) struct Token {
    secret: String,
    /// Its file, relative to the plans directory.
    place: String,
}

impl fmt::Debug for Token {
    /// No log and no message shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// A new one, which nobody can foretell.
    pub(super) fn new(plans: &PlansDir) -> Result<Self, Error> {
        let mut bytes = [0; 32];
        plans.random(&mut bytes)?;
        let secret = bytes.iter().map(|it| format!("{it:02x}")).collect();
        Ok(Self { secret, place: plans.in_state_dir("token").to_string_lossy().into_owned() })
    }

    pub(super) fn as_str(&self) -> &str {
        &self.secret
    }

    /// Where it stands, relative to the plans directory.
    pub(super) fn place(&self) -> &str {
        &self.place
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
        let token = Token { secret: "ab".repeat(32), place: String::new() };
        assert!(token.is("ab".repeat(32).as_bytes()));
        for other in ["", "a", &"ab".repeat(31), &"ab".repeat(33), &"AB".repeat(32)] {
            assert!(!token.is(other.as_bytes()), "{other}");
        }
        assert!(!format!("{token:?}").contains("ab"));
    }
}
