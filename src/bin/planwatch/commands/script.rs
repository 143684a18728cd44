//! `script`: named commands.

use planwatch::api::error::Error;
use planwatch::api::trust;
use planwatch::ops::script::{self, AddRequest};
use planwatch::process::shell::{self, Answer};
use serde_json::json;

use crate::args::know::{Script, ScriptAdd, ScriptList, ScriptRun, ScriptVerb};
use crate::commands::know::recorded;
use crate::commands::new::in_plans_or_empty_dir;
use crate::commands::trust::{asked, may_ask};
use crate::context::Session;
use crate::failure::{self, Failure};
use crate::fields;
use crate::screens::{change, scripts};

pub(crate) fn run(session: &Session, args: Script) -> Result<u8, Failure> {
    match args.what.unwrap_or(ScriptVerb::List(ScriptList { plan: None })) {
        ScriptVerb::Add(args) => add(session, args),
        ScriptVerb::List(args) => list(session, &args),
        ScriptVerb::Show(args) => show(session, &args.id),
        ScriptVerb::Run(args) => start(session, &args),
        ScriptVerb::Remove(args) => {
            change::check_fields(session)?;
            change::print(session, &script::remove(&session.context()?, &args.id, args.dry_run.mode())?)
        }
    }
}

fn add(session: &Session, args: ScriptAdd) -> Result<u8, Failure> {
    change::check_fields(session)?;
    let mode = args.dry_run.mode();
    let ScriptAdd { name, command, runs_in: directory, plan, description, mcp_handle, .. } = args;
    let request = AddRequest { name, command, directory, plan, description, mcp_handle, mode };
    change::print(session, &recorded(session, mode, |context| script::add(context, &request))?)
}

fn list(session: &Session, args: &ScriptList) -> Result<u8, Failure> {
    let found = in_plans_or_empty_dir(session, |context| script::list(context, args.plan.as_deref()))?;
    session.answer("script-list", || script::list_to_json(&found), |width| scripts::list(&found, width))
}

fn show(session: &Session, id: &str) -> Result<u8, Failure> {
    let found = script::show(&session.context()?, id)?;
    session.answer("script", || found.to_json(), |width| scripts::one(&found, width))
}

fn start(session: &Session, args: &ScriptRun) -> Result<u8, Failure> {
    session.output.check_fields(fields::SCRIPT_RUN)?;
    let context = session.context()?;
    let runnable = match script::runnable(&context, &args.id, args.trust_hash.as_deref()) {
        Err(Error::NotTrusted(it)) if it.fault.is_none() && may_ask(session) => {
            let found = script::show(&context, &args.id)?;
            if !asked(&found.subject, "Trust and run it?")? {
                return Err(trust::refused(&found.subject).into());
            }
            trust::trust(&context, &found.subject, Some(&found.subject.hash))?;
            // The hash makes sure that the script is refused if it has changed since the user confirmed it.
            script::runnable(&context, &args.id, Some(&found.subject.hash))?
        }
        other => other?,
    };
    let answer = if session.output.is_json() { Answer::Stderr } else { Answer::Stdout };
    let code = shell::run(&runnable.command, &runnable.directory, answer).map_err(|error| {
        Failure::failed("script", format!("`sh` could not be started: {}", failure::system(&error)))
    })?;
    if session.output.is_json() {
        session
            .output
            .json("script-run", json!({"id": runnable.id, "command": runnable.command, "exit_code": code}))?;
    }
    Ok(code)
}
