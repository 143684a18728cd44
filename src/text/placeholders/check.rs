//! Checks that every name in a text exists, even in parts that rendering would skip.

use handlebars::template::{BlockParam, HelperTemplate, Parameter, TemplateElement, TemplateMapping};
use handlebars::{Path, Template};
use serde_json::Value;

use super::{Broken, compiled};

const HELPERS: [&str; 15] = [
    "if", "unless", "each", "with", "lookup", "raw", "eq", "ne", "gt", "gte", "lt", "lte", "and", "or", "not",
];

/// The names that a loop defines besides its item.
const OF_LOOPS: [&str; 4] = ["@index", "@key", "@first", "@last"];

/// Rejects a text that names a value or helper that does not exist. The error is about the first such name.
///
/// `sample` contains a value for each existing name. Each list in it contains one typical item.
pub fn check(source: &str, sample: &Value) -> Result<(), Broken> {
    let template = compiled(source, source, 0)?;
    let mut checker = Checker { scopes: vec![Scope::of(Some(sample))], missing: None };
    checker.template(&template);
    checker.missing.map_or(Ok(()), Err)
}

/// The names that exist in a part of the text.
struct Scope<'a> {
    /// The value in which names are looked up. `None` means that the value is unknown, so any name may exist in it.
    value: Option<&'a Value>,
    /// The names that a block gives its values, as in `{{#each steps as |step|}}`.
    own: Vec<String>,
    /// Whether the part is the body of a loop, which also defines the names in `OF_LOOPS`.
    is_loop: bool,
}

impl<'a> Scope<'a> {
    fn of(value: Option<&'a Value>) -> Self {
        Self { value, own: Vec::new(), is_loop: false }
    }
}

struct Checker<'a> {
    scopes: Vec<Scope<'a>>,
    missing: Option<Broken>,
}

impl<'a> Checker<'a> {
    fn template(&mut self, template: &Template) {
        for (element, place) in template.elements.iter().zip(&template.mapping) {
            match element {
                TemplateElement::HtmlExpression(it) | TemplateElement::Expression(it) => {
                    self.expression(it, place);
                }
                TemplateElement::HelperBlock(it) => self.block(it, place),
                _ => {}
            }
        }
    }

    fn expression(&mut self, it: &HelperTemplate, place: &TemplateMapping) {
        if it.params.is_empty() && it.hash.is_empty() {
            self.parameter(&it.name, place);
        } else {
            self.helper(it, place);
        }
    }

    fn helper(&mut self, it: &HelperTemplate, place: &TemplateMapping) {
        if let Some(name) = name_of(&it.name).filter(|it| !HELPERS.contains(&it.as_str())) {
            self.miss(place, format!("there is no helper `{name}`"));
        }
        for given in it.params.iter().chain(it.hash.values()) {
            self.parameter(given, place);
        }
    }

    fn block(&mut self, it: &HelperTemplate, place: &TemplateMapping) {
        self.helper(it, place);
        let name = name_of(&it.name).unwrap_or_default();
        let is_scope = matches!(name.as_str(), "each" | "with");
        if is_scope {
            let about = it.params.first().and_then(|it| self.parameter(it, place));
            let is_loop = name == "each";
            let inner = about.and_then(|it| if is_loop { item(it) } else { Some(it) });
            self.scopes.push(Scope { value: inner, own: named(it.block_param.as_ref()), is_loop });
        }
        it.template.iter().for_each(|it| self.template(it));
        if is_scope {
            self.scopes.pop();
        }
        it.inverse.iter().for_each(|it| self.template(it));
    }

    /// Checks a parameter, and returns its value if it is known.
    fn parameter(&mut self, it: &Parameter, place: &TemplateMapping) -> Option<&'a Value> {
        match it {
            Parameter::Subexpression(of) => {
                if let TemplateElement::Expression(helper) = of.as_element() {
                    self.helper(helper, place);
                }
                None
            }
            other => self.path(&name_of(other)?, place),
        }
    }

    fn path(&mut self, raw: &str, place: &TemplateMapping) -> Option<&'a Value> {
        let found = self.find(raw);
        if found.is_none() {
            self.miss(place, format!("there is no value `{raw}`"));
        }
        found.flatten()
    }

    /// Returns the value with this name. `None` means that the name does not exist, `Some(None)` that its value is unknown.
    fn find(&self, raw: &str) -> Option<Option<&'a Value>> {
        let mut rest = raw;
        let mut up = 0;
        while let Some(above) = rest.strip_prefix("../") {
            (rest, up) = (above, up + 1);
        }
        let depth = self.scopes.len().checked_sub(1 + up)?;
        if rest.starts_with('@') {
            let of_root = rest.strip_prefix("@root").map(|it| it.trim_start_matches(['/', '.']));
            return match of_root {
                Some(path) => below(self.scopes.first()?.value, path),
                None => {
                    let is_in_loop = self.scopes[..=depth].iter().any(|it| it.is_loop);
                    (is_in_loop && OF_LOOPS.contains(&rest)).then_some(None)
                }
            };
        }
        let first = rest.split(['.', '/']).next().unwrap_or_default();
        if self.scopes.iter().any(|it| it.own.iter().any(|own| own == first)) {
            return Some(None);
        }
        let path =
            rest.strip_prefix("this").filter(|it| !it.starts_with(|c: char| c.is_alphanumeric() || c == '_'));
        below(self.scopes[depth].value, path.unwrap_or(rest).trim_start_matches(['.', '/']))
    }

    fn miss(&mut self, place: &TemplateMapping, reason: String) {
        let number = |it: usize| u32::try_from(it).unwrap_or(1).max(1);
        let broken = Broken { line: number(place.0), column: number(place.1), reason };
        // The first missing name in the text is reported.
        if self.missing.as_ref().is_none_or(|it| (it.line, it.column) > (broken.line, broken.column)) {
            self.missing = Some(broken);
        }
    }
}

/// Follows a path down from a value. The result means the same as that of [`Checker::find`]. Below an unknown value, every
/// path is unknown.
fn below<'a>(value: Option<&'a Value>, path: &str) -> Option<Option<&'a Value>> {
    let mut value = value;
    for part in path.split(['.', '/']).filter(|it| !it.is_empty()) {
        let Some(known) = value else { return Some(None) };
        let part = part.trim_start_matches('[').trim_end_matches(']');
        value = match known {
            Value::Object(map) => Some(map.get(part)?),
            Value::Array(_) if part.bytes().all(|it| it.is_ascii_digit()) => item(known),
            _ => return None,
        };
    }
    Some(value)
}

fn item(list: &Value) -> Option<&Value> {
    list.as_array().and_then(|it| it.first())
}

fn name_of(name: &Parameter) -> Option<String> {
    match name {
        Parameter::Name(name) => Some(name.clone()),
        Parameter::Path(Path::Relative((_, raw)) | Path::Local((_, _, raw))) => Some(raw.clone()),
        _ => None,
    }
}

fn named(given: Option<&BlockParam>) -> Vec<String> {
    let names = match given {
        Some(BlockParam::Single(one)) => vec![one],
        Some(BlockParam::Pair((one, other))) => vec![one, other],
        _ => Vec::new(),
    };
    names.into_iter().filter_map(name_of).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample() -> Value {
        json!({"title": "T", "is_first": true, "tags": ["a"], "attempts": [{"outcome": "failed", "notes": "n"}]})
    }

    #[track_caller]
    fn check_sound(source: &str) {
        assert_eq!(check(source, &sample()), Ok(()), "{source}");
        super::super::fill(source, &sample()).unwrap_or_else(|it| panic!("{it:?}: {source}"));
    }

    #[track_caller]
    fn check_broken(source: &str, line: u32, column: u32, reason: &str) {
        let broken = check(source, &sample()).expect_err(source);
        assert_eq!((broken.line, broken.column), (line, column), "{source}: {broken:?}");
        assert!(broken.reason.contains(reason), "{source}: {broken:?}");
    }

    #[test]
    fn existing_values_and_helpers_may_be_named() {
        check_sound("plain {{title}} {{{title}}} {{this.title}} {{! a remark }}");
        check_sound("{{#if is_first}}{{title}}{{else if tags}}{{tags.0}}{{else}}{{title}}{{/if}}");
        check_sound(
            "{{#each tags}}{{this}} {{@index}} {{../title}} {{@root/title}}{{else}}{{title}}{{/each}}",
        );
        check_sound("{{#each attempts}}{{outcome}}: {{this.notes}}{{#unless @last}}, {{/unless}}{{/each}}");
        check_sound("{{#each attempts as |it|}}{{it.outcome}}{{/each}}");
        check_sound("{{#each attempts}}{{#with outcome}}{{this}} {{@index}}{{/with}}{{/each}}");
        check_sound("{{#if (eq title \"T\")}}{{lookup tags 0}}{{/if}}{{#with title}}{{this}}{{/with}}");
    }

    #[test]
    fn unknown_values_and_helpers_are_reported_with_their_place() {
        check_broken("a\n  {{titel}}\n", 2, 3, "there is no value `titel`");
        check_broken("{{#if is_first}}\nx\n{{else}}\n{{titel}}\n{{/if}}", 4, 1, "no value `titel`");
        check_broken("{{#unless is_first}}\n  {{shout title}}{{/unless}}", 2, 3, "no helper `shout`");
        check_broken("{{#loop tags}}{{/loop}}", 1, 1, "no helper `loop`");
        check_broken("{{#each attempts}}{{title}}{{/each}}", 1, 19, "no value `title`");
        check_broken("{{#each attempts}}{{this.outcom}}{{/each}}", 1, 19, "no value `this.outcom`");
        check_broken("{{tags.length}}", 1, 1, "no value `tags.length`");
        check_broken("{{#if (same title)}}{{/if}}", 1, 1, "no helper `same`");
        check_broken("{{@index}} {{../title}}", 1, 1, "no value `@index`");
        check_broken("{{#with title}}{{@index}}{{/with}}", 1, 16, "no value `@index`");
        check_broken("a\n{{#if title}}\n", 3, 1, "not closed");
        check_broken("{{nope}} {{#if also}}{{/if}}", 1, 1, "`nope`");
        check_broken("{{> title}}", 1, 1, "partials");
    }
}
