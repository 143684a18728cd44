//! The comparison helpers for the front matter. While the front matter is rendered, unique words stand for the texts of
//! values (see `fill_yaml`). The helpers compare the texts, not these words.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use handlebars::{
    Context, Handlebars, Helper, HelperDef, HelperResult, Output, RenderContext, RenderError,
    RenderErrorReason, Renderable, ScopedJson,
};
use serde_json::Value;

struct Comparison<'a> {
    name: &'static str,
    /// The texts, by the words that stand for them.
    texts: &'a BTreeMap<String, String>,
}

/// Registers the helpers. They replace those of handlebars, and compare the texts for which words stand. Unlike those of
/// handlebars, they do not order booleans.
pub(super) fn register<'a>(handlebars: &mut Handlebars<'a>, texts: &'a BTreeMap<String, String>) {
    for name in ["eq", "ne", "gt", "gte", "lt", "lte"] {
        handlebars.register_helper(name, Box::new(Comparison { name, texts }));
    }
}

impl Comparison<'_> {
    fn holds(&self, of: &Helper<'_>) -> Result<bool, RenderError> {
        let value = |nth: usize| {
            let found = of.param(nth).filter(|it| !it.is_value_missing());
            found.map(|it| it.value()).ok_or(RenderErrorReason::ParamNotFoundForIndex(self.name, nth))
        };
        let (a, b) = (value(0)?, value(1)?);
        let order = || self.order(a, b);
        Ok(match self.name {
            "eq" => self.are_equal(a, b),
            "ne" => !self.are_equal(a, b),
            "gt" => order().is_some_and(Ordering::is_gt),
            "gte" => order().is_some_and(Ordering::is_ge),
            "lt" => order().is_some_and(Ordering::is_lt),
            _ => order().is_some_and(Ordering::is_le),
        })
    }

    /// The order of two texts or two numbers; a text that is compared with a number is read as a number. `None` for other
    /// values.
    fn order(&self, a: &Value, b: &Value) -> Option<Ordering> {
        let number = |it: &Value| it.as_f64().or_else(|| self.text(it.as_str()?).parse().ok());
        match (a, b) {
            (Value::String(a), Value::String(b)) => Some(self.text(a).cmp(self.text(b))),
            _ => number(a)?.partial_cmp(&number(b)?),
        }
    }

    /// The text for which a word stands. Other texts stand for themselves.
    fn text<'b>(&'b self, word: &'b str) -> &'b str {
        self.texts.get(word).map_or(word, String::as_str)
    }

    fn are_equal(&self, a: &Value, b: &Value) -> bool {
        match (a, b) {
            (Value::Array(a), Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.are_equal(a, b))
            }
            (Value::String(a), Value::String(b)) => self.text(a) == self.text(b),
            _ => a == b,
        }
    }
}

impl HelperDef for Comparison<'_> {
    fn call<'reg: 'rc, 'rc>(
        &self,
        of: &Helper<'rc>,
        handlebars: &'reg Handlebars<'reg>,
        context: &'rc Context,
        render: &mut RenderContext<'reg, 'rc>,
        out: &mut dyn Output,
    ) -> HelperResult {
        let holds = self.holds(of)?;
        if !of.is_block() {
            return Ok(out.write(&holds.to_string())?);
        }
        let chosen = if holds { of.template() } else { of.inverse() };
        chosen.map_or(Ok(()), |it| it.render(handlebars, context, render, out))
    }

    fn call_inner<'reg: 'rc, 'rc>(
        &self,
        of: &Helper<'rc>,
        _: &'reg Handlebars<'reg>,
        _: &'rc Context,
        _: &mut RenderContext<'reg, 'rc>,
    ) -> Result<ScopedJson<'rc>, RenderError> {
        Ok(ScopedJson::Derived(Value::Bool(self.holds(of)?)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{fill, fill_file};

    #[test]
    fn a_front_matter_compares_texts_as_the_body_does() {
        let values = json!({"a": "x", "b": "x", "c": "y", "l": ["x"], "m": ["x"], "n": 1});
        for (call, expected) in [
            ("eq a \"x\"", true),
            ("eq a b", true),
            ("eq a c", false),
            ("ne a c", true),
            ("ne a \"x\"", false),
            ("eq l m", true),
            ("eq n 1", true),
            ("eq a n", false),
            ("gt c a", true),
            ("gt a b", false),
            ("gte a b", true),
            ("lt a \"y\"", true),
            ("lte c a", false),
            ("lt n 10", true),
            ("gt \"10\" n", true),
            ("gt a n", false),
        ] {
            let source = format!("k: {{{{#if ({call})}}}}yes{{{{else}}}}no{{{{/if}}}}\n");
            let wanted = if expected { "k: yes\n" } else { "k: no\n" };
            assert_eq!(fill(&source, &values).as_deref(), Ok(wanted), "{call}");
            let filled = fill_file(&format!("---\n{source}---\n"), &values);
            assert_eq!(filled, Ok(format!("---\n{wanted}---\n")), "{call}");
            let name = call.split(' ').next().unwrap();
            let block = format!("---\nk: {{{{#{call}}}}}yes{{{{else}}}}no{{{{/{name}}}}}\n---\n");
            assert_eq!(fill_file(&block, &values), Ok(format!("---\n{wanted}---\n")), "{call}");
        }
        assert!(fill_file("---\nk: {{eq a missing}}\n---\n", &values).is_err());
        assert!(fill_file("---\nk: {{eq a}}\n---\n", &values).is_err());
    }
}
