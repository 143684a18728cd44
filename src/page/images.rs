//! Images of a plan: their media types, which are detected from their content, and their `data:` addresses.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The maximum size of an image in a page. A larger image becomes a link.
pub const MOST_BYTES: usize = 1_000_000;

/// Returns the media type by the content, not by the file's name: PNG, JPEG, GIF, WebP or SVG.
pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => is_svg(bytes).then_some("image/svg+xml"),
    }
}

/// The content as a `data:` address; `None` if it is too large or not an image. SVG is safe, because in an `img` element it
/// runs no script and loads nothing.
pub fn data_address(bytes: &[u8]) -> Option<String> {
    if bytes.len() > MOST_BYTES {
        return None;
    }
    media_type(bytes).map(|kind| format!("data:{kind};base64,{}", STANDARD.encode(bytes)))
}

/// Whether the first element of a text is `svg`, after declarations and comments.
fn is_svg(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let end = match rest {
            it if it.starts_with("<?") => "?>",
            it if it.starts_with("<!--") => "-->",
            it if it.starts_with("<!DOCTYPE") => ">",
            _ => break,
        };
        let Some((_, after)) = rest.split_once(end) else { return false };
        rest = after.trim_start();
    }
    let name = rest.strip_prefix("<svg");
    name.is_some_and(|it| it.starts_with(|c: char| c.is_whitespace() || matches!(c, '>' | '/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_decides_the_type() {
        for (bytes, expected) in [
            (&b"\x89PNG\r\n\x1a\nrest"[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF89a..", Some("image/gif")),
            (b"RIFF0000WEBPVP8 ", Some("image/webp")),
            (b"<svg xmlns='http://www.w3.org/2000/svg'/>", Some("image/svg+xml")),
            (b"<?xml version='1.0'?>\n<!-- x --><svg>", Some("image/svg+xml")),
            (b"<html><svg>", None),
            (b"<svgx>", None),
            (b"<!-- <svg>", None),
            (b"plain", None),
            (b"", None),
        ] {
            assert_eq!(media_type(bytes), expected, "{bytes:?}");
        }
        assert_eq!(data_address(b"GIF89a").as_deref(), Some("data:image/gif;base64,R0lGODlh"));
        let large = [b"GIF89a".to_vec(), vec![0; MOST_BYTES]].concat();
        assert_eq!(data_address(&large), None);
    }
}
