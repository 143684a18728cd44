//! The helpers `eq` and `ne` for front matter, where words stand for the texts of values: they compare the texts.

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

/// Registers the helpers. They replace those of handlebars, and differ from them only in the texts that they compare.
pub(super) fn register<'a>(handlebars: &mut Handlebars<'a>, texts: &'a BTreeMap<String, String>) {
    for name in ["eq", "ne"] {
        handlebars.register_helper(name, Box::new(Comparison { name, texts }));
    }
}

impl Comparison<'_> {
    fn holds(&self, of: &Helper<'_>) -> Result<bool, RenderError> {
        let value = |nth: usize| {
            let found = of.param(nth).filter(|it| !it.is_value_missing());
            found.map(|it| it.value()).ok_or(RenderErrorReason::ParamNotFoundForIndex(self.name, nth))
        };
        let is_equal = self.are_equal(value(0)?, value(1)?);
        Ok(is_equal == (self.name == "eq"))
    }

    fn are_equal(&self, a: &Value, b: &Value) -> bool {
        let text = |it| self.texts.get(it).unwrap_or(it);
        match (a, b) {
            (Value::Array(a), Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.are_equal(a, b))
            }
            (Value::String(a), Value::String(b)) => text(a) == text(b),
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
        ] {
            let source = format!("k: {{{{#if ({call})}}}}yes{{{{else}}}}no{{{{/if}}}}\n");
            let wanted = if expected { "k: yes\n" } else { "k: no\n" };
            assert_eq!(fill(&source, &values).as_deref(), Ok(wanted), "{call}");
            let filled = fill_file(&format!("---\n{source}---\n"), &values);
            assert_eq!(filled, Ok(format!("---\n{wanted}---\n")), "{call}");
            let block = format!("---\nk: {{{{#{call}}}}}yes{{{{else}}}}no{{{{/{}}}}}\n---\n", &call[..2]);
            assert_eq!(fill_file(&block, &values), Ok(format!("---\n{wanted}---\n")), "{call}");
        }
        assert!(fill_file("---\nk: {{eq a missing}}\n---\n", &values).is_err());
        assert!(fill_file("---\nk: {{eq a}}\n---\n", &values).is_err());
    }
}
