//! Pages of lists.
//!
//! A cursor contains the identifier of the last item that was shown, and the number of items up to and including it. The
//! next page begins after that item, even if items before it were added or removed. If that item is gone or has no
//! identifier, the next page begins after that number of items.

use std::fmt::Write;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::Problem;
use super::call::{Call, Reply};
use super::route::{Parameter, form, query};

/// The default number of items of a page.
const USUAL: u32 = 50;
const MOST: u32 = 200;

/// The pattern of a cursor: the number of items so far, and the last item's identifier as hexadecimal digits.
const FORM: &str = "^[0-9]{1,9}-([0-9a-f]{2}){0,512}$";

/// The parameters of a list.
pub(crate) fn parameters() -> [Parameter; 2] {
    [
        query("limit", limit(), "How many at most, from 1 to 200; 50 if it is left out", 10),
        query("cursor", form(FORM), "Where to continue: `next_cursor` of the previous page", "0-"),
    ]
}

/// The schema of `limit`, the number of items of a page.
pub(crate) fn limit() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": MOST})
}

/// Reduces a list in a reply to one page. `key` is the name of the list's field. `id` returns the identifier of an item;
/// it is empty for items that have none.
pub(crate) fn page(
    call: &Call,
    mut reply: Reply,
    key: &str,
    id: impl Fn(&Value) -> String,
) -> Result<Reply, Problem> {
    let limit = call.count("limit").unwrap_or(USUAL) as usize;
    let cursor = call.text("cursor").map(|it| read(&it)).transpose()?;
    let Some(items) = reply.body.get_mut(key).and_then(Value::as_array_mut) else { return Ok(reply) };
    let begin = cursor.map_or(0, |(place, last)| {
        let is_last = |it: &Value| !last.is_empty() && id(it) == last;
        // Several items can have the same identifier, so the item at the old position is checked first.
        let is_in_place = place.checked_sub(1).and_then(|it| items.get(it)).is_some_and(is_last);
        let after = || items.iter().position(is_last).map(|it| it + 1);
        if is_in_place { place } else { after().unwrap_or(place) }
    });
    items.drain(..begin.min(items.len()));
    let has_more = items.len() > limit;
    items.truncate(limit);
    let end = begin + items.len();
    let next = items.last().filter(|_| has_more).map(|it| write(end, &id(it)));
    if let Some(body) = reply.body.as_object_mut() {
        body.insert("next_cursor".to_owned(), next.clone().into());
    }
    reply.next_cursor = next;
    Ok(reply)
}

/// Like [`page`], and sets the field `more` to the number of items on later pages.
pub(crate) fn page_with_more(
    call: &Call,
    reply: Reply,
    key: &str,
    id: impl Fn(&Value) -> String,
) -> Result<Reply, Problem> {
    let all = reply.body.get(key).and_then(Value::as_array).map_or(0, Vec::len);
    let mut reply = page(call, reply, key, id)?;
    let place = reply.next_cursor.as_deref().and_then(|it| it.split_once('-')?.0.parse::<usize>().ok());
    let more = place.map_or(0, |it| all.saturating_sub(it));
    if let Some(body) = reply.body.as_object_mut() {
        body.insert("more".to_owned(), more.into());
    }
    Ok(reply)
}

fn write(place: usize, last: &str) -> String {
    let mut cursor = format!("{place}-");
    last.bytes().for_each(|it| {
        write!(cursor, "{it:02x}").ok();
    });
    cursor
}

fn read(cursor: &str) -> Result<(usize, String), Problem> {
    let wrong = || {
        let problem = Problem::new(StatusCode::BAD_REQUEST, "parameter-invalid", "`cursor` is invalid");
        problem.hint("use `next_cursor` of the previous page")
    };
    let (place, digits) = cursor.split_once('-').ok_or_else(wrong)?;
    let is_plain = |it: &str, most: usize| it.len() <= most && it.bytes().all(|c| c.is_ascii_hexdigit());
    if place.is_empty() || !is_plain(place, 9) || !is_plain(digits, 1024) || digits.len() % 2 != 0 {
        return Err(wrong());
    }
    let place = place.parse().map_err(|_| wrong())?;
    let bytes =
        (0..digits.len()).step_by(2).filter_map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok());
    let last = String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned();
    Ok((place, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(names: &[&str]) -> Reply {
        let items: Vec<_> = names.iter().map(|it| json!({"id": it})).collect();
        Reply::of("plan-list", json!({"plans": items}))
    }

    fn shown(names: &[&str], limit: u32, cursor: Option<&str>) -> (String, Option<String>) {
        let mut call = Call::default();
        call.query.insert("limit".to_owned(), limit.into());
        if let Some(cursor) = cursor {
            call.query.insert("cursor".to_owned(), cursor.into());
        }
        let id = |it: &Value| it["id"].as_str().unwrap_or_default().to_owned();
        let reply = page(&call, items(names), "plans", id).unwrap();
        let ids = reply.body["plans"].as_array().unwrap().iter().map(id);
        assert_eq!(reply.body["next_cursor"], json!(reply.next_cursor));
        (ids.collect::<Vec<_>>().join(""), reply.next_cursor)
    }

    #[test]
    fn pages_together_are_the_list() {
        let names = ["a", "é", "c", "d", "e"];
        for limit in 1..=6 {
            let (mut all, mut cursor) = shown(&names, limit, None);
            while let Some(at) = cursor {
                let (more, next) = shown(&names, limit, Some(&at));
                assert!(!more.is_empty());
                all += &more;
                cursor = next;
            }
            assert_eq!(all, "aécde", "{limit}");
        }
    }

    #[test]
    fn items_without_a_key_or_with_the_same_key_are_each_shown_once() {
        let rows: Vec<_> = (0..5).map(|it| json!([it])).collect();
        for key in ["", "same"] {
            let (mut shown, mut cursor) = (Vec::new(), None::<String>);
            for _ in 0..3 {
                let mut call = Call::default();
                call.query.insert("limit".to_owned(), 2.into());
                call.query.extend(cursor.map(|it| ("cursor".to_owned(), it.into())));
                let reply = Reply::of("table", json!({"rows": rows}));
                let reply = page(&call, reply, "rows", |_| key.to_owned()).unwrap();
                shown.extend(reply.body["rows"].as_array().unwrap().clone());
                cursor = reply.next_cursor;
            }
            assert_eq!((shown, cursor), (rows.clone(), None), "{key:?}");
        }
    }

    #[test]
    fn a_list_that_changes_repeats_nothing_and_skips_nothing_that_stayed() {
        let cursor = shown(&["a", "b", "c", "d"], 2, None).1.unwrap();
        assert_eq!(shown(&["0", "a", "b", "c", "d"], 2, Some(&cursor)).0, "cd");
        assert_eq!(shown(&["b", "c", "d"], 2, Some(&cursor)).0, "cd");
        assert_eq!(shown(&["a", "c", "d"], 2, Some(&cursor)).0, "d");
        assert_eq!(shown(&[], 2, Some(&cursor)), (String::new(), None));
        assert_eq!(shown(&["a"], 2, Some("999999999-00ff")).0, "");
    }

    #[test]
    fn an_invalid_cursor_is_refused() {
        for cursor in ["", "1", "-61", "x-61", "1-6", "1-6g", "1-é", "1234567890-", "1-61-"] {
            assert!(read(cursor).is_err(), "{cursor}");
        }
        assert_eq!(read(&write(7, "auth:2.5")).unwrap(), (7, "auth:2.5".to_owned()));
    }
}
