//! What each agent reads in a project: skills or commands, instructions, and the configuration of its MCP servers.

use crate::api::error::Error;
use crate::ops::skills::{self, For};
use crate::text::json_entry::Entry;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agent {
    Claude,
    Codex,
    Cursor,
    Gemini,
}

/// All agents, in the order of reports.
pub const AGENTS: [Agent; 4] = [Agent::Claude, Agent::Codex, Agent::Cursor, Agent::Gemini];

/// The text that `init` puts between markers in a file of instructions.
pub const BLOCK: &str = include_str!("../../../templates/agents/block.md");

/// The configuration of planwatch's MCP server.
pub const SERVER: Entry<'static> =
    Entry { outer: "mcpServers", key: "planwatch", value: r#"{ "command": "planwatch", "args": ["mcp"] }"# };

impl Agent {
    pub fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::Gemini => "gemini",
        }
    }

    /// The path and the text of each of the agent's skills or commands.
    pub(super) fn files(self) -> Result<Vec<(String, String)>, Error> {
        let file = |it: &skills::Skill| {
            Ok(match self {
                Self::Gemini => {
                    (format!("{}/{}.toml", self.place(), it.name), it.gemini_command(For::Project)?)
                }
                _ => (format!("{}/{}/SKILL.md", self.place(), it.name), it.skill_file(For::Project)?),
            })
        };
        skills::ALL.iter().map(file).collect()
    }

    pub(super) fn place(self) -> &'static str {
        match self {
            Self::Claude => ".claude/skills",
            Self::Codex => ".agents/skills",
            Self::Cursor => ".cursor/skills",
            Self::Gemini => ".gemini/commands",
        }
    }

    /// The file with instructions that the agent reads at the start of each session.
    pub(super) fn instructions(self) -> &'static str {
        match self {
            Self::Claude => "CLAUDE.md",
            Self::Codex | Self::Cursor => "AGENTS.md",
            Self::Gemini => "GEMINI.md",
        }
    }

    /// The file in the project that configures the agent's MCP servers. `None`: only the user's own configuration does that.
    pub(super) fn settings(self) -> Option<&'static str> {
        match self {
            Self::Claude => Some(".mcp.json"),
            Self::Codex => None,
            Self::Cursor => Some(".cursor/mcp.json"),
            Self::Gemini => Some(".gemini/settings.json"),
        }
    }

    /// The command that the user still has to type, with its purpose.
    pub(super) fn command(self, is_undo: bool) -> Option<(&'static str, &'static str)> {
        match (self, is_undo) {
            (Self::Codex, false) => {
                Some(("codex mcp add planwatch -- planwatch mcp", "to add planwatch's tools to Codex"))
            }
            (Self::Codex, true) => {
                Some(("codex mcp remove planwatch", "to remove planwatch's tools from Codex"))
            }
            _ => None,
        }
    }

    pub(super) fn begin(self) -> &'static str {
        match self {
            Self::Claude => {
                "in Claude Code: /ps-plan, /ps-plans, /ps-execute PLAN; it asks once about .mcp.json"
            }
            Self::Codex => "in Codex: $ps-plan, $ps-plans, $ps-execute PLAN",
            Self::Cursor => "in Cursor: /ps-plan, /ps-plans, /ps-execute PLAN",
            Self::Gemini => {
                "in Gemini CLI: /ps-plan, /ps-plans, /ps-execute PLAN; the folder must be trusted"
            }
        }
    }
}
