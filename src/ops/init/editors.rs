//! The settings for each editor in a project: how it starts the language server, or which files it does not watch.

use crate::text::json_entry::Entry;
use crate::text::marked_block::{HASH, LUA, Marks};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Editor {
    VsCode,
    Neovim,
    Helix,
    Zed,
}

/// All editors, in the order of reports.
pub const EDITORS: [Editor; 4] = [Editor::VsCode, Editor::Neovim, Editor::Helix, Editor::Zed];

/// The text that `init` adds to an editor's settings file.
pub(super) enum Setting {
    /// One entry of a JSON file.
    Entry(Entry<'static>),
    /// Lines between markers.
    Block(&'static Marks, &'static str),
}

/// The extension starts the server, so the setting only names files that VS Code need not watch.
const WATCHED: Entry<'static> =
    Entry { outer: "files.watcherExclude", key: "**/.planwatch/**", value: "true" };

const ZED: Entry<'static> = Entry {
    outer: "lsp",
    key: "planwatch",
    value: r#"{ "binary": { "path": "planwatch", "arguments": ["lsp"] } }"#,
};

const NEOVIM: &str = r#"if vim.lsp.config then
  vim.lsp.config("planwatch", { cmd = { "planwatch", "lsp" }, filetypes = { "markdown" }, root_markers = { "plans" } })
  vim.lsp.enable("planwatch")
end
"#;

const HELIX: &str = r#"[language-server.planwatch]
command = "planwatch"
args = ["lsp"]

[[language]]
name = "markdown"
language-servers = ["marksman", "planwatch"]
"#;

impl Editor {
    pub fn word(self) -> &'static str {
        match self {
            Self::VsCode => "vscode",
            Self::Neovim => "neovim",
            Self::Helix => "helix",
            Self::Zed => "zed",
        }
    }

    /// The file in the project with the editor's settings.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::VsCode => ".vscode/settings.json",
            Self::Neovim => ".nvim.lua",
            Self::Helix => ".helix/languages.toml",
            Self::Zed => ".zed/settings.json",
        }
    }

    pub(super) fn setting(self) -> Setting {
        match self {
            Self::VsCode => Setting::Entry(WATCHED),
            Self::Neovim => Setting::Block(&LUA, NEOVIM),
            Self::Helix => Setting::Block(&HASH, HELIX),
            Self::Zed => Setting::Entry(ZED),
        }
    }

    pub(super) fn begin(self) -> &'static str {
        match self {
            Self::VsCode => "in VS Code: install the extension planwatch, which starts the server",
            Self::Neovim => "in Neovim 0.11: `:set exrc` in your configuration, then `:trust` the file once",
            Self::Helix => "in Helix: `hx --health markdown` shows the server",
            Self::Zed => {
                "in Zed: an extension has to register the server; these settings say how it is started"
            }
        }
    }
}
