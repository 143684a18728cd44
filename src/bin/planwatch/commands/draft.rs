//! `draft`: prints the passes over the requirements as they happen.

use std::path::{Path, PathBuf};
use std::time::Duration;

use planwatch::api::agents::PromptBy;
use planwatch::ops::draft::{self, Aim, Before, DraftReport, DraftRequest, Event, Preview, Source, State};
use planwatch::plan::time::read_seconds;
use planwatch::plan::words::nearest;
use planwatch::process::answer::{self, Agent, AnswerCommand, PRESETS, Stopper};

use crate::args::draft::Draft;
use crate::commands::new::in_plans_or_empty_dir;
use crate::context::Session;
use crate::failure::Failure;
use crate::fields;
use crate::named_text;
use crate::output::{Loudness, Output, escaped, escaped_lines};
use crate::screens::{BOLD, DIM, change, count, text};
use crate::signals;
use crate::spinner::Spinner;
use crate::table::paint;
use planwatch::text::typed::shell_word;

pub(crate) fn run(session: &Session, args: &Draft) -> Result<u8, Failure> {
    session.output.check_fields(fields::DRAFT)?;
    let who = Who::of(session, args)?;
    let timeout = timeout(&args.timeout)?;
    let request = request(session, args, &who)?;
    if args.is_dry_run {
        let preview = in_plans_or_empty_dir(session, |context| draft::preview(context, &request))?;
        return show(session, &who, preview.as_ref());
    }
    let is_first = session.workspace()?.plans_dir.is_none() && request.aim == Aim::Requirements;
    if is_first {
        // If the draft cannot begin, this fails before a plans directory is made.
        in_plans_or_empty_dir(session, |context| draft::preview(context, &request))?;
    }
    let context = if is_first { session.context_to_make()? } else { session.context()? };
    let directory = context.here.root.clone();
    let command = AnswerCommand { words: who.words, directory, timeout };
    let stopper = Stopper::default();
    let stopping = stopper.clone();
    // A second signal ends the agent without the grace period.
    let signals = signals::stop_at(move |_| {
        stopping.stop();
        true
    });
    let mut agent = Agent { command, stopper };
    let (mut printed, mut spinner) = (Ok(()), None);
    let report = draft::draft(&context, &request, &mut agent, &mut |event| {
        drop(spinner.take());
        let now = print_event(&session.output, event, args.show_diff);
        spinner = waiting(&session.output, event);
        if printed.is_ok() {
            printed = now;
        }
    });
    drop(spinner);
    if is_first && report.as_ref().map_or(true, |it| it.plan.is_none()) {
        // `remove_dir` removes only an empty directory, so files of the user stay.
        std::fs::remove_dir(context.plans.root()).ok();
    }
    let report = report?;
    printed?;
    answer(session, args, &report)?;
    Ok(signals.exit_code().filter(|_| report.is_incomplete()).unwrap_or(report.exit_code()))
}

struct Who {
    words: Vec<String>,
    shown: String,
    checked: Option<&'static str>,
    limit: usize,
}

impl Who {
    fn of(session: &Session, args: &Draft) -> Result<Self, Failure> {
        if let Some(line) = &args.command {
            let (words, shown) = (AnswerCommand::of_shell(line), line.clone());
            return Ok(Self { words, shown, checked: None, limit: answer::CONVERSATION });
        }
        let names = || PRESETS.iter().map(|it| it.name);
        let all = || names().collect::<Vec<_>>().join("|");
        let Some(name) = &args.agent else {
            let hint = format!("--agent {}, or --command 'a line for a shell'", all());
            return Err(Failure::usage("no agent is given", hint));
        };
        // A preset is used even if the user has an agent of the same name: presets for `draft` are read-only, but the
        // user's agent could edit files.
        let preset = PRESETS.iter().find(|it| it.name == name);
        if let Some(shown) = preset.is_none().then(|| own_command(session, name)).flatten() {
            let words = AnswerCommand::of_shell(&shown);
            return Ok(Self { words, shown, checked: None, limit: answer::CONVERSATION });
        }
        let found = preset.ok_or_else(|| {
            let near = nearest(name, names()).map(|it| format!("did you mean `{it}`?"));
            let hint =
                near.unwrap_or_else(|| format!("--agent {}, or --command 'a line for a shell'", all()));
            Failure::usage(format!("`draft` cannot use an agent `{name}`"), hint)
        })?;
        let words: Vec<_> = found.words.iter().map(|it| (*it).to_owned()).collect();
        let shown = words.join(" ");
        Ok(Self { words, shown, checked: Some(found.checked), limit: found.conversation })
    }
}

/// The command of an agent in the user's own configuration. `None` if there is no such agent or it has no command. Also
/// `None` if the agent reads its prompt from a file, because `draft` sends prompts on standard input.
fn own_command(session: &Session, name: &str) -> Option<String> {
    let own = session.own_agents();
    let found = own.get(name).filter(|it| it.prompt != Some(PromptBy::File))?;
    found.command.clone()
}

fn timeout(typed: &str) -> Result<Duration, Failure> {
    let seconds = read_seconds(typed).and_then(|it| u64::try_from(it).ok());
    let wrong = || Failure::usage(format!("`{typed}` is not a span of time"), "write it as 90s, 10m or 1h");
    seconds.map(Duration::from_secs).ok_or_else(wrong)
}

fn request(session: &Session, args: &Draft, who: &Who) -> Result<DraftRequest, Failure> {
    let aim = match (args.go_on, args.steps) {
        (_, true) => Aim::Steps,
        (true, _) => Aim::GoOn,
        _ => Aim::Requirements,
    };
    let source = match (aim, &args.from) {
        (Aim::Steps, _) => None,
        (_, Some(path)) => Some(source(session, path)?),
        (Aim::GoOn, None) => source_again(session, args)?,
        (Aim::Requirements, None) => {
            let hint = "--from FILE reads the conversation from a file, --from - from standard input";
            return Err(Failure::usage("no conversation is given", hint));
        }
    };
    let (name, by) = (args.name.clone(), args.by.by.clone());
    Ok(DraftRequest {
        name,
        source,
        aim,
        passes: args.passes,
        limit: who.limit,
        by,
        before: Before::default(),
    })
}

/// A conversation, and the path by which `--continue` finds it. The path is relative to the repository's root, or as
/// typed if the file is outside of the repository. For standard input, it is `-`.
fn source(session: &Session, path: &Path) -> Result<Source, Failure> {
    let conversation = named_text::read(session, path)?;
    if path.as_os_str() == "-" {
        return Ok(Source { conversation, name: "-".to_owned() });
    }
    let absolute = session.path(path);
    let root = session.root()?;
    let below = absolute.strip_prefix(&root).map_or_else(|_| path.to_path_buf(), Path::to_path_buf);
    let below: PathBuf = below.components().filter(|it| *it != std::path::Component::CurDir).collect();
    Ok(Source { conversation, name: below.to_string_lossy().into_owned() })
}

/// The conversation that a draft was begun with; `None` if there is nothing left to ask the agent.
fn source_again(session: &Session, args: &Draft) -> Result<Option<Source>, Failure> {
    let (context, name) = (session.context()?, &args.name);
    let Some(named) = draft::source(&context, name, args.passes)? else { return Ok(None) };
    if named.is_empty() || named == "-" {
        let hint =
            format!("planwatch draft {name_word} --continue --from FILE", name_word = shell_word(&name));
        return Err(Failure::usage("the draft records no file with its conversation", hint));
    }
    // The name is read from a file of the plan, which may have come with the repository, so only files of the repository
    // are read.
    let conversation = named_text::read_inside(session, Path::new(&named)).map_err(|it| {
        it.with_hint(format!(
            "planwatch draft {name_word} --continue --from FILE",
            name_word = shell_word(&name)
        ))
    })?;
    Ok(Some(Source { conversation, name: named }))
}

fn show(session: &Session, who: &Who, preview: Option<&Preview>) -> Result<u8, Failure> {
    let output = &session.output;
    let Some(preview) = preview else {
        if output.is_json() {
            output.json("draft", serde_json::json!({"state": "finished", "passes": []}))?;
        } else {
            output.text("the draft is finished; no agent would be started\n")?;
        }
        return Ok(0);
    };
    if output.is_json() {
        let mut report = preview.to_json();
        report["command"] = who.shown.as_str().into();
        report["checked"] = who.checked.into();
        output.json("draft", report)?;
        return Ok(0);
    }
    let checked = who.checked.map(|it| paint(DIM, &format!("           {it}\n"))).unwrap_or_default();
    let passes: String =
        preview.passes.iter().map(|(pass, focus)| format!("pass {pass}  {focus}\n")).collect();
    let said = format!(
        "would ask: {}\n{checked}would draft: {}\n{passes}\n{}\n{}\n",
        escaped(&who.shown),
        escaped(&preview.path),
        paint(DIM, "==> prompt of the first pass <=="),
        escaped_lines(preview.prompt.trim_end())
    );
    output.text(&said)?;
    preview.notes.iter().for_each(|it| output.hint(it));
    Ok(0)
}

/// A progress line while an agent works.
fn waiting(output: &Output, event: &Event) -> Option<Spinner> {
    let what = match event {
        Event::Asking { .. } | Event::Again { .. } => "asking the agent",
        Event::Waiting { .. } => "waiting because the agent's limit is reached",
        _ => return None,
    };
    (output.loudness > Loudness::Quiet && !output.is_json()).then(|| Spinner::with(what))
}

fn print_event(output: &Output, event: &Event, with_diff: bool) -> Result<(), Failure> {
    if output.is_json() {
        return output.json("draft-event", event.to_json(with_diff)).map(drop);
    }
    match event {
        Event::Asking { pass, passes, focus } => {
            output.stderr_line(&format!("pass {pass} of at most {passes}: {focus} …"));
        }
        Event::Pass { pass, focus, change, added, removed, diff, .. } => {
            let word = change.word();
            let stat = match (added, removed) {
                (0, 0) => word.to_owned(),
                _ => format!("{word}, +{added} -{removed}"),
            };
            let head = paint(BOLD, &format!("pass {pass}"));
            output.report(&format!("{head}  {focus:<19}  {stat}\n"))?;
            if with_diff && !diff.is_empty() {
                output.report(&text::diff(diff))?;
            }
        }
        Event::Again { pass, why } => output.hint(&format!("pass {pass} is repeated: {why}")),
        Event::Waiting { pass, seconds } => {
            output.hint(&format!("pass {pass} waits {}: the agent's limit is reached", count_of(*seconds)));
        }
        Event::Note { text } => output.hint(text),
    }
    Ok(())
}

fn count_of(seconds: u64) -> String {
    count(usize::try_from(seconds).unwrap_or(usize::MAX), "second")
}

/// The options that name the agent, as they were given.
fn agent_options(args: &Draft) -> String {
    let options = [("--agent", &args.agent), ("--command", &args.command)];
    let given = options.iter().filter_map(|(option, value)| Some((option, value.as_ref()?)));
    given.map(|(option, value)| format!(" {option} {}", shell_word(value))).collect()
}

fn answer(session: &Session, args: &Draft, report: &DraftReport) -> Result<(), Failure> {
    let output = &session.output;
    let agent = agent_options(args);
    if output.is_json() {
        output.json("draft", report.to_json())?;
    } else if let Some(plan) = report.plan.as_deref().filter(|_| !report.is_incomplete()) {
        if let Some(steps) = &report.steps {
            if args.show_diff {
                output.report(&text::diff(&steps.diff))?;
            }
            let lines: String = steps.changes.iter().map(|it| change::line("replace", it)).collect();
            output.report(&text::hanging(&lines, output.width, 4))?;
        }
        let path = report.path.as_deref().unwrap_or_default();
        let path = paint(BOLD, &escaped(path));
        output.report(&format!("{}: {path}\n", sentence(report)))?;
        let plan = shell_word(&plan);
        let next = match report.steps {
            Some(_) => format!("planwatch start {plan}"),
            None => format!("planwatch draft {plan} --steps{agent}"),
        };
        output.report(&change::next_line(&next))?;
    }
    if let Some(error) = report.error() {
        // The command in the hint needs the agent, too.
        let hint = error.hint().map(|it| it.replace(" --continue`", &format!(" --continue{agent}`")));
        let failure = Failure::of(&error);
        output.failure(&match hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        });
    }
    Ok(())
}

fn sentence(report: &DraftReport) -> String {
    let passes = format!("{} pass{}", report.pass, if report.pass == 1 { "" } else { "es" });
    match report.state {
        State::Converged => format!("converged after {passes}"),
        State::Oscillates => format!("ended after {passes}, because an earlier text came back"),
        _ => format!("finished after {passes}"),
    }
}
