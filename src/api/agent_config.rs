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
    /// The key of its JSON answer that holds US dollars.
    pub cost: Option<String>,
}

pub type Agents = BTreeMap<String, AgentConfig>;

/// How a prompt comes to its agent; never as an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptBy {
    Stdin,
    /// The words `{prompt}` of its command are the path of a file with the prompt.
    File,
}
