//! The version of git, and the oldest one that is supported.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

/// The oldest supported version.
pub(super) const OLDEST: Version = Version { major: 2, minor: 30 };

impl Version {
    /// Reads the line of `git version`. What follows the second number differs between systems.
    pub fn read(line: &str) -> Option<Self> {
        let mut numbers = line.trim().strip_prefix("git version ")?.split('.');
        let major = numbers.next()?.parse().ok()?;
        let minor = numbers.next()?;
        let end = minor.find(|c: char| !c.is_ascii_digit()).unwrap_or(minor.len());
        Some(Self { major, minor: minor[..end].parse().ok()? })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_every_system_are_read() {
        let read = |line: &str| Version::read(line).map(|it| (it.major, it.minor));
        assert_eq!(read("git version 2.47.3\n"), Some((2, 47)));
        assert_eq!(read("git version 2.47.3.windows.1"), Some((2, 47)));
        assert_eq!(read("git version 2.39.5 (Apple Git-154)"), Some((2, 39)));
        assert_eq!(read("git version 2.30-rc1"), Some((2, 30)));
        assert_eq!(read("git version 3.0.0.123.gabcdef"), Some((3, 0)));
        for none in [
            "",
            "git",
            "git version ",
            "git version 2",
            "git version 2.",
            "git version x.1",
            "hg version 2.47",
        ] {
            assert_eq!(read(none), None, "{none}");
        }
        assert!(Version { major: 2, minor: 9 } < OLDEST && Version { major: 3, minor: 0 } > OLDEST);
    }
}
