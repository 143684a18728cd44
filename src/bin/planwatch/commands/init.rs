//! `init`: sets up a project for plans and for agents, and undoes that. `hook`: is called by agents.

use std::path::Path;

use planwatch::ops::hook::{self, Moment};
use planwatch::ops::init::{self, AGENTS, Around, Did, Editor, FileReport, InitReport, InitRequest};

use crate::args::agents::{Hook, Init, Named, NamedEditor, When};
use crate::context::{self, Session};
use crate::failure::Failure;
use crate::fields;
use crate::output::escaped;
use crate::screens::{BAD, DIM, GOOD, PLAIN, text, to_type};
use crate::table::paint;

pub(crate) fn run(session: &Session, args: &Init) -> Result<u8, Failure> {
    session.output.check_fields(fields::INIT)?;
    let workspace = session.workspace()?;
    let here = session.directory();
    let above = workspace.plans_dir.as_deref().and_then(Path::parent).filter(|it| here.starts_with(it));
    let root = workspace.repository.as_deref().or(above).unwrap_or(here).to_path_buf();
    let tell = |notice| {
        session.output.kept.note(&notice);
        session.output.notice(&notice);
    };
    let around = Around {
        disk: session.disk(),
        workspace: &workspace,
        root,
        state_home: context::state_home(),
        now: context::now(),
        on_notice: &tell,
    };
    let mut agents: Vec<_> = args.agent.iter().flat_map(|it| it.agents()).copied().collect();
    agents.sort_unstable();
    agents.dedup();
    let mut editors: Vec<_> = args.editor.iter().map(|it| it.editor()).collect();
    editors.sort_unstable();
    editors.dedup();
    let request = InitRequest { agents, editors, is_undo: args.undo, mode: args.dry_run.mode() };
    let report = init::init(&around, &request)?;
    let output = &session.output;
    if !report.is_dry_run && report.plans.iter().chain(&report.files).any(|it| it.did != Did::Nothing) {
        output.kept.note_change();
    }
    if output.is_json() {
        output.json("init", report.to_json())?;
    } else if report.is_dry_run {
        output.text(&would(&report))?;
    } else {
        output.report(&text::fitted(&screen(&report), output.width))?;
    }
    Ok(0)
}

impl Named {
    fn agents(self) -> &'static [init::Agent] {
        match self {
            Self::Claude => &[init::Agent::Claude],
            Self::Codex => &[init::Agent::Codex],
            Self::Cursor => &[init::Agent::Cursor],
            Self::Gemini => &[init::Agent::Gemini],
            Self::All => &AGENTS,
        }
    }
}

impl NamedEditor {
    fn editor(self) -> Editor {
        match self {
            Self::VsCode => Editor::VsCode,
            Self::Neovim => Editor::Neovim,
            Self::Helix => Editor::Helix,
            Self::Zed => Editor::Zed,
        }
    }
}

fn would(report: &InitReport) -> String {
    let plans = report.plans.iter().filter(|it| it.did != Did::Nothing);
    let plans: String =
        plans.map(|it| format!("would be {} {}\n", it.did.word(), escaped(&it.path))).collect();
    if plans.is_empty() && report.diff.is_empty() {
        return format!("{}\n", paint(DIM, "nothing would change"));
    }
    plans + &text::diff(&report.diff)
}

fn screen(report: &InitReport) -> String {
    let mut said: String = report.plans.iter().chain(&report.files).map(line).collect();
    if report.is_undo && said.is_empty() {
        said = "There is nothing to undo here.\n".to_owned();
    }
    said.extend(report.begin.iter().map(|it| format!("{} {it}\n", paint(DIM, "next:"))));
    let mut commands: Vec<_> = report.commands.iter().map(|(it, why)| (it.clone(), why.as_str())).collect();
    if report.plans.is_some() && !report.is_undo {
        commands.push((
            "planwatch new auth Schema Migrations Tests".to_owned(),
            "to create a plan with three steps",
        ));
        commands.push(("planwatch init --agent claude".to_owned(), "to set up an agent"));
    }
    said + &to_type(&commands)
}

fn line(file: &FileReport) -> String {
    let style = match file.did {
        Did::Made | Did::Changed => GOOD,
        Did::Removed => PLAIN,
        Did::Kept => BAD,
        Did::Nothing => DIM,
    };
    let why = file.why.as_deref().map(|it| format!(": {it}")).unwrap_or_default();
    format!("{}  {}{why}\n", paint(style, &format!("{:<9}", file.did.word())), escaped(&file.path))
}

/// Errors of the plans are not reported, because they must not disturb an agent's session.
pub(crate) fn hook(session: &Session, args: &Hook) -> Result<u8, Failure> {
    let moment = match args.when {
        When::SessionStart => Moment::SessionStart,
        When::Stop => Moment::Stop,
    };
    if context::is_in_step() || !session.workspace().is_ok_and(|it| it.plans_dir.is_some()) {
        return Ok(0);
    }
    let said = session.context().ok().and_then(|it| hook::hook(&it, moment).ok().flatten());
    if let Some(said) = said {
        session.output.bytes(format!("{said}\n").as_bytes())?;
    }
    Ok(0)
}
