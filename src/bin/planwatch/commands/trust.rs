//! `trust`: decides which commands of a repository may run here: scripts, `verify` commands of steps, agents.

use std::io::{self, BufRead, IsTerminal, Write};

use planwatch::api::agents;
use planwatch::api::context::Context;
use planwatch::api::error::Error;
use planwatch::api::trust::{self, Subject, Trusted};
use planwatch::ops::script;
use planwatch::store::verify;
use serde_json::{Value, json};

use crate::args::know::Trust;
use crate::context::Session;
use crate::failure::{self, Failure};
use crate::output::escaped;
use crate::screens::{BOLD, scripts};
use crate::table::paint;

/// Whether the user can be asked: at a terminal, and without `--json`.
pub(crate) fn may_ask(session: &Session) -> bool {
    !session.output.is_json() && io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Shows exactly what would run, and waits for the user's answer.
pub(crate) fn asked(subject: &Subject, question: &str) -> Result<bool, Failure> {
    let mut stderr = io::stderr().lock();
    let mut answer = String::new();
    let said = write!(stderr, "{}{question} [y/N] ", scripts::subject(subject)).and_then(|()| stderr.flush());
    said.and_then(|()| io::stdin().lock().read_line(&mut answer)).map_err(|error| {
        Failure::failed("input", format!("the confirmation prompt failed: {}", failure::system(&error)))
    })?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

pub(crate) fn run(session: &Session, args: &Trust) -> Result<u8, Failure> {
    let context = session.context()?;
    if args.list {
        return list_trusted(session, &context);
    }
    if args.revoke {
        session.output.check_fields("revoked")?;
        return revoke(session, &context, &args.scripts);
    }
    if args.scripts.is_empty() {
        if args.trust_hash.is_some() {
            return Err(Failure::usage(
                "no script is given",
                "write it as planwatch trust SCRIPT --trust-hash HASH",
            ));
        }
        return wanting(session, &context);
    }
    if args.trust_hash.is_some() && args.scripts.len() > 1 {
        return Err(Failure::usage("--trust-hash takes the hash of one script", "name one script at a time"));
    }
    session.output.check_fields("trusted")?;
    let mut done = Vec::new();
    for name in &args.scripts {
        let subjects = subjects(&context, name)?;
        if args.trust_hash.is_some() && subjects.len() > 1 {
            let hint = subjects.iter().map(|it| it.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(Failure::usage(
                "--trust-hash takes the hash of one step",
                format!("name one step at a time: {hint}"),
            ));
        }
        for subject in &subjects {
            trust_one(session, &context, subject, args.trust_hash.as_deref())?;
            done.push(subject_json(subject, true));
        }
    }
    if session.output.is_json() {
        session.output.json("trust", json!({"trusted": done}))?;
    }
    Ok(0)
}

/// What a name refers to: an agent of the repository, a script, or the `verify` commands of a step or of a plan's open
/// steps.
fn subjects(context: &Context, name: &str) -> Result<Vec<Subject>, Failure> {
    if name.starts_with("agent:") {
        let found = agents::wanting_trust(context).into_iter().find(|it| it.name == name);
        let missing = || Error::NotFound { what: "agent", name: name.to_owned(), nearest: None };
        return Ok(vec![found.ok_or_else(missing)?]);
    }
    match script::show(context, name) {
        Ok(found) => {
            script::refuse_faulty(context, &found)?;
            Ok(vec![found.subject])
        }
        Err(not_found) => match verify::named(context, name) {
            // An unknown name is reported as an unknown script, the most common case.
            Err(Error::NotFound { .. } | Error::WhichPlan { .. }) => Err(not_found.into()),
            other => Ok(other?),
        },
    }
}

fn trust_one(
    session: &Session,
    context: &Context,
    subject: &Subject,
    given: Option<&str>,
) -> Result<(), Failure> {
    let name = paint(BOLD, &escaped(&subject.name));
    if trust::is_trusted(context, subject) && given.is_none() {
        return report(session, &format!("{name} is trusted already\n"));
    }
    if subject.fault.is_some() {
        return Err(trust::refused(subject).into());
    }
    let is_agreed = given.is_some() || (may_ask(session) && asked(subject, "Trust it?")?);
    if !is_agreed {
        return Err(trust::refused(subject).into());
    }
    trust::trust(context, subject, Some(given.unwrap_or(&subject.hash)))?;
    report(session, &format!("trusted {name}: {}\n", escaped(&subject.command)))
}

fn report(session: &Session, text: &str) -> Result<(), Failure> {
    if !session.output.is_json() {
        session.output.report(text)?;
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
        "files": subject.files,
        "fault": subject.fault,
        "trusted": is_trusted,
    })
}

/// Lists everything in this repository that runs only after the user has trusted it.
fn wanting(session: &Session, context: &Context) -> Result<u8, Failure> {
    let found = script::list(context, None)?;
    let mut others = agents::wanting_trust(context);
    others.extend(session.with_spinner(|| verify::wanting_trust(context))?);
    let others: Vec<_> = others.iter().map(|it| (it, trust::is_trusted(context, it))).collect();
    let json = || {
        let scripts = found.iter().map(|it| subject_json(&it.subject, it.is_trusted));
        let others = others.iter().map(|(it, is_trusted)| subject_json(it, *is_trusted));
        json!({"items": scripts.chain(others).collect::<Vec<_>>()})
    };
    session.answer("trust-list", json, |width| scripts::wanting(&found, &others, width))
}

fn list_trusted(session: &Session, context: &Context) -> Result<u8, Failure> {
    let all = trust::list(context);
    let json = || json!({"trusted": all.iter().map(Trusted::to_json).collect::<Vec<_>>()});
    session.answer("trusted-list", json, |width| scripts::trusted(&all, context.now, width))
}

fn revoke(session: &Session, context: &Context, names: &[String]) -> Result<u8, Failure> {
    let mut gone = Vec::new();
    if names.is_empty() {
        gone = trust::revoke(context, &|path| path.starts_with(&context.here.root))?;
    }
    for name in names {
        let agent = agents::wanting_trust(context).into_iter().find(|it| it.name == *name);
        let files = verify::files_of(context, name);
        let is_known = agent.is_some() || files.is_ok();
        let path = agent.map_or_else(|| script::file_of(context, name), |it| it.path);
        // The file of a script may be gone, and its trust still recorded.
        let mut revoked = trust::revoke(context, &|it| it == path)?;
        if let Ok(files) = files {
            revoked.extend(trust::revoke(context, &|it| files.iter().any(|file| file == it))?);
        }
        if revoked.is_empty() && !is_known {
            script::show(context, name)?;
        }
        gone.extend(revoked);
    }
    if session.output.is_json() {
        let items: Vec<_> = gone.iter().map(Trusted::to_json).collect();
        session.output.json("trust", json!({"revoked": items}))?;
        return Ok(0);
    }
    let line = |it: &Trusted| {
        format!("no longer trusted: {} ({})\n", escaped(&it.command), escaped(&it.path.to_string_lossy()))
    };
    let said =
        if gone.is_empty() { "Nothing was trusted.\n".to_owned() } else { gone.iter().map(line).collect() };
    session.output.report(&said)?;
    Ok(0)
}
