//! Writes a text as a YAML scalar that every YAML parser, including those of YAML 1.1, reads as the same text.
//!
//! All functions are pure.

/// The context of a scalar: outside or inside brackets. Brackets and commas end a plain scalar only inside brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Block,
    Flow,
}

/// The header and the lines of a block scalar whose value is exactly a given text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Literal<'a> {
    /// `|-`, or `|` if the text ends with a line ending.
    pub header: &'static str,
    /// All but the empty lines must be indented.
    pub lines: Vec<&'a str>,
}

/// Words that some reader takes for null, a boolean, the merge key (`<<`) or the value key (`=`), in lower case.
const RESERVED: [&str; 15] =
    ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nil", "none", "~", "<<", "=", "undefined"];

/// Writes a text on one line: plain where that is safe, otherwise in quotes.
pub fn inline(text: &str, place: Place) -> String {
    if is_plain(text, place) {
        return text.to_owned();
    }
    // Single quotes are used for a text with `"` or `\` that has no `'`, because double quotes would need backslashes.
    let is_noisy = text.contains(['"', '\\']) && !text.contains('\'');
    single(text).filter(|_| is_noisy).unwrap_or_else(|| double(text))
}

/// Whether a text can be written without quotes.
///
/// This is stricter than YAML: a text that begins like a number, a date or a time is never plain.
pub fn is_plain(text: &str, place: Place) -> bool {
    let (Some(first), Some(last)) = (text.chars().next(), text.chars().next_back()) else { return false };
    let edges = begins_plain(first) && !last.is_whitespace() && last != ':';
    edges
        && text.chars().all(is_printable)
        && !text.contains(": ")
        && !text.contains(" #")
        && !RESERVED.iter().any(|it| it.eq_ignore_ascii_case(text))
        && (place == Place::Block || !text.contains([',', '[', ']', '{', '}', ':', '?', '#']))
}

/// Writes a text in single quotes, if it has no line ending and nothing that must be escaped.
pub fn single(text: &str) -> Option<String> {
    text.chars().all(is_printable).then(|| format!("'{}'", text.replace('\'', "''")))
}

/// Writes a text in double quotes on one line; works for every text.
pub fn double(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for it in text.chars() {
        match it {
            '"' | '\\' => quoted.extend(['\\', it]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            _ if is_printable(it) => quoted.push(it),
            _ => quoted.push_str(&escape(it)),
        }
    }
    quoted.push('"');
    quoted
}

/// Writes a value as single-line JSON that is also YAML. Some YAML readers accept certain characters only as escapes, so
/// these characters are escaped.
pub fn json(value: &serde_json::Value) -> String {
    let json = value.to_string();
    let mut yaml = String::with_capacity(json.len());
    for it in json.chars() {
        match u32::from(it) {
            // Above U+FFFF, the escapes of JSON and of YAML have different forms, and no parser needs one.
            code @ ..=0xffff if !is_printable(it) => yaml.push_str(&unicode_escape(code)),
            _ => yaml.push(it),
        }
    }
    yaml
}

/// A text with line endings as a block scalar. `None` if the text has no line ending, if the block scalar would not be
/// exact, or if an editor that removes blanks at line ends would change it.
pub fn literal(text: &str) -> Option<Literal<'_>> {
    text.contains('\n').then(|| any_literal(text))?
}

/// Like [`literal`], but also accepts a text without line ending.
pub fn any_literal(text: &str) -> Option<Literal<'_>> {
    let (body, header) = text.strip_suffix('\n').map_or((text, "|-"), |body| (body, "|"));
    let lines: Vec<&str> = body.split('\n').collect();
    // The first line defines the indentation, and an empty last line would need `|+`. Neither may be empty.
    let edges = !lines[0].is_empty() && lines.last().is_some_and(|it| !it.is_empty());
    let is_exact = |line: &&str| {
        let ends_well = !line.ends_with(char::is_whitespace) && !line.starts_with('\t');
        ends_well && line.chars().all(|it| it == '\t' || is_printable(it))
    };
    let is_flush = !lines[0].starts_with(char::is_whitespace);
    (edges && is_flush && lines.iter().all(is_exact)).then_some(Literal { header, lines })
}

/// Whether a plain scalar may begin with this character in every reader. Indicators, digits, signs and dots are excluded.
fn begins_plain(first: char) -> bool {
    match first {
        'a'..='z' | 'A'..='Z' | '_' | '/' | '(' | '$' => true,
        // Readers may strip invisible characters at the edge.
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => false,
        _ => first > '\u{9f}' && is_printable(first) && !first.is_whitespace(),
    }
}

/// Whether a character is in YAML's printable set. Line endings, tabs and characters on which readers disagree are
/// excluded.
fn is_printable(it: char) -> bool {
    let is_noncharacter = u32::from(it) & 0xfffe == 0xfffe;
    !is_noncharacter
        && !matches!(it, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// The escape with four hexadecimal digits, which is the same in JSON and in YAML.
fn unicode_escape(code: u32) -> String {
    format!("\\u{code:04x}")
}

fn escape(it: char) -> String {
    match u32::from(it) {
        0 => "\\0".to_owned(),
        7 => "\\a".to_owned(),
        8 => "\\b".to_owned(),
        0x1b => "\\e".to_owned(),
        code @ ..=0xff => format!("\\x{code:02X}"),
        code @ ..=0xffff => format!("\\u{code:04X}"),
        code => format!("\\U{code:08X}"),
    }
}

#[cfg(test)]
mod tests;
