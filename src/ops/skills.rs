//! The instructions that agents get for `/ps-plan`, `/ps-plans` or `/ps-execute`.
//!
//! The texts are the files in `templates/agents/`. Skills, commands of agents and prompts of the MCP server are made from
//! the same texts.

mod files;

use serde_json::{Value, json};

use crate::api::error::Error;
use crate::text::placeholders;
use crate::text::typed::quoted;

pub use files::{For, planner_file};

/// A text that a user can call by its name. It is about one plan or about all plans.
#[derive(Debug, Clone, Copy)]
pub struct Skill {
    pub name: &'static str,
    /// The name that people see, for example in a menu.
    pub title: &'static str,
    /// The argument after the name. `None`: the skill is about all plans.
    pub argument: Option<Argument>,
    /// The agent may run `planwatch <verb>` for each of these verbs without asking the user. It may also run the verbs that
    /// only read.
    pub verbs: &'static [&'static str],
    /// Whether the agent edits files of plans with its own tools.
    pub edits: bool,
    text: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argument {
    pub is_required: bool,
    pub description: &'static str,
}

/// The skills, in the order in which they are used for a plan.
pub const ALL: [Skill; 3] = [
    Skill {
        name: "ps-plan",
        title: "Plan with planwatch",
        argument: Some(Argument { is_required: false, description: "Plan to start or continue" }),
        verbs: &["new", "add", "set", "move", "squash", "remove", "start", "note", "decide", "undo"],
        edits: true,
        text: include_str!("../../templates/agents/ps-plan.md"),
    },
    Skill {
        name: "ps-plans",
        title: "Show the state of the plans",
        argument: None,
        verbs: &[],
        edits: false,
        text: include_str!("../../templates/agents/ps-plans.md"),
    },
    Skill {
        name: "ps-execute",
        title: "Execute a plan",
        argument: Some(Argument { is_required: true, description: "Plan to execute or continue" }),
        verbs: &["run", "claim", "done", "fail", "block", "release", "add", "note"],
        edits: false,
        text: include_str!("../../templates/agents/ps-execute.md"),
    },
];

/// The text of the planner, the agent that plans together with the user. Its placeholders are not filled in.
const PLANNER: &str = include_str!("../../templates/agents/planner.md");

impl Skill {
    /// The purpose of the skill, on one line.
    pub fn description(&self) -> String {
        placeholders::comment(self.text).unwrap_or_default()
    }

    /// The text for an agent; `plan` is the id that the user named. The plan need not exist yet.
    pub fn prompt(&self, plan: Option<&str>) -> Result<String, Error> {
        fill(self.name, self.text, &values(plan, &planner()?))
    }
}

pub fn find(name: &str) -> Option<&'static Skill> {
    ALL.iter().find(|it| it.name == name)
}

/// The text of the planner, with its placeholders filled in.
pub fn planner() -> Result<String, Error> {
    fill("planner", PLANNER, &values(None, ""))
}

pub fn planner_description() -> String {
    placeholders::comment(PLANNER).unwrap_or_default()
}

fn values(plan: Option<&str>, planner: &str) -> Value {
    json!({
        "plan": plan.unwrap_or_default(),
        "plan_word": plan.map_or_else(|| "PLAN".to_owned(), quoted),
        "planner": planner.trim_end(),
    })
}

fn fill(name: &str, text: &str, values: &Value) -> Result<String, Error> {
    placeholders::fill(text, values).map_err(|it| Error::template(format!("templates/agents/{name}.md"), it))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts() -> Vec<(&'static str, &'static str)> {
        ALL.iter().map(|it| (it.name, it.text)).chain([("planner", PLANNER)]).collect()
    }

    #[test]
    fn the_texts_are_sound_and_say_what_they_are_for() {
        for (name, text) in texts() {
            assert_eq!(placeholders::check(text, &values(Some("auth"), "The planner.")), Ok(()), "{name}");
            let description = placeholders::comment(text).unwrap_or_default();
            assert!((40..=300).contains(&description.len()), "{name}: {description}");
            assert!(!description.contains(['"', '\\', '<']), "{name}: {description}");
            assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{name}");
        }
    }

    #[test]
    fn a_prompt_is_whole_with_and_without_a_plan() {
        for skill in &ALL {
            for plan in [None, Some("auth"), Some("it's mine"), Some("{{plan}}")] {
                let text = skill.prompt(plan).unwrap();
                assert!(
                    !text.starts_with(char::is_whitespace) && text.ends_with('\n'),
                    "{}:\n{text}",
                    skill.name
                );
                assert!(!text.replace("{{plan}}", "").contains("{{"), "{}:\n{text}", skill.name);
                assert!(!text.contains("\n\n\n"), "{}:\n{text}", skill.name);
                assert!(text.len() < 9000, "{} has {} bytes", skill.name, text.len());
                let plan = plan.filter(|_| skill.argument.is_some());
                assert!(plan.is_none_or(|it| text.contains(&quoted(it))), "{}:\n{text}", skill.name);
            }
        }
    }

    #[test]
    fn the_planner_knows_its_part_and_what_the_user_may_say() {
        let text = find("ps-plan").unwrap().prompt(None).unwrap();
        assert!(text.contains(planner().unwrap().trim_end()));
        for said in [
            "\"show plan\"",
            "\"show step N\"",
            "\"add step\"",
            "\"edit step N\"",
            "\"done\"",
            "`/ps-execute`",
        ] {
            assert!(text.contains(said), "{said} is missing:\n{text}");
        }
    }

    #[test]
    fn each_verb_that_needs_no_question_is_in_its_text() {
        for skill in &ALL {
            let text = skill.prompt(None).unwrap();
            for verb in skill.verbs {
                let is_named = text.contains(&format!("planwatch {verb} "))
                    || text.contains(&format!("planwatch {verb}\n"));
                let may_be_left_out = ["note", "release"].contains(verb);
                assert!(is_named || may_be_left_out, "{} does not name {verb}", skill.name);
            }
        }
    }
}
