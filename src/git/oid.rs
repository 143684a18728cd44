//! The name of an object: 40 hexadecimal digits, or 64 in a SHA-256 repository.

use std::fmt;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(String);

impl Oid {
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let is_digit = |it: &u8| it.is_ascii_digit() || (b'a'..=b'f').contains(it);
        let is_oid = matches!(bytes.len(), 40 | 64) && bytes.iter().all(is_digit);
        is_oid.then(|| Self(String::from_utf8_lossy(bytes).into_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this name stands for "no object", as in the diff of a created file.
    pub fn is_null(&self) -> bool {
        self.0.bytes().all(|it| it == b'0')
    }

    /// The name that stands for "no object" in this object's repository.
    #[must_use]
    pub fn null(&self) -> Self {
        Self("0".repeat(self.0.len()))
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
