//! Toolsets: which tools a server offers.

use crate::serve::mcp::tool::{Effect, Tool};
use crate::serve::mcp::{claim, compat, draft, elicitation, knowledge, read, write};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Toolset {
    /// All of planwatch's own tools.
    #[default]
    All,
    /// The tools for working on one step.
    Executor,
    /// Tools with the names and arguments that prompts for other planning programs use.
    Compat,
}

/// The tools whose calls may have a key. A repeated call with the same key changes nothing.
const KEYED: [&str; 5] = ["claim_next_step", "create_plan", "add_step", "update_step", "add_note"];

/// The tools of a set, always in the same order. With `is_read_only`, only the tools that write nothing.
pub(super) fn tools(of: Toolset, is_read_only: bool) -> Vec<Tool> {
    const EXECUTOR: [&str; 9] = [
        "get_plan",
        "get_step",
        "update_step",
        "add_step",
        "add_note",
        "recall",
        "get_decisions",
        "decide",
        "insight",
    ];
    if of == Toolset::Compat {
        let mut tools = compat::tools();
        tools.retain(|it| !is_read_only || it.effect == Effect::Reads);
        return tools;
    }
    let groups = [
        read::tools(),
        knowledge::reading(),
        claim::tools(),
        write::tools(),
        elicitation::tools(),
        knowledge::writing(),
        draft::tools(),
    ];
    let keyed = |it: Tool| if KEYED.contains(&it.name) { it.keyed() } else { it };
    let mut tools: Vec<_> = groups.into_iter().flatten().map(keyed).collect();
    if of == Toolset::Executor {
        tools.retain(|it| EXECUTOR.contains(&it.name));
    }
    tools.retain(|it| !is_read_only || it.effect == Effect::Reads);
    tools
}
