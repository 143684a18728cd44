//! Texts as parts of names of git references.
//!
//! In a part, the bytes `a-z`, `0-9`, `_` and `-` stay as they are. All other bytes are written as `%` and two hexadecimal
//! digits. These include capital letters, because a file system may ignore case. A part that would be longer than 200
//! bytes is replaced by `=` and a hash.

use unicode_normalization::UnicodeNormalization;

/// The longest part that is not hashed; file names have at most 255 bytes.
pub(crate) const LONGEST: usize = 200;

/// Encodes a text as one part of a name.
pub(crate) fn part(text: &str) -> String {
    let mut encoded = String::new();
    let text: String = text.nfc().collect();
    for byte in text.bytes() {
        if byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-') {
            encoded.push(byte as char);
        } else {
            encoded.push('%');
            encoded.push(hex(byte >> 4));
            encoded.push(hex(byte & 15));
        }
    }
    match encoded.len() > LONGEST {
        true => format!("={}", &blake3::hash(text.as_bytes()).to_hex()[..40]),
        false => encoded,
    }
}

fn hex(digit: u8) -> char {
    char::from_digit(u32::from(digit), 16).unwrap_or('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_safe_on_every_file_system_and_in_git() {
        let table = [
            ("auth", "auth"),
            ("2.5", "2%2e5"),
            ("Auth", "%41uth"),
            ("a b..lock@{~^:", "a%20b%2e%2elock%40%7b%7e%5e%3a"),
            ("e\u{301}té", "%c3%a9t%c3%a9"),
            ("100%", "100%25"),
        ];
        for (text, expected) in table {
            assert_eq!(part(text), expected);
        }
        let long = part(&"é".repeat(100));
        assert!(long.len() < 80 && long.starts_with('='), "{long}");
        assert_ne!(long, part(&"é".repeat(101)));
    }
}
