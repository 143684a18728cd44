//! Checks the paths that callers pass, and encodes and parses the names of displaced versions.
//!
//! A displaced version's name contains what is needed to classify it: when it was made, its expected content, and its
//! origin. To classify a save that raced with a write, the plan file and the names of later versions are needed, too.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use super::error::DiskError;

/// Directories in the state directory. `displaced` contains displaced versions of plan files. `undo` contains the undo log
/// and the versions that `undo` needs. The files of a new directory are written into `building`, which is then renamed to
/// the final path of that directory.
pub(super) const DISPLACED: &str = "displaced";
pub(super) const UNDO: &str = "undo";
pub(super) const BUILDING: &str = "building";

/// The directory of this machine's runtime state, directly below the plans directory.
pub(super) const RUNTIME: &str = ".planwatch";

/// The longest file name on most file systems, in bytes.
const NAME_LIMIT: usize = 255;

/// Precedes a path whose start was cut off because the name would be too long.
const CUT: &[u8] = b"%~";

/// The first 64 bits of a content hash, which are enough to distinguish versions of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content(pub u64);

impl Content {
    /// The content of a file that does not exist.
    pub(super) const NOTHING: Self = Self(0);

    pub(super) fn of(bytes: &[u8]) -> Self {
        let hash = blake3::hash(bytes);
        let mut head = [0; 8];
        head.copy_from_slice(&hash.as_bytes()[..8]);
        Self(u64::from_be_bytes(head))
    }
}

/// The name of a displaced version of a plan file, or of a draft. A draft is a new version that is not yet at its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VersionName {
    pub origin: Origin,
    /// The time of its creation in nanoseconds since 1970, incremented until it is unique.
    pub id: u64,
    /// The content that the writer expected in the displaced file.
    pub base: Content,
    pub new: Content,
    pub path: NamedPath,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// planwatch read this version before replacing it.
    Clean,
    /// Another program saved this version while planwatch wrote. For a moment, the file had a text without this save. A
    /// program that read the file at that moment may still save a text that lacks this save.
    Race,
    /// planwatch's own text, rolled back; an editor may have had it open.
    Own,
}

impl Origin {
    fn mark(self) -> &'static str {
        match self {
            Self::Clean => "",
            Self::Race => "race-",
            Self::Own => "own-",
        }
    }
}

/// The path of a plan file, as far as it fits into a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NamedPath {
    Whole(PathBuf),
    /// The end of a path, escaped.
    End(OsString),
}

impl NamedPath {
    /// The path for display; if it was truncated, only its end.
    pub(super) fn shown(&self) -> PathBuf {
        match self {
            Self::Whole(path) => path.clone(),
            Self::End(end) => PathBuf::from(OsString::from_vec(unescape(end.as_bytes()))),
        }
    }
}

impl VersionName {
    pub(super) fn encode(&self) -> OsString {
        let mark = self.origin.mark();
        let head = format!("{mark}{:016x}.{:016x}.{:016x}.", self.id, self.base.0, self.new.0);
        with_path(head, &self.path)
    }

    /// Returns `None` for a name of another form.
    pub(super) fn parse(name: &OsStr) -> Option<Self> {
        let bytes = name.as_bytes();
        let marked = |origin: Origin| Some((origin, bytes.strip_prefix(origin.mark().as_bytes())?));
        let (origin, bytes) = [Origin::Race, Origin::Own, Origin::Clean].into_iter().find_map(marked)?;
        let (id, rest) = hex_field(bytes)?;
        let (base, rest) = hex_field(rest)?;
        let (new, rest) = hex_field(rest)?;
        Some(Self { origin, id, base: Content(base), new: Content(new), path: parse_path(rest)? })
    }
}

/// Appends a path to `head`. If the name would be too long, the start of the path is cut off.
pub(super) fn with_path(head: String, path: &NamedPath) -> OsString {
    let mut name = head.into_bytes();
    let room = NAME_LIMIT.saturating_sub(name.len() + CUT.len());
    match path {
        NamedPath::End(end) => {
            name.extend_from_slice(CUT);
            name.extend_from_slice(end.as_bytes());
        }
        NamedPath::Whole(path) => {
            let escaped = escape(path);
            if escaped.len() > room {
                let from = escaped.len() - room;
                let from = (from..escaped.len()).find(|&at| is_start(&escaped, at)).unwrap_or(escaped.len());
                name.extend_from_slice(CUT);
                name.extend_from_slice(&escaped[from..]);
            } else {
                name.extend_from_slice(&escaped);
            }
        }
    }
    OsString::from_vec(name)
}

pub(super) fn parse_path(bytes: &[u8]) -> Option<NamedPath> {
    if let Some(end) = bytes.strip_prefix(CUT) {
        return Some(NamedPath::End(OsString::from_vec(end.to_vec())));
    }
    let path = PathBuf::from(OsString::from_vec(unescape(bytes)));
    checked(&path).is_ok().then_some(NamedPath::Whole(path))
}

/// Whether a character, or an escape, begins at `at`.
fn is_start(escaped: &[u8], at: usize) -> bool {
    let inside_escape = (1..=2).any(|back| at >= back && escaped[at - back] == b'%');
    !inside_escape && escaped[at] & 0xC0 != 0x80
}

pub(super) fn hex_field(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (digits, rest) = bytes.split_at_checked(16)?;
    let number = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    Some((number, rest.strip_prefix(b".")?))
}

pub(super) fn escape(path: &Path) -> Vec<u8> {
    let mut out = Vec::new();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' => out.extend_from_slice(b"%2F"),
            b'%' => out.extend_from_slice(b"%25"),
            _ => out.push(byte),
        }
    }
    out
}

pub(super) fn unescape(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, tail)) = rest.split_first() {
        let (after, plain) = match tail {
            [b'2', b'F', after @ ..] if byte == b'%' => (after, b'/'),
            [b'2', b'5', after @ ..] if byte == b'%' => (after, b'%'),
            _ => (tail, byte),
        };
        out.push(plain);
        rest = after;
    }
    out
}

/// Rejects paths that could leave the plans directory or touch planwatch's own files.
pub(super) fn checked(relative: &Path) -> Result<(), DiskError> {
    let bad = || DiskError::BadPath { path: relative.to_path_buf() };
    if relative.as_os_str().as_bytes().contains(&0) {
        return Err(bad());
    }
    let mut depth = 0;
    for part in relative.components() {
        let Component::Normal(name) = part else { return Err(bad()) };
        if depth == 0 && is_runtime(name) {
            return Err(bad());
        }
        depth += 1;
    }
    if depth == 0 { Err(bad()) } else { Ok(()) }
}

/// Whether a name is `.git` or one of planwatch's own names. Ignores case, because some file systems do.
pub(super) fn is_closed_name(name: &OsStr) -> bool {
    name.as_bytes().eq_ignore_ascii_case(b".git") || is_runtime(name)
}

/// Whether a name directly below the plans directory is planwatch's own.
pub(super) fn is_runtime(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    // Ignores case, because macOS treats `.Planwatch` and `.planwatch` as the same name.
    bytes.len() >= RUNTIME.len() && bytes[..RUNTIME.len()].eq_ignore_ascii_case(RUNTIME.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn survives(path: &[u8]) {
        let path = PathBuf::from(OsString::from_vec(path.to_vec()));
        let name = VersionName {
            origin: Origin::Race,
            id: 7,
            base: Content(1),
            new: Content(u64::MAX),
            path: NamedPath::Whole(path),
        };
        let encoded = name.encode();
        assert!(!encoded.as_bytes().contains(&b'/'));
        assert_eq!(VersionName::parse(&encoded), Some(name));
    }

    #[test]
    fn a_version_name_contains_its_path() {
        survives(b"feature-auth/step-2.5.md");
        survives(b"_archive/100%/removed %2F/plan.md");
        survives("größe/step-1.md".as_bytes());
        survives(b"bad\xffname/step-1.md");
    }

    #[test]
    fn a_long_path_keeps_its_end() {
        let path = format!("{}/{}/step-1.md", "é".repeat(100), "%".repeat(60));
        let name = VersionName {
            origin: Origin::Clean,
            id: 7,
            base: Content(1),
            new: Content(2),
            path: NamedPath::Whole(PathBuf::from(path)),
        };
        let encoded = name.encode();
        assert!(encoded.len() <= NAME_LIMIT, "{}", encoded.len());
        let parsed = VersionName::parse(&encoded).expect("it is our name");
        let shown = parsed.path.shown();
        assert!(shown.ends_with("step-1.md"), "{shown:?}");
        assert_eq!(parsed.encode(), encoded);
    }

    #[test]
    fn foreign_names_are_not_parsed() {
        for name in ["", "x", "kept-late.1.x", "0000000000000007.0000000000000001", ".swp"] {
            assert_eq!(VersionName::parse(OsStr::new(name)), None, "{name}");
        }
    }

    #[test]
    fn only_paths_inside_are_accepted() {
        for path in ["a/step-1.md", "_archive/a/plan.md", "a/.hidden"] {
            assert!(checked(Path::new(path)).is_ok(), "{path}");
        }
        for path in
            ["", ".", "..", "../a", "a/../../b", "/etc/passwd", ".planwatch/lock", ".PlanWatch/x", "a\0b"]
        {
            assert!(checked(Path::new(path)).is_err(), "{path}");
        }
    }
}
