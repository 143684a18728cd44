//! Paths in planwatch's logs, which are JSON and can contain only text.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A path as text; `%` and bytes that are not UTF-8 are escaped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Text(String);

impl Text {
    pub(super) fn of(path: &Path) -> Self {
        let mut text = String::new();
        for chunk in path.as_os_str().as_bytes().utf8_chunks() {
            text.push_str(&chunk.valid().replace('%', "%25"));
            for byte in chunk.invalid() {
                write!(text, "%{byte:02X}").ok();
            }
        }
        Self(text)
    }

    pub(super) fn path(&self) -> PathBuf {
        let mut bytes = Vec::new();
        let mut rest = self.0.as_bytes();
        while let Some((&byte, tail)) = rest.split_first() {
            let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
            let escaped = hex.filter(|_| byte == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
            bytes.push(escaped.unwrap_or(byte));
            rest = if escaped.is_some() { &tail[2..] } else { tail };
        }
        PathBuf::from(OsString::from_vec(bytes))
    }
}
