//! Seals: a short hash that stands in a text itself and tells whether somebody has changed that text since.
//!
//! Line endings do not count, because git changes them.

/// What stands before the seal of a whole file, and behind it.
const BEFORE: &str = "seal: \"";
const AFTER: char = '"';

/// The seal of a text: 16 hexadecimal digits.
pub fn of(text: &str) -> String {
    blake3::hash(text.replace("\r\n", "\n").as_bytes()).to_hex()[..16].to_owned()
}

/// Fills in the first `seal: ""` of a file.
pub fn sealed(text: &str) -> String {
    let empty = format!("{BEFORE}{AFTER}");
    text.replacen(&empty, &format!("{BEFORE}{}{AFTER}", of(text)), 1)
}

/// Whether a file holds its own seal, and so is as it was written.
pub fn is_sealed(text: &str) -> bool {
    let Some((before, rest)) = text.split_once(BEFORE) else { return false };
    let Some((seal, after)) = rest.split_once(AFTER) else { return false };
    of(&format!("{before}{BEFORE}{AFTER}{after}")) == seal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_breaks_with_the_text_and_not_with_its_line_ends() {
        let text = sealed("a\n# seal: \"\"\nb\n");
        assert!(is_sealed(&text) && is_sealed(&text.replace('\n', "\r\n")), "{text}");
        assert!(!is_sealed(&text.replace('b', "c")) && !is_sealed(&format!("{text} ")));
        assert!(!is_sealed("") && !is_sealed("seal: \"\"") && !is_sealed("seal: \"x"));
    }
}
