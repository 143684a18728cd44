//! Resolves plain scalars by the core schema of YAML 1.2 (chapter 10.3.2). Other schemas are not supported.

use super::Kind;

/// Returns the kind that an untagged plain scalar resolves to.
pub(crate) fn plain_kind(text: &str) -> Kind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Kind::Null,
        "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => Kind::Bool,
        _ if is_number(text) => Kind::Number,
        _ => Kind::Text,
    }
}

/// The exact value of an integer; `None` if the text is not an integer, or if 128 bits cannot hold the value. Accepts a sign
/// after `0o` or `0x`, although the core schema does not.
pub(crate) fn integer(text: &str) -> Option<i128> {
    if let Some(digits) = text.strip_prefix("0o") {
        return i128::from_str_radix(digits, 8).ok();
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return i128::from_str_radix(digits, 16).ok();
    }
    text.parse().ok()
}

fn is_number(text: &str) -> bool {
    if let Some(digits) = text.strip_prefix("0o") {
        return all_digits(digits, |it| matches!(it, b'0'..=b'7'));
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return all_digits(digits, |it| it.is_ascii_hexdigit());
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || is_decimal(unsigned)
}

fn all_digits(text: &str, ok: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(ok)
}

fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let digits = |it: &str| all_digits(it, |byte| byte.is_ascii_digit());
    let mantissa_ok = match mantissa.split_once('.') {
        None => digits(mantissa),
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
    };
    mantissa_ok && exponent.is_none_or(|it| digits(it.strip_prefix(['-', '+']).unwrap_or(it)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_schema_words_and_numbers() {
        for (kind, texts) in [
            (Kind::Null, &["", "~", "null", "NULL"][..]),
            (Kind::Bool, &["true", "False", "TRUE"]),
            (
                Kind::Number,
                &["1", "-1", "+1", "014", "0o17", "0x1F", "1.", ".5", "1.5e-3", "-.inf", ".NaN", "1E3"],
            ),
            (
                Kind::Text,
                &[
                    "yes",
                    "no",
                    "nULL",
                    "1_000",
                    "0o8",
                    "0x",
                    "1.2.3",
                    "12:30",
                    "2026-01-01",
                    ".",
                    "e3",
                    "-",
                    "+.nan",
                    "1e",
                    "0b1",
                ],
            ),
        ] {
            for text in texts {
                assert_eq!(plain_kind(text), kind, "{text:?}");
            }
        }
    }
}
