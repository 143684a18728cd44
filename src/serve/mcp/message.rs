//! Parses a JSON-RPC message of a client, and makes the error response to an invalid message.
//!
//! The library would ignore an invalid message, or answer without its id. As JSON-RPC demands, an invalid notification
//! gets no answer over stdio. Over HTTP, it gets an error response.

use std::fmt;

use rmcp::model::RequestId;
use rmcp::service::{RoleServer, RxJsonRpcMessage};
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::{Value, json};

/// JSON-RPC's codes.
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;

/// The deepest nesting of arrays and objects that the parser reads.
const DEEPEST: usize = 127;

/// RFC 8259 allows a parser to ignore it.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

#[derive(Debug)]
pub(super) struct Unread {
    id: Value,
    code: i64,
    why: String,
    /// Whether the message is a notification: it has a method and no id.
    pub(super) is_notification: bool,
}

impl Unread {
    /// For a message that was longer than `most` bytes, and was discarded.
    pub(super) fn too_long(most: usize) -> Self {
        let why = format!("the message is longer than {most} bytes");
        Self { id: Value::Null, code: INVALID_REQUEST, why, is_notification: false }
    }

    /// The JSON-RPC error. Its id is null if the message has no usable id.
    pub(super) fn answer(&self) -> Value {
        json!({"jsonrpc": "2.0", "id": self.id, "error": {"code": self.code, "message": self.why}})
    }
}

/// The JSON-RPC error for a request that was refused because of its headers.
pub(super) fn refusal(why: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": null, "error": {"code": INVALID_REQUEST, "message": why}})
}

pub(super) fn read(bytes: &[u8]) -> Result<RxJsonRpcMessage<RoleServer>, Unread> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    serde_json::from_slice(bytes).map_err(|error| judged(bytes, &error))
}

fn judged(bytes: &[u8], error: &serde_json::Error) -> Unread {
    let is_text = std::str::from_utf8(bytes).is_ok();
    // `IgnoredAny` accepts any depth, so this checks only whether the bytes are JSON.
    if !is_text || serde_json::from_slice::<IgnoredAny>(bytes).is_err() {
        let why = format!("this is not JSON: {error}");
        return Unread { id: Value::Null, code: PARSE_ERROR, why, is_notification: false };
    }
    let head = serde_json::from_slice::<Head>(bytes).unwrap_or_default();
    let depth = depth(bytes);
    let mut code = INVALID_REQUEST;
    let why = if depth > DEEPEST {
        format!("the message has {depth} arrays and objects inside each other; at most {DEEPEST} are read")
    } else if error.is_data() && head.id.is_some() && has_wrong_params(bytes) {
        code = INVALID_PARAMS;
        "`params` has to be an object".to_owned()
    } else if error.is_data() {
        "this is not a request of JSON-RPC 2.0: it needs `jsonrpc`: \"2.0\", `id` and `method`".to_owned()
    } else {
        format!("the message cannot be read: {error}")
    };
    // The id of a response is that of a request by the server, so the id of the error is null.
    let id = head.id.filter(|_| !head.is_response);
    let is_notification = head.has_method && !head.has_id;
    Unread { id: id.map_or(Value::Null, |it| json!(it)), code, why, is_notification }
}

/// Whether the only thing wrong with a request is that `params` is not an object.
fn has_wrong_params(bytes: &[u8]) -> bool {
    let Ok(mut asked) = serde_json::from_slice::<Value>(bytes) else { return false };
    let params = asked.as_object_mut().and_then(|it| it.remove("params"));
    params.is_some_and(|it| !it.is_object()) && asked["jsonrpc"] == "2.0" && asked["method"].is_string()
}

/// How deeply arrays and objects are nested in bytes that are JSON.
fn depth(json: &[u8]) -> usize {
    let (mut open, mut most, mut is_string, mut is_escaped) = (0_usize, 0, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b'[' | b'{' if !is_string => {
                open += 1;
                most = most.max(open);
            }
            b']' | b'}' if !is_string => open = open.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// The id of a message, and which keys the message has. Other values are skipped, so they can be nested to any depth.
#[derive(Default)]
struct Head {
    id: Option<RequestId>,
    has_id: bool,
    has_method: bool,
    is_response: bool,
}

impl<'de> Deserialize<'de> for Head {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Heads)
    }
}

struct Heads;

impl<'de> Visitor<'de> for Heads {
    type Value = Head;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Head, A::Error> {
        let mut head = Head::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                // The error for a message with two ids has the id null.
                "id" if head.has_id => return Err(de::Error::duplicate_field("id")),
                "id" => {
                    head.has_id = true;
                    head.id = map.next_value::<Id>()?.0;
                }
                key => {
                    head.has_method |= key == "method";
                    head.is_response |= key == "result" || key == "error";
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        head.is_response &= !head.has_method;
        Ok(head)
    }
}

/// An id, or `None` if the value is not a valid id.
struct Id(Option<RequestId>);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(serde_json::from_value(Value::deserialize(deserializer)?).ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a message, and the code and the id of the answer.
    type Row<'a> = (&'a [u8], Option<(i64, Value)>);

    /// The code and the id of the answer. `None` if the bytes are a valid message or an invalid notification.
    fn judged(bytes: &[u8]) -> Option<(i64, Value)> {
        let unread = read(bytes).err().filter(|it| !it.is_notification)?;
        let answer = unread.answer();
        Some((answer["error"]["code"].as_i64()?, answer["id"].clone()))
    }

    #[test]
    fn each_kind_of_bytes_has_its_code_and_id() {
        let null = || Value::Null;
        let deep = |id: &str| {
            let (open, close) = ("[".repeat(5000), "]".repeat(5000));
            format!(r#"{{"jsonrpc":"2.0","method":"ping","params":{{"a":{open}{close}}}{id}}}"#)
        };
        let (with_id, without) = (deep(r#","id":7"#), deep(r#","id":null"#));
        let notification = deep("");
        let table: [Row<'_>; 24] = [
            (br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, None),
            (b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", None),
            (br#"{"jsonrpc":"2.0","id":908,"method":"no/such"}"#, None),
            (b"hello", Some((PARSE_ERROR, null()))),
            (b"{", Some((PARSE_ERROR, null()))),
            (b"{}}", Some((PARSE_ERROR, null()))),
            (b"\x00", Some((PARSE_ERROR, null()))),
            (b"\xff\xfe", Some((PARSE_ERROR, null()))),
            (b"{\"id\":1,\"a\":\"\xff\"}", Some((PARSE_ERROR, null()))),
            (b"null", Some((INVALID_REQUEST, null()))),
            (b"[]", Some((INVALID_REQUEST, null()))),
            (b"{}", Some((INVALID_REQUEST, null()))),
            (br#"[{"jsonrpc":"2.0","id":911,"method":"ping"}]"#, Some((INVALID_REQUEST, null()))),
            (br#"{"id":901,"method":"ping"}"#, Some((INVALID_REQUEST, json!(901)))),
            (br#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, Some((INVALID_REQUEST, json!("a")))),
            (br#"{"jsonrpc":"2.0","id":902}"#, Some((INVALID_REQUEST, json!(902)))),
            (br#"{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}"#, Some((INVALID_REQUEST, null()))),
            (br#"{"id":1,"id":2,"method":5}"#, Some((INVALID_REQUEST, null()))),
            (br#"{"jsonrpc":"2.0","id":3,"error":{"code":"x"}}"#, Some((INVALID_REQUEST, null()))),
            (
                br#"{"jsonrpc":"2.0","id":912,"method":"tools/call","params":{"name":"\ud800"}}"#,
                Some((INVALID_REQUEST, json!(912))),
            ),
            (br#"{"method":"notifications/x"}"#, None),
            (with_id.as_bytes(), Some((INVALID_REQUEST, json!(7)))),
            (without.as_bytes(), Some((INVALID_REQUEST, null()))),
            (notification.as_bytes(), None),
        ];
        for (bytes, expected) in table {
            assert_eq!(judged(bytes), expected, "{}", String::from_utf8_lossy(&bytes[..bytes.len().min(90)]));
        }
    }

    #[test]
    fn the_answer_says_how_deep_is_too_deep() {
        let nested = |n: usize| {
            let (open, close) = ("[".repeat(n), "]".repeat(n));
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","a":{open}{close}}}}}"#
            )
        };
        assert!(read(nested(DEEPEST - 3).as_bytes()).is_ok());
        let said = read(nested(DEEPEST).as_bytes()).unwrap_err().why;
        assert_eq!(said, "the message has 129 arrays and objects inside each other; at most 127 are read");
        let strings = br#"{"a":"[[\"[[","b":[{}]}"#;
        assert_eq!(depth(strings), 3);
    }
}
