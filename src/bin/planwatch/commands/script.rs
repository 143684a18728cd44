//! `script` and `trust`: named commands, and whether they may run here.

use std::io::{self, BufRead, IsTerminal, Write};

use planwatch::agent::shell::{self, Answer};
use planwatch::engine::context::Context;
use planwatch::engine::error::Error;
use planwatch::engine::script::{self, AddRequest, Resolved};
use planwatch::engine::trust::{self, Subject, Trusted};
use serde_json::{Value, json};

use crate::args::know::{Script, ScriptAdd, ScriptList, ScriptRun, ScriptVerb, Trust};
use crate::commands::know::recorded;
use crate::commands::new::looking;
use crate::context::Session;
use crate::failure::{self, Failure};
use crate::output::escaped;
use crate::screens::{BOLD, change, scripts};
use crate::table::paint;

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
    let found = looking(session, |context| script::list(context, args.plan.as_deref()))?;
    if session.output.is_json() {
        let scripts: Vec<_> = found.iter().map(Resolved::to_json).collect();
        session.output.json("script-list", json!({"scripts": scripts}))?;
    } else {
        session.output.text(&scripts::list(&found, session.output.width))?;
    }
    Ok(0)
}

fn show(session: &Session, id: &str) -> Result<u8, Failure> {
    let found = script::show(&session.context()?, id)?;
    if session.output.is_json() {
        session.output.json("script", found.to_json())?;
    } else {
        session.output.text(&scripts::one(&found, session.output.width))?;
    }
    Ok(0)
}

fn start(session: &Session, args: &ScriptRun) -> Result<u8, Failure> {
    let context = session.context()?;
    let runnable = match script::runnable(&context, &args.id, args.trust_hash.as_deref()) {
        Err(Error::NotTrusted { .. }) if may_ask(session) => {
            let found = script::show(&context, &args.id)?;
            if !asked(&found.subject, "Trust and run it?")? {
                return Err(trust::refused(&found.subject).into());
            }
            trust::trust(&context, &found.subject, Some(&found.subject.hash))?;
            // What was said yes to runs, and nothing that came into its place meanwhile.
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

/// Nobody is asked who cannot answer.
fn may_ask(session: &Session) -> bool {
    !session.output.is_json() && io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Shows exactly what would run, and waits for a yes.
fn asked(subject: &Subject, question: &str) -> Result<bool, Failure> {
    let mut stderr = io::stderr().lock();
    let mut answer = String::new();
    let said = write!(stderr, "{}{question} [y/N] ", scripts::subject(subject)).and_then(|()| stderr.flush());
    said.and_then(|()| io::stdin().lock().read_line(&mut answer)).map_err(|error| {
        Failure::failed("input", format!("nobody could be asked: {}", failure::system(&error)))
    })?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

pub(crate) fn trust(session: &Session, args: &Trust) -> Result<u8, Failure> {
    let context = session.context()?;
    if args.list {
        return list_trusted(session, &context);
    }
    if args.revoke {
        return revoke(session, &context, &args.scripts);
    }
    if args.scripts.is_empty() {
        if args.trust_hash.is_some() {
            return Err(Failure::usage(
                "which script?",
                "write it as planwatch trust SCRIPT --trust-hash HASH",
            ));
        }
        return wanting(session, &context);
    }
    if args.trust_hash.is_some() && args.scripts.len() > 1 {
        return Err(Failure::usage("one hash is that of one script", "name one script at a time"));
    }
    let mut done = Vec::new();
    for name in &args.scripts {
        let found = script::show(&context, name)?;
        script::refuse_faulty(&context, &found)?;
        trust_one(session, &context, &found, args.trust_hash.as_deref())?;
        done.push(subject_json(&found.subject, true));
    }
    if session.output.is_json() {
        session.output.json("trust", json!({"trusted": done}))?;
    }
    Ok(0)
}

fn trust_one(
    session: &Session,
    context: &Context,
    found: &Resolved,
    given: Option<&str>,
) -> Result<(), Failure> {
    let name = paint(BOLD, &escaped(&found.script.id));
    if found.is_trusted && given.is_none() {
        return tell(session, &format!("{name} is trusted already\n"));
    }
    let is_agreed = given.is_some() || (may_ask(session) && asked(&found.subject, "Trust it?")?);
    if !is_agreed {
        return Err(trust::refused(&found.subject).into());
    }
    trust::trust(context, &found.subject, Some(given.unwrap_or(&found.subject.hash)))?;
    tell(session, &format!("trusted {name}: {}\n", escaped(&found.script.command)))
}

fn tell(session: &Session, said: &str) -> Result<(), Failure> {
    if !session.output.is_json() {
        session.output.told(said)?;
    }
    Ok(())
}

fn subject_json(subject: &Subject, is_trusted: bool) -> Value {
    json!({
        "name": subject.name,
        "path": subject.path.to_string_lossy(),
        "command": subject.command,
        "directory": subject.directory,
        "hash": subject.hash,
        "trusted": is_trusted,
    })
}

/// Lists everything here that runs only with trust.
fn wanting(session: &Session, context: &Context) -> Result<u8, Failure> {
    let found = script::list(context, None)?;
    if session.output.is_json() {
        let items: Vec<_> = found.iter().map(|it| subject_json(&it.subject, it.is_trusted)).collect();
        session.output.json("trust-list", json!({"items": items}))?;
    } else {
        session.output.text(&scripts::wanting(&found, session.output.width))?;
    }
    Ok(0)
}

fn list_trusted(session: &Session, context: &Context) -> Result<u8, Failure> {
    let all = trust::list(context);
    if session.output.is_json() {
        let items: Vec<_> = all.iter().map(Trusted::to_json).collect();
        session.output.json("trusted-list", json!({"trusted": items}))?;
    } else {
        session.output.text(&scripts::trusted(&all, context.now, session.output.width))?;
    }
    Ok(0)
}

fn revoke(session: &Session, context: &Context, names: &[String]) -> Result<u8, Failure> {
    let mut gone = Vec::new();
    if names.is_empty() {
        gone = trust::revoke(context, &|path| path.starts_with(&context.here.root))?;
    }
    for name in names {
        let path = script::file_of(context, name);
        gone.extend(trust::revoke(context, &|it| it == path)?);
    }
    if session.output.is_json() {
        let items: Vec<_> = gone.iter().map(Trusted::to_json).collect();
        session.output.json("trust", json!({"revoked": items}))?;
        return Ok(0);
    }
    let line = |it: &Trusted| {
        format!("trusted no more: {} ({})\n", escaped(&it.command), escaped(&it.path.to_string_lossy()))
    };
    let said = if gone.is_empty() {
        "Nothing of it was trusted.\n".to_owned()
    } else {
        gone.iter().map(line).collect()
    };
    session.output.told(&said)?;
    Ok(0)
}
