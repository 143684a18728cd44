//! Frames of the protocol: `Content-Length`, a blank line, a JSON body.
//!
//! A client can send anything. A frame that contains no message is answered with an error, and reading continues until
//! the input ends or fails. Bytes that belong to no frame are skipped up to the next header.

use std::io::{self, BufRead, ErrorKind, Read, Write};

use lsp_server::{ErrorCode, Message};
use serde_json::{Value, json};

/// In bytes. Of a longer header line, only the last bytes are used.
const LONGEST_HEADER: usize = 8 << 10;

/// In bytes. Longer bodies are skipped. The largest plan file has 4 MiB, and JSON escapes can make it six times as long.
const LONGEST_BODY: u64 = 64 << 20;

/// The content of a frame.
#[derive(Debug)]
pub(super) enum Frame {
    Message(Message),
    /// Not a valid message. `id` is the id for the error response: the frame's id if it is a text or an integer, otherwise
    /// null.
    Broken {
        id: Value,
        code: ErrorCodeOf,
        why: &'static str,
    },
}

/// Why a frame is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorCodeOf {
    /// The body is not JSON, or too long to be read.
    Json,
    /// The body is JSON but not a message.
    Message,
}

impl ErrorCodeOf {
    pub(super) fn number(self) -> i32 {
        match self {
            Self::Json => ErrorCode::ParseError as i32,
            Self::Message => ErrorCode::InvalidRequest as i32,
        }
    }
}

/// Reads the next frame. Returns `None` at the end of the input.
pub(super) fn read(from: &mut impl BufRead) -> io::Result<Option<Frame>> {
    let Some(length) = header(from)? else { return Ok(None) };
    if length > LONGEST_BODY {
        io::copy(&mut from.by_ref().take(length), &mut io::sink())?;
        return Ok(Some(broken(Value::Null, ErrorCodeOf::Json, "the message is longer than 64 MiB")));
    }
    let mut body = Vec::new();
    // The buffer grows with the received bytes, not with the length that the header states.
    from.by_ref().take(length).read_to_end(&mut body)?;
    if (body.len() as u64) < length {
        return Ok(None);
    }
    Ok(Some(frame(&body)))
}

fn broken(id: Value, code: ErrorCodeOf, why: &'static str) -> Frame {
    Frame::Broken { id, code, why }
}

fn frame(body: &[u8]) -> Frame {
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        return broken(Value::Null, ErrorCodeOf::Json, "the body is not JSON");
    };
    let id = value.get("id").filter(|it| it.is_string() || it.is_i64() || it.is_u64());
    let id = id.cloned().unwrap_or_default();
    let has_id = value.get("id").is_some();
    match serde_json::from_value::<Message>(value) {
        // The library reads a request as a notification if its id is neither a string nor a 32-bit integer.
        Ok(Message::Notification(_)) if has_id => {
            broken(id, ErrorCodeOf::Message, "the id is neither a text nor an integer of 32 bits")
        }
        Ok(message) => Frame::Message(message),
        Err(_) => broken(id, ErrorCodeOf::Message, "the body is not a message"),
    }
}

/// Reads lines up to the end of a header that has a `Content-Length`, and returns that length. Returns `None` at the end
/// of the input.
fn header(from: &mut impl BufRead) -> io::Result<Option<u64>> {
    let mut length = None;
    loop {
        let Some(line) = line(from)? else { return Ok(None) };
        if line.is_empty() {
            match length.take() {
                Some(length) => return Ok(Some(length)),
                None => continue,
            }
        }
        let text = String::from_utf8_lossy(&line);
        let Some((name, value)) = text.rsplit_once(':') else { continue };
        // Other bytes can precede the name, such as the rest of a body that is longer than its `Content-Length`.
        if name.trim_end().to_ascii_lowercase().ends_with("content-length") {
            length = value.trim().parse().ok();
        }
    }
}

/// Reads a line without its line end. Of a long line, returns only the last [`LONGEST_HEADER`] bytes.
fn line(from: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    loop {
        let buffer = match from.fill_buf() {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            other => other?,
        };
        if buffer.is_empty() {
            return Ok(None);
        }
        let end = buffer.iter().position(|it| *it == b'\n');
        let taken = end.map_or(buffer.len(), |it| it + 1);
        line.extend_from_slice(&buffer[..taken]);
        from.consume(taken);
        if line.len() > LONGEST_HEADER {
            line.drain(..line.len() - LONGEST_HEADER);
        }
        if end.is_some() {
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            return Ok(Some(text.strip_suffix(b"\r").unwrap_or(text).to_vec()));
        }
    }
}

/// Writes a body as a frame.
pub(super) fn write(to: &mut impl Write, body: &Value) -> io::Result<()> {
    let text = body.to_string();
    write!(to, "Content-Length: {}\r\n\r\n{text}", text.len())
}

/// The response to a broken frame. Its id may be null, which the library's type of a response does not support.
pub(super) fn error(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads all frames. Returns the method, the id or both of each message, and the code and id of each broken frame.
    fn all(bytes: &[u8]) -> Vec<String> {
        let mut from = bytes;
        let mut found = Vec::new();
        while let Some(frame) = read(&mut from).unwrap() {
            found.push(match frame {
                Frame::Message(Message::Request(it)) => format!("{}#{}", it.method, it.id),
                Frame::Message(Message::Notification(it)) => it.method,
                Frame::Message(Message::Response(it)) => format!("reply {}", it.id),
                Frame::Broken { id, code, .. } => format!("{} {id}", code.number()),
            });
        }
        found
    }

    fn framed(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    #[track_caller]
    fn check(bytes: &str, expected: &[&str]) {
        assert_eq!(all(bytes.as_bytes()), expected, "{bytes:?}");
        let good = framed(r#"{"method":"after"}"#);
        let expected: Vec<_> = expected.iter().copied().chain(["after"]).collect();
        assert_eq!(all(format!("{bytes}{good}").as_bytes()), expected, "{bytes:?}, then a message");
    }

    #[test]
    fn headers_may_be_written_in_several_ways() {
        let body = r#"{"id":1,"method":"m"}"#;
        for head in [
            "Content-Length: 21\r\n\r\n",
            "content-length:21\n\n",
            "Content-Type: x\r\nContent-Length: 21\r\n\r\n",
            "CONTENT-LENGTH :  21 \r\n\r\n",
            "\r\n\r\nContent-Length: 21\r\n\r\n",
            "garbage Content-Length: 21\r\n\r\n",
            "name without a colon\r\nContent-Length: 21\r\n\r\n",
        ] {
            check(&format!("{head}{body}"), &["m#1"]);
        }
    }

    #[test]
    fn a_frame_without_a_message_is_answered_once_and_reading_continues() {
        for (body, expected) in [
            ("{}", "-32600 null"),
            ("[]", "-32600 null"),
            ("null", "-32600 null"),
            ("{\"id\":7}", "-32600 7"),
            ("{\"id\":null,\"method\":\"m\"}", "-32600 null"),
            ("{\"id\":1.5,\"method\":\"m\"}", "-32600 null"),
            ("{\"id\":99999999999,\"method\":\"m\"}", "-32600 99999999999"),
            ("{\"id\":[1],\"method\":\"m\"}", "-32600 null"),
            ("{\"id\":3,\"method\":7}", "-32600 3"),
            ("{\"method\":", "-32700 null"),
            ("[{\"method\":\"a\"}]", "-32600 null"),
        ] {
            check(&framed(body), &[expected]);
        }
        check(&framed(&format!("{}{}", "[".repeat(5000), "]".repeat(5000))), &["-32700 null"]);
        assert_eq!(all(b"Content-Length: 2\r\n\r\n\xff\xfe"), ["-32700 null"]);
    }

    #[test]
    fn bad_lengths_are_skipped() {
        check("Content-Length: -1\r\n\r\n", &[]);
        check("Content-Length: many\r\n\r\n", &[]);
        check("\r\n\r\n", &[]);
        check(&format!("{}\r\n", "x".repeat(100_000)), &[]);
        assert_eq!(all(b"Content-Length: 99999999999999\r\n\r\n{}"), ["-32700 null"]);
        assert_eq!(all(b"Content-Length: 99\r\n\r\n{}"), [""; 0]);
    }

    #[test]
    fn a_written_frame_is_read() {
        let mut bytes = Vec::new();
        write(&mut bytes, &json!({"method": "é"})).unwrap();
        assert_eq!(all(&bytes), ["é"]);
    }
}
