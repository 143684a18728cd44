//! The bodies that routes take; a field that is none of theirs is refused. `by` is the daemon's user if it is left out.

use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use crate::api::schema::PLACE;
use crate::plan::records::Priority;

/// A body with who asks, and whether only to look; `owned` has also what stands for owning a step, `bare` nobody who asks.
macro_rules! bodies {
    () => {};
    ($(#[$about:meta])* owned $name:ident { $($fields:tt)* } $($rest:tt)*) => {
        bodies! {
            $(#[$about])* $name {
                $($fields)*
                /// The claim that this update belongs to.
                pub(crate) claim: Option<String>,
                /// Do it whatever stands against it; this is recorded.
                #[serde(default)]
                pub(crate) force: bool,
            }
            $($rest)*
        }
    };
    ($(#[$about:meta])* bare $name:ident { $($fields:tt)* } $($rest:tt)*) => {
        $(#[$about])*
        #[derive(Debug, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $($fields)*
            /// Answer with the diff and write nothing.
            // It is looked up before the body is read.
            #[serde(rename = "dry_run", default)]
            _dry_run: bool,
        }
        bodies! { $($rest)* }
    };
    ($(#[$about:meta])* $name:ident { $($fields:tt)* } $($rest:tt)*) => {
        bodies! {
            $(#[$about])* bare $name {
                $($fields)*
                /// Who does it; the daemon's user if it is left out.
                pub(crate) by: Option<String>,
            }
            $($rest)*
        }
    };
}

bodies! {
    /// A write of which nothing else has to be said.
    Dry {}

    /// A change that is taken back.
    Undo {
        /// The change, as the list names it; the last one if it is left out.
        pub(crate) id: Option<String>,
        /// The claim that is given back with the change.
        pub(crate) claim: Option<String>,
        /// Take back also the claim of another owner.
        #[serde(default)]
        pub(crate) force: bool,
    }

    /// What happened to a step or a plan.
    owned Move {
        /// What happened, recorded as an attempt; on a plan as a note.
        pub(crate) message: Option<String>,
    }

    /// Who takes a step, and for how long.
    Claim {
        /// How long it holds, as 90s, 30m, 2h or 1d; else as configured.
        #[schema(pattern = "^[1-9][0-9]{0,3}[smhd]$")]
        pub(crate) lease: Option<String>,
        /// Take a step that is named whatever stands against it; this is recorded.
        #[serde(default)]
        pub(crate) force: bool,
    }

    /// How long a claim holds from now on.
    bare Renew {
        /// How long from now on, as 90s, 30m, 2h or 1d; else as before.
        #[schema(pattern = "^[1-9][0-9]{0,3}[smhd]$")]
        pub(crate) lease: Option<String>,
    }

    /// How far the work came.
    owned Release {
        /// How far it came, recorded as an attempt.
        pub(crate) message: Option<String>,
        /// Give it back only if its claim has lapsed.
        #[serde(default)]
        pub(crate) expired: bool,
    }

    /// A try at a step.
    owned Attempt {
        /// How it went, in a word or two.
        #[schema(pattern = "[^\\s\\x00-\\x1f]")]
        pub(crate) outcome: String,
        /// More of it.
        pub(crate) notes: Option<String>,
        /// When it was, as 2026-11-21T09:14:03Z; now if it is left out.
        #[schema(pattern = "^[0-9]{4}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-9])|(0[13-9]|1[0-2])-30|(0[13578]|1[02])-31)T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$")]
        pub(crate) at: Option<String>,
        /// Give the step this status in the same write, in place of what an attempt makes of it.
        #[schema(schema_with = step_status)]
        pub(crate) status: Option<String>,
        /// Leave the step's status as it is; not together with `status`.
        #[serde(default)]
        pub(crate) keep_status: bool,
    }

    /// A remark.
    Note {
        #[schema(pattern = "[^\\s\\x00-\\x1f]")]
        pub(crate) text: String,
        /// `info`, `warning` or `instruction`; `info` if it is left out.
        #[serde(rename = "type")]
        #[schema(schema_with = note_type)]
        pub(crate) kind: Option<String>,
    }

    /// A yes or no, which only a person gives.
    Confirm {
        /// The phase of a plan.
        pub(crate) phase: Option<String>,
        /// Say no.
        #[serde(default)]
        pub(crate) reject: bool,
        /// Why.
        pub(crate) note: Option<String>,
    }

    /// A new plan with its steps.
    New {
        /// Its id is made from it.
        #[schema(pattern = "[^\\s\\x00-\\x1f]")]
        pub(crate) title: String,
        /// The titles of its steps.
        #[serde(default)]
        #[schema(schema_with = titles)]
        pub(crate) steps: Vec<String>,
        /// What it is about.
        pub(crate) description: Option<String>,
        /// What is to be reached.
        #[serde(default)]
        pub(crate) goals: Vec<String>,
        /// When it is a success.
        #[serde(default)]
        pub(crate) success_criteria: Vec<String>,
        #[serde(default)]
        pub(crate) tags: Vec<String>,
        pub(crate) category: Option<String>,
        /// How urgent it is; `medium` if it is left out.
        #[schema(schema_with = priority)]
        pub(crate) priority: Option<String>,
        /// The program that it belongs to.
        pub(crate) program: Option<String>,
        /// Make a program, which other plans belong to.
        #[serde(default)]
        pub(crate) is_program: bool,
        /// Plans that are there and belong to the new program.
        #[serde(default)]
        pub(crate) children: Vec<String>,
        /// Hand out nothing until `start` makes it active.
        #[serde(default)]
        pub(crate) draft: bool,
        /// Let each step wait for the one before.
        #[serde(default)]
        pub(crate) sequential: bool,
        /// The template that it begins with.
        pub(crate) template: Option<String>,
    }

    /// A new step.
    Add {
        #[schema(pattern = "[^\\s\\x00-\\x1f]")]
        pub(crate) title: String,
        /// The step behind which it goes; else it comes last.
        pub(crate) after: Option<String>,
        /// Its number, as 2.5; not together with `after`.
        pub(crate) at: Option<String>,
        /// The steps that it waits for, by number or by id.
        #[serde(default)]
        pub(crate) depends: Vec<String>,
        pub(crate) phase: Option<String>,
        #[serde(rename = "type")]
        pub(crate) kind: Option<String>,
        /// The files that it changes.
        #[serde(default)]
        pub(crate) touches: Vec<String>,
        /// Commands that must succeed before a run counts it as completed.
        #[serde(default)]
        pub(crate) verify: Vec<String>,
        /// Keys of your own.
        #[schema(schema_with = own_keys)]
        pub(crate) metadata: Option<Value>,
        /// Its text, in Markdown.
        pub(crate) body: Option<String>,
    }

    /// A field and its value.
    owned Set {
        /// The key, as in the file.
        #[schema(min_length = 1)]
        pub(crate) key: String,
        /// What it is from now on; a text is text, whatever it looks like.
        #[schema(schema_with = any_value)]
        pub(crate) value: Value,
        /// `set` it, `add` it to a list, or `take` it out of one; `set` if it is left out.
        #[schema(schema_with = op)]
        pub(crate) op: Option<String>,
    }

    /// A field that is to go.
    owned Unset {
        /// The key, as in the file.
        #[schema(min_length = 1)]
        pub(crate) key: String,
    }

    /// Another place for a step.
    owned Renumber {
        /// The step behind which it goes; 0 makes it the first.
        #[schema(min_length = 1)]
        pub(crate) after: String,
    }

    /// Steps that become one.
    Squash {
        /// Two or more, by number.
        #[schema(min_items = 2)]
        pub(crate) steps: Vec<String>,
        /// The title of the one.
        #[schema(pattern = "[^\\s\\x00-\\x1f]")]
        pub(crate) title: String,
        /// Do it whatever stands against it; this is recorded.
        #[serde(default)]
        pub(crate) force: bool,
    }

    /// The list of steps that a plan has from now on.
    Replace {
        /// Titles, or objects as `list` shows them; or the list as one Markdown text.
        #[schema(schema_with = steps)]
        pub(crate) steps: Value,
        /// Do it whatever stands against it; this is recorded.
        #[serde(default)]
        pub(crate) force: bool,
    }

    /// A document that becomes a plan.
    bare Import {
        /// The document, in Markdown.
        #[schema(pattern = "[^\\s\\x00-\\x1f]")]
        pub(crate) text: String,
        /// What the plan is to be called; else as its title.
        pub(crate) name: Option<String>,
        /// Make another plan of what was imported before.
        #[serde(default)]
        pub(crate) again: bool,
    }

    /// Something that was decided.
    Decide {
        #[schema(pattern = "[^\\s\\x00-\\x1f]")]
        pub(crate) topic: String,
        #[schema(pattern = "[^\\s\\x00-\\x1f]")]
        pub(crate) decision: String,
        /// Why.
        pub(crate) reasoning: Option<String>,
        /// The decision in whose place it stands.
        pub(crate) supersedes: Option<String>,
        #[serde(default)]
        pub(crate) tags: Vec<String>,
        /// The plan that it is about.
        pub(crate) plan: Option<String>,
        /// The step that it is about; not together with `plan`.
        pub(crate) step: Option<String>,
        /// Keys of your own.
        #[schema(schema_with = own_keys)]
        pub(crate) metadata: Option<Value>,
    }

    /// Something that was learned.
    Insight {
        /// What to find it by.
        #[schema(pattern = "[^\\s\\x00-\\x1f]")]
        pub(crate) title: String,
        #[schema(pattern = "[^\\s\\x00-\\x1f]")]
        pub(crate) text: String,
        /// The plan that it is about.
        pub(crate) plan: Option<String>,
        #[serde(default)]
        pub(crate) tags: Vec<String>,
    }

    /// A command under a name; nothing runs it here.
    bare Script {
        /// Its id is made from it.
        #[schema(pattern = "[^\\s\\x00-\\x1f]")]
        pub(crate) name: String,
        /// One line for a shell.
        #[schema(pattern = "[^\\s\\x00-\\x1f]")]
        pub(crate) command: String,
        /// Where it runs, inside the repository; else at its root.
        pub(crate) directory: Option<String>,
        /// The plan that it belongs to.
        pub(crate) plan: Option<String>,
        /// What it does.
        pub(crate) description: Option<String>,
        /// The handle that MCP clients know it by.
        pub(crate) mcp_handle: Option<String>,
    }

    /// What a template is tried with.
    Render {
        /// The title of the plan; of the prompt `step` a step.
        pub(crate) title: Option<String>,
        /// What the plan is about.
        pub(crate) description: Option<String>,
    }
}

/// The pattern of a text that says something: more than blanks and control characters.
pub(crate) const SAID: &str = "[^\\s\\x00-\\x1f]";

/// A schema that a derivation does not make.
fn schema(of: Value) -> RefOr<Schema> {
    serde_json::from_value(of).unwrap_or_else(|_| RefOr::T(Schema::default()))
}

fn titles() -> RefOr<Schema> {
    schema(json!({"type": "array", "items": {"type": "string", "pattern": SAID}}))
}

fn own_keys() -> RefOr<Schema> {
    schema(json!({"type": ["object", "null"], "additionalProperties": true}))
}

/// One of these words, or null as if it was left out.
fn maybe_word(words: &[&str]) -> RefOr<Schema> {
    let all: Vec<_> = words.iter().map(|it| json!(it)).chain([Value::Null]).collect();
    schema(json!({"type": ["string", "null"], "enum": all}))
}

fn note_type() -> RefOr<Schema> {
    maybe_word(&["info", "warning", "instruction"])
}

fn priority() -> RefOr<Schema> {
    maybe_word(&Priority::ALL.map(Priority::word))
}

fn op() -> RefOr<Schema> {
    maybe_word(&["set", "add", "take"])
}

/// A status of a step; the configuration may know more words for them.
pub(crate) fn step_status() -> RefOr<Schema> {
    schema(json!({"anyOf": [{"$ref": format!("{PLACE}StepStatus")}, {"type": "string"}, {"type": "null"}]}))
}

fn any_value() -> RefOr<Schema> {
    schema(json!({"type": ["string", "number", "boolean", "array", "object"], "items": {}}))
}

fn steps() -> RefOr<Schema> {
    schema(json!({"type": ["string", "array"], "items": {"type": ["string", "object"]}}))
}
