//! Detects duplicate keys of a mapping.

use super::{Kind, NONE, Node, NodeId, Style, Tree, View, YamlError};
use std::collections::HashSet;

/// Up to this number of keys, comparing each key with all earlier keys is faster than hashing.
const FEW: usize = 24;

/// The kind, the tag and the text of a key. Two keys are equal if they agree in all three. For example, `1` and `"1"` differ
/// in kind. Lists and mappings are equal only if they are written alike.
type Identity<'a> = (Kind, u32, &'a str);

/// Rejects the second of two equal keys, and sets `has_merge` of the mapping.
pub(super) fn check(tree: &mut Tree, map: NodeId) -> Result<(), YamlError> {
    let view = View { tree, id: map };
    let has_merge = view.own_entries().any(|(key, value)| key.merges(value));
    let repeated = if view.len() <= FEW { few(view) } else { many(view) };
    if let Some(key) = repeated {
        let name = key.text().unwrap_or("null");
        let message = format!("the key `{name}` occurs a second time");
        return Err(YamlError { code: "duplicate-key", at: key.outer_span().start, message });
    }
    let node: &mut Node = &mut tree.nodes[map as usize];
    node.has_merge = has_merge;
    Ok(())
}

fn few<'a>(map: View<'a>) -> Option<View<'a>> {
    let mut seen = [(Kind::Null, NONE, ""); FEW];
    for (nth, (key, _)) in map.own_entries().enumerate() {
        let identity = identity(key);
        if seen[..nth].contains(&identity) {
            return Some(key);
        }
        seen[nth] = identity;
    }
    None
}

fn many<'a>(map: View<'a>) -> Option<View<'a>> {
    let mut seen = HashSet::with_capacity(map.len());
    map.own_entries().map(|(key, _)| key).find(|key| !seen.insert(identity(*key)))
}

fn identity<'a>(key: View<'a>) -> Identity<'a> {
    let target = key.target();
    let text = match target.kind() {
        Kind::Null => "",
        Kind::List | Kind::Map => {
            let span = target.span();
            target.tree.source.get(span).unwrap_or_default()
        }
        Kind::Bool | Kind::Number | Kind::Text => target.content(),
    };
    // A plain `<<` is the merge key. A quoted `<<` is an ordinary text, so the two keys must differ.
    let is_merge = target.style() == Style::Plain && text == "<<";
    (target.kind(), if is_merge { NONE - 1 } else { target.raw().tag }, text)
}
