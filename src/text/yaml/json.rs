//! Converts YAML to JSON. The size is limited, because expanded aliases can be far larger than the text.

use super::{Kind, Tree, View, resolve};
use serde_json::{Map, Number, Value};

/// How many values and bytes the expanded aliases may add to those of the text itself.
const MORE_NODES: usize = 20_000;
const MORE_BYTES: usize = 256 << 10;

/// A value would be larger than the limit after its aliases are expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its aliases expand to more than {MORE_NODES} values or {MORE_BYTES} bytes")]
pub struct JsonError;

impl View<'_> {
    /// Converts the value to JSON. Merges are applied, aliases are expanded and tags are dropped.
    ///
    /// Keys become texts. If several keys become the same text, the first one wins. Integers beyond 64 bits, integers with
    /// leading zeros, infinities and NaN become texts as they are written.
    pub fn to_json(self) -> Result<Value, JsonError> {
        Budget::of(self.tree).to_json(self)
    }

    /// The number of nodes that the value has after its aliases are expanded. Counting stops above `limit`.
    pub(crate) fn subtree_size(self, limit: usize) -> usize {
        let children: &mut dyn Iterator<Item = View<'_>> = match self.kind() {
            Kind::List => &mut self.items(),
            Kind::Map => &mut self.own_entries().flat_map(|(key, value)| [key, value]),
            _ => return 1,
        };
        let mut size = 1;
        for child in children {
            if size > limit {
                break;
            }
            size += child.subtree_size(limit - size.min(limit));
        }
        size
    }
}

/// The nodes and bytes that may still be produced from one text. A caller that converts several values of a text uses one
/// budget for all of them, so that many small expansions count as a large one.
#[derive(Debug)]
pub struct Budget {
    nodes: usize,
    bytes: usize,
}

impl Budget {
    pub fn of(tree: &Tree) -> Self {
        Self { nodes: tree.nodes.len() + MORE_NODES, bytes: tree.source.len() + MORE_BYTES }
    }

    /// Like [`View::to_json`], within this budget. `MAX_DEPTH` limits the depth of the recursion, aliases included.
    pub fn to_json(&mut self, view: View<'_>) -> Result<Value, JsonError> {
        let text = view.text().unwrap_or_default();
        self.spend(text)?;
        Ok(match view.kind() {
            Kind::Null => Value::Null,
            Kind::Bool => Value::Bool(text.eq_ignore_ascii_case("true")),
            Kind::Number => number(text),
            Kind::Text => Value::from(text),
            Kind::List => Value::Array(view.items().map(|it| self.to_json(it)).collect::<Result<_, _>>()?),
            Kind::Map => self.convert_map(view)?,
        })
    }

    fn convert_map(&mut self, map: View<'_>) -> Result<Value, JsonError> {
        let mut object = Map::new();
        for (key, value) in map.entries() {
            let name = match key.kind() {
                Kind::List | Kind::Map => self.to_json(key)?.to_string(),
                _ => key.text().unwrap_or("null").to_owned(),
            };
            self.spend(&name)?;
            if !object.contains_key(&name) {
                let value = self.to_json(value)?;
                object.insert(name, value);
            }
        }
        Ok(Value::Object(object))
    }

    fn spend(&mut self, text: &str) -> Result<(), JsonError> {
        self.nodes = self.nodes.checked_sub(1).ok_or(JsonError)?;
        self.bytes = self.bytes.checked_sub(text.len()).ok_or(JsonError)?;
        Ok(())
    }
}

fn number(text: &str) -> Value {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    // YAML 1.1 reads a number with leading zeros as octal, the core schema as decimal. As the zeros may be significant,
    // the number becomes a text as it is written.
    if digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|it| it.is_ascii_digit()) {
        return Value::from(text);
    }
    if let Some(exact) = resolve::integer(text) {
        let number =
            i64::try_from(exact).map(Number::from).or_else(|_| u64::try_from(exact).map(Number::from));
        return number.map_or_else(|_| Value::from(text), Value::Number);
    }
    let is_float = text.contains(['.', 'e', 'E']) && !text.starts_with("0x");
    let float = text.parse::<f64>().ok().filter(|_| is_float).and_then(Number::from_f64);
    float.map_or_else(|| Value::from(text), Value::Number)
}
