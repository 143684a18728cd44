//! Converts between `file:` URIs and paths. Clients percent-encode differently, so URIs are compared by their paths.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The absolute path that a `file:` URI of this machine names. `None` for any other URI.
pub(super) fn to_path(uri: &str) -> Option<PathBuf> {
    let rest = strip_scheme(uri)?;
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let (host, path) = rest.split_at(rest.find('/')?);
            (host.is_empty() || host.eq_ignore_ascii_case("localhost")).then_some(path)?
        }
        None => rest,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let bytes = decoded(path)?;
    let is_usable = bytes.starts_with(b"/") && !bytes.contains(&0);
    is_usable.then(|| PathBuf::from(OsString::from_vec(bytes)))
}

fn strip_scheme(uri: &str) -> Option<&str> {
    let scheme = uri.get(..5)?;
    scheme.eq_ignore_ascii_case("file:").then(|| &uri[5..])
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).filter(|it| it.iter().all(u8::is_ascii_hexdigit))?;
        let digits = std::str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    Some(bytes)
}

/// The URI of a path, in which all bytes but ASCII letters, digits and `/-._~` are encoded.
pub(super) fn of_path(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(*byte));
            }
            // Writing to a `String` cannot fail.
            _ => write!(uri, "%{byte:02X}").unwrap_or_default(),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_a_uri_and_is_found_again() {
        for path in ["/p/plan.md", "/a b/é.md", "/c:/100%/x#y?z", "/[1]/+"] {
            assert_eq!(to_path(&of_path(Path::new(path))).as_deref(), Some(Path::new(path)), "{path}");
        }
        assert_eq!(of_path(Path::new("/a b/é:1")), "file:///a%20b/%C3%A9%3A1");
    }

    #[test]
    fn each_spelling_means_the_same_path() {
        for uri in ["file:///p/a%20b", "file://localhost/p/a b", "FILE:/p/a%20b", "file:///p/%61 b"] {
            assert_eq!(to_path(uri).as_deref(), Some(Path::new("/p/a b")), "{uri}");
        }
    }

    #[test]
    fn a_uri_that_is_no_local_file_has_no_path() {
        for uri in [
            "",
            "file",
            "untitled:1",
            "file://host/p",
            "http://x/p",
            "file:///%zz",
            "file:///%+f",
            "file:///a%00",
            "file:p",
            "é",
        ] {
            assert_eq!(to_path(uri), None, "{uri}");
        }
    }
}
