//! The `[agents.NAME]` tables of a configuration.

use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentConfig {
    /// A command line that a shell runs.
    pub command: Option<String>,
    pub prompt: Option<PromptBy>,
    /// In seconds.
    pub timeout: Option<i64>,
    /// In seconds.
    pub idle: Option<i64>,
    /// The key in the agent's JSON answer under which the cost in US dollars is found.
    pub cost: Option<String>,
}

pub type Agents = BTreeMap<String, AgentConfig>;

/// How the agent receives the prompt. The text of the prompt is never an argument of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptBy {
    Stdin,
    /// `{prompt}` in the command is replaced by the path of a file with the prompt.
    File,
}
