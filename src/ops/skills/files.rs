//! The files that contain the skills, in the format of each agent, for a user's project or for the plugin.

use std::fmt::Write;

use super::{Argument, Skill, planner, planner_description};
use crate::api::error::Error;
use crate::text::seal;

/// Commands that only read. `check` is allowed only without arguments, because `check --fix` writes.
const READING: [&str; 8] =
    ["status *", "list *", "show *", "next *", "search *", "check", "template *", "instructions *"];

/// Where a file is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// A user's project. The file contains a seal, so that a later edit is detected.
    Project,
    Plugin,
}

impl Skill {
    /// A `SKILL.md`, the form that Claude Code, Codex, Cursor and Gemini CLI have in common.
    pub fn skill_file(&self, of: For) -> Result<String, Error> {
        let mut text = format!("---\nname: {}\ndescription: \"{}\"\n", self.name, self.description());
        if let Some(Argument { is_required, .. }) = self.argument {
            let hint = if is_required { "<plan>" } else { "[plan]" };
            writeln!(text, "argument-hint: \"{hint}\"").ok();
        }
        let mut tools: Vec<_> = READING.iter().map(|it| format!("Bash(planwatch {it})")).collect();
        tools.extend(self.verbs.iter().map(|it| format!("Bash(planwatch {it} *)")));
        if self.edits {
            tools.push("Edit(plans/**)".to_owned());
        }
        // A user asks for a skill by its name; an agent must not start one on its own.
        write!(text, "disable-model-invocation: true\nallowed-tools: {}\n", tools.join(" ")).ok();
        if of == For::Project {
            text.push_str("metadata:\n  made-by: planwatch init\n  seal: \"\"\n");
        }
        write!(text, "---\n\n{}", self.prompt(None)?).ok();
        Ok(if of == For::Project { seal::sealed(&text) } else { text })
    }

    /// The file of a command of Gemini CLI. Gemini CLI appends to the prompt what the user typed.
    pub fn gemini_command(&self, of: For) -> Result<String, Error> {
        let head = match of {
            For::Project => "# Made by planwatch init, seal: \"\"\n",
            For::Plugin => "",
        };
        let (description, prompt) = (self.description(), self.prompt(None)?);
        let text = format!("{head}description = \"{description}\"\nprompt = '''\n{prompt}'''\n");
        Ok(if of == For::Project { seal::sealed(&text) } else { text })
    }
}

/// The planner as an agent of the plugin, for Claude Code and Gemini CLI.
///
/// The file names no tools, because the two agents use different names for tools. Also, one of the agents accepts only a
/// list of tools, the other only a string.
pub fn planner_file() -> Result<String, Error> {
    let description = planner_description();
    Ok(format!("---\nname: planner\ndescription: \"{description}\"\nmodel: inherit\n---\n\n{}", planner()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::skills::{ALL, find};
    use crate::text::front_matter;
    use crate::text::yaml::{self, View};

    #[test]
    fn a_skill_is_called_by_its_name_and_may_do_what_it_says() {
        let file = find("ps-execute").unwrap().skill_file(For::Plugin).unwrap();
        let parts = front_matter::split(file.as_bytes());
        let tree = yaml::parse(std::str::from_utf8(parts.yaml().unwrap()).unwrap()).unwrap();
        let value = |key| tree.root().get(key).and_then(View::text).unwrap_or_default();
        assert_eq!((value("name"), value("argument-hint")), ("ps-execute", "<plan>"));
        assert_eq!(value("disable-model-invocation"), "true");
        assert!(value("description").starts_with("Execute a plan"));
        assert!(value("allowed-tools").contains("Bash(planwatch run *)"));
        for person in ["trust", "confirm", "script"] {
            assert!(!file.contains(&format!("planwatch {person} *")), "{person}");
        }
    }

    #[test]
    fn a_file_of_a_project_is_sealed() {
        for skill in &ALL {
            for text in [skill.skill_file(For::Project).unwrap(), skill.gemini_command(For::Project).unwrap()]
            {
                assert!(seal::is_sealed(&text), "{text}");
                assert!(!seal::is_sealed(&text.replacen("plan", "plane", 1)), "{text}");
            }
        }
    }

    #[test]
    fn a_command_of_gemini_holds_the_prompt_and_nothing_that_is_run_or_read_in() {
        for skill in &ALL {
            for of in [For::Project, For::Plugin] {
                let text = skill.gemini_command(of).unwrap();
                let table: toml::Table = text.parse().unwrap();
                assert_eq!(table["prompt"].as_str(), Some(skill.prompt(None).unwrap().as_str()));
                assert_eq!(table["description"].as_str(), Some(skill.description().as_str()));
                for marked in ["!{", "@{", "{{"] {
                    assert!(!text.contains(marked), "{}: {marked}", skill.name);
                }
            }
        }
    }
}
