//! The rules of large vendors for the schemas of tools. Every tool of every set must follow all of them.
//!
//! A vendor that rejects one schema usually rejects the whole list of tools, so one tool can make all others
//! unavailable.

use serde_json::{Map, Value};

use crate::serve::mcp::toolset::{Toolset, tools};

/// What a vendor accepts as the schema of a tool's arguments.
struct Rules {
    vendor: &'static str,
    /// The keywords of JSON Schema that are allowed below the root.
    words: &'static [&'static str],
    /// The keywords that are allowed at the root.
    root_words: &'static [&'static str],
    /// Whether each object below the root must name its properties. Strict modes add `additionalProperties: false`, and
    /// list all properties in `required`.
    is_strict: bool,
    /// Whether each object, including the root, must have at least one property.
    needs_properties: bool,
    most_depth: usize,
    most_properties: usize,
    most_tools: usize,
    longest_name: usize,
    longest_description: usize,
}

const VENDORS: [Rules; 4] = [
    // OpenAI: platform.openai.com/docs/guides/structured-outputs, "Supported schemas", and guides/function-calling, "Strict
    // mode". All fields are required, and `additionalProperties` is false in each object. A schema has at most 5 levels and
    // 100 properties, which were the limits of the first models with this mode. The API reference of `tools` limits names
    // and the number of tools. OpenAI's Agents SDK makes schemas strict (`ensure_strict_json_schema`). It fails if an object
    // allows arbitrary keys.
    Rules {
        vendor: "OpenAI, strict",
        words: &[
            "type",
            "properties",
            "required",
            "items",
            "enum",
            "description",
            "anyOf",
            "$ref",
            "$defs",
            "const",
        ],
        root_words: &["type", "properties", "required", "description"],
        is_strict: true,
        needs_properties: false,
        most_depth: 5,
        most_properties: 100,
        most_tools: 128,
        longest_name: 64,
        longest_description: 1024,
    },
    // Anthropic: docs.anthropic.com, "Tool use", "Structured outputs: JSON Schema limitations". `input_schema` is an
    // object. Strict tools must not contain objects with arbitrary keys. Names of tools and properties have at most 64
    // characters of [a-zA-Z0-9_-].
    Rules {
        vendor: "Anthropic, strict",
        words: &[
            "type",
            "properties",
            "required",
            "items",
            "enum",
            "description",
            "anyOf",
            "$ref",
            "$defs",
            "const",
            "default",
        ],
        root_words: &["type", "properties", "required", "description"],
        is_strict: true,
        needs_properties: false,
        most_depth: usize::MAX,
        most_properties: usize::MAX,
        most_tools: usize::MAX,
        longest_name: 64,
        longest_description: usize::MAX,
    },
    // Google: ai.google.dev/api/caching, "Schema". This is a subset of OpenAPI 3.0 without `additionalProperties`, `$ref`
    // and `oneOf`. `type` is a single type, and an object has properties. The library google-genai parses MCP schemas as
    // such a `Schema`. If one of them has a keyword that `Schema` lacks, google-genai refuses all tools of the server.
    Rules {
        vendor: "Gemini",
        words: &[
            "type",
            "properties",
            "required",
            "items",
            "enum",
            "description",
            "anyOf",
            "nullable",
            "default",
            "title",
        ],
        root_words: &["type", "properties", "required", "description"],
        is_strict: false,
        needs_properties: true,
        most_depth: usize::MAX,
        most_properties: usize::MAX,
        most_tools: 128,
        longest_name: 63,
        longest_description: 1024,
    },
    // Amazon: docs.aws.amazon.com/nova, "Defining a tool": the root has only type, properties and required. Bedrock's
    // API reference, "ToolSpecification": a name has 1 to 64 characters of [a-zA-Z0-9_-], and the description is not empty.
    Rules {
        vendor: "Amazon Bedrock, Nova",
        words: &["type", "properties", "required", "items", "enum", "description"],
        root_words: &["type", "properties", "required"],
        is_strict: false,
        needs_properties: false,
        most_depth: usize::MAX,
        most_properties: usize::MAX,
        most_tools: usize::MAX,
        longest_name: 64,
        longest_description: 10_000,
    },
];

/// The check of one schema against a vendor's rules.
struct Check<'a> {
    rules: &'a Rules,
    n_properties: usize,
    faults: Vec<String>,
}

impl Check<'_> {
    fn schema(&mut self, path: &str, schema: &Value, depth: usize) {
        let Some(object) = schema.as_object() else {
            self.faults.push(format!("{path} is no schema: {schema}"));
            return;
        };
        let allowed = if depth == 0 { self.rules.root_words } else { self.rules.words };
        let unknown = object.keys().filter(|it| !allowed.contains(&it.as_str()));
        self.faults.extend(unknown.map(|it| format!("{path} has `{it}`")));
        if depth > self.rules.most_depth {
            self.faults.push(format!("{path} is too deep"));
        }
        match object.get("type").and_then(Value::as_str) {
            Some("object") => self.object(path, object, depth),
            Some("array") => match object.get("items") {
                Some(items) => self.schema(&format!("{path}[]"), items, depth + 1),
                None => self.faults.push(format!("{path} is a list of anything")),
            },
            Some("string" | "integer" | "number" | "boolean") if depth > 0 => {}
            other => self.faults.push(format!("{path} has the type {other:?}")),
        }
        let words = object.get("enum").and_then(Value::as_array);
        if words
            .is_some_and(|it| it.is_empty() || object["type"] != "string" || !it.iter().all(Value::is_string))
        {
            self.faults.push(format!("{path} has an enum of something other than texts"));
        }
    }

    fn object(&mut self, path: &str, object: &Map<String, Value>, depth: usize) {
        let properties = object.get("properties").and_then(Value::as_object);
        let Some(properties) = properties.filter(|it| !it.is_empty()) else {
            if self.rules.needs_properties || (self.rules.is_strict && depth > 0) {
                self.faults.push(format!("{path} is an object of any keys"));
            }
            return;
        };
        self.n_properties += properties.len();
        let required = object.get("required").and_then(Value::as_array);
        for it in required.into_iter().flatten() {
            if !it.as_str().is_some_and(|it| properties.contains_key(it)) {
                self.faults.push(format!("{path} requires {it}, which it does not have"));
            }
        }
        for (name, schema) in properties {
            if !is_name(name, 64) {
                self.faults.push(format!("{path} has a property `{name}`"));
            }
            self.schema(&format!("{path}.{name}"), schema, depth + 1);
        }
    }
}

fn is_name(name: &str, longest: usize) -> bool {
    let is_word = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    (1..=longest).contains(&name.len()) && name.chars().all(is_word)
}

/// The violations of a vendor's rules in a list of tools. The list is the JSON that clients get.
fn faults(rules: &Rules, list: &[Value]) -> Vec<String> {
    let mut all = Vec::new();
    if list.len() > rules.most_tools {
        all.push(format!("there are {} tools", list.len()));
    }
    for tool in list {
        let (name, description) =
            (tool["name"].as_str().unwrap_or_default(), tool["description"].as_str().unwrap_or_default());
        let mut check = Check { rules, n_properties: 0, faults: Vec::new() };
        check.schema(name, &tool["inputSchema"], 0);
        if check.n_properties > rules.most_properties {
            check.faults.push(format!("{name} has {} properties", check.n_properties));
        }
        if !is_name(name, rules.longest_name) {
            check.faults.push(format!("`{name}` is not a name"));
        }
        if !(1..=rules.longest_description).contains(&description.len()) {
            check.faults.push(format!("{name} has a description of {} bytes", description.len()));
        }
        all.extend(check.faults);
    }
    all.into_iter().map(|it| format!("{}: {it}", rules.vendor)).collect()
}

#[test]
fn every_tool_of_every_set_keeps_the_rules_of_every_vendor() {
    for set in [Toolset::All, Toolset::Executor, Toolset::Compat] {
        let list: Vec<_> =
            tools(set, false).iter().map(|it| serde_json::to_value(it.listed()).unwrap()).collect();
        for rules in &VENDORS {
            let faults = faults(rules, &list);
            assert!(faults.is_empty(), "{set:?}: {faults:#?}");
        }
    }
}

#[test]
fn schemas_that_a_vendor_refuses_are_found() {
    let tool = |input: Value| serde_json::json!({"name": "t", "description": "d", "inputSchema": input});
    let open = serde_json::json!({"type": "object", "properties": {"m": {"type": "object", "additionalProperties": true}}});
    let union = serde_json::json!({"type": "object", "properties": {"m": {"oneOf": [{"type": "string"}]}}});
    let nullable = serde_json::json!({"type": "object", "properties": {"m": {"type": ["string", "null"]}}});
    for (schema, n) in [(open, 4), (union, 4), (nullable, 4)] {
        let refuse = VENDORS.iter().filter(|it| !faults(it, &[tool(schema.clone())]).is_empty()).count();
        assert_eq!(refuse, n, "{schema}");
    }
}
