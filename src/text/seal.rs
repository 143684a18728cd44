//! A seal is a short hash inside a text. It shows whether the text was changed after it was sealed.
//!
//! CRLF and LF are equal, because git may change line endings.

/// The text before and after the seal in a file that is sealed as a whole.
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

pub fn is_sealed(text: &str) -> bool {
    let Some((before, rest)) = text.split_once(BEFORE) else { return false };
    let Some((seal, after)) = rest.split_once(AFTER) else { return false };
    of(&format!("{before}{BEFORE}{AFTER}{after}")) == seal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_depends_on_the_text_but_not_on_line_ends() {
        let text = sealed("a\n# seal: \"\"\nb\n");
        assert!(is_sealed(&text) && is_sealed(&text.replace('\n', "\r\n")), "{text}");
        assert!(!is_sealed(&text.replace('b', "c")) && !is_sealed(&format!("{text} ")));
        assert!(!is_sealed("") && !is_sealed("seal: \"\"") && !is_sealed("seal: \"x"));
    }
}
