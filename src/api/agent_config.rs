//! The `[agents.NAME]` tables of a configuration.

use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentConfig {
    /// One line for a shell.
    pub command: Option<String>,
    pub prompt: Option<PromptBy>,
    /// Seconds.
    pub timeout: Option<i64>,
    pub idle: Option<i64>,
    /// The key of the agent's JSON answer that holds the cost in US dollars.
    pub cost: Option<String>,
}

pub type Agents = BTreeMap<String, AgentConfig>;

/// How the agent gets the prompt; never as an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptBy {
    Stdin,
    /// `{prompt}` in the command is replaced by the path of a file with the prompt.
    File,
}
