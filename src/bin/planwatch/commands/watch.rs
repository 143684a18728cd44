//! `watch`: in the foreground, prints a line for each change until it is stopped or its output is closed. With
//! `--detach`, a daemon watches instead.

pub(crate) mod browser;
mod detached;
mod http;

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use planwatch::disk::PlansDir;
use planwatch::serve::daemon::api::{End, Observer, Stopper};
use planwatch::serve::daemon::event_loop;
use planwatch::serve::daemon::malloc;
use planwatch::serve::http::Serving;
use planwatch::serve::ipc::client::{self, Client, Holder};
use planwatch::serve::ipc::event::{Event, Of, Source, What};
use planwatch::serve::{Status, Untrusted};

use http::Http;
use serde_json::json;

use crate::args::setup::Watch;
use crate::context::{self, Session};
use crate::failure::Failure;
use crate::fields;
use crate::output::{Output, Reader, escaped};
use crate::screens::{BOLD, DIM, colour, count, mark};
use crate::signals::{self, Received};
use crate::table::paint;

/// How long another process that has just taken the lock may need until it answers.
const START: Duration = Duration::from_secs(10);

/// How long a daemon may be busy before it counts as not responding.
const SILENCE: Duration = Duration::from_secs(3);

pub(crate) fn run(session: &Session, args: &Watch) -> Result<u8, Failure> {
    let known = if args.detach || args.stop { fields::DAEMON } else { fields::EVENT };
    session.output.check_fields(known)?;
    let plans = session.plans_dir(&session.workspace()?)?;
    if !args.stop && !args.detach {
        malloc::give_back();
    }
    match () {
        () if args.stop => detached::stop(session, &plans),
        () if args.detach => detached::start(session, &plans, args),
        () if args.detached => detached::run(session, &plans, args),
        () => attached(session, &plans, args),
    }
}

fn attached(session: &Session, plans: &Path, args: &Watch) -> Result<u8, Failure> {
    let address = http::address(session, args)?;
    let mut printer = EventPrinter { output: &session.output, failure: None, http: Http::default() };
    if let Some((client, status)) = in_the_way(session, plans, address.is_some())? {
        http::check_running(args, &status)?;
        http::check_options(args, address, &status)?;
        return follow(client, printer);
    }
    let (inbox, http) = http::prepare(session, plans, args, address)?;
    printer.http = http;
    let signals = stop_at_signals(inbox.stopper());
    let end = event_loop::watch(&|| session.look_again(plans), &context::socket_dirs(), inbox, &mut printer);
    printer.http.end();
    let end = end?;
    if end == End::Another {
        let (client, status) = just_begun(&session.look_again(plans)?.plans)?;
        http::check_running(args, &status)?;
        http::check_options(args, address, &status)?;
        return follow(client, printer);
    }
    match printer.failure {
        Some(failure) => Err(failure),
        None => ended(&end, signals.exit_code_of_service()),
    }
}

/// Stops watching at a signal. At a second one, or when nothing watches any more, the process exits at once.
fn stop_at_signals(stopper: Stopper) -> Received {
    signals::stop_at(move |is_first| stopper.stop() && is_first)
}

/// The exit code for the end of watching; a plans directory that is gone is a failure.
fn ended(end: &End, signalled: u8) -> Result<u8, Failure> {
    match end {
        End::Gone => {
            Err(Failure::failed("not-found", "the plans directory was deleted or moved").with_exit(3))
        }
        End::Stopped => Ok(signalled),
        _ => Ok(0),
    }
}

/// The failure if the daemon does not answer.
fn no_answer(pid: Option<u32>) -> Failure {
    let (who, kill) = match pid {
        Some(pid) => (
            format!("process {pid}"),
            format!(
                "`kill -CONT {pid}` resumes it if it was stopped; `kill -KILL {pid}` ends it in any case"
            ),
        ),
        None => (
            "another process".to_owned(),
            "find it (`ps -C planwatch`), then resume it with `kill -CONT` or end it".to_owned(),
        ),
    };
    let message = format!("the daemon of these plans ({who}) does not respond");
    Failure::failed("locked", message).with_hint(kill).with_exit(4)
}

/// Connects to the daemon; `None` if there is none. Waits for a busy daemon, at most [`SILENCE`].
fn answering(plans: &PlansDir) -> Result<Option<(Client, Status)>, Failure> {
    let mut silent = None;
    let found = within(SILENCE, || match client::holder(plans, &context::socket_dirs()) {
        Holder::None => Some(None),
        Holder::Silent { pid } => {
            silent = pid;
            None
        }
        Holder::Answering(client, status) => Some(Some((client, status))),
    });
    found.ok_or_else(|| no_answer(silent))
}

/// Like [`answering`]. If no daemon was found, it also waits for a process that holds the lock but does not answer yet. If
/// HTTP is wanted, it stops a watcher that `gives_way`.
fn in_the_way(
    session: &Session,
    plans: &Path,
    wants_http: bool,
) -> Result<Option<(Client, Status)>, Failure> {
    let plans = session.look_again(plans)?.plans;
    match answering(&plans)? {
        Some((client, status)) if wants_http && status.gives_way => {
            end_giving_way(client, &plans)?;
            answering(&plans)
        }
        None => wait_for_holder(&plans),
        found => Ok(found),
    }
}

/// Waits while a process holds the lock but does not answer: a killed process still holds it for a moment, and a
/// process that has just started does not answer yet. Fails if that process continues to hold the lock.
fn wait_for_holder(plans: &PlansDir) -> Result<Option<(Client, Status)>, Failure> {
    let is_free = || plans.daemon_lock().map_or(true, |it| it.is_some());
    let found = within(START, || match client::holder(plans, &context::socket_dirs()) {
        Holder::Answering(client, status) => Some(Some((client, status))),
        Holder::None | Holder::Silent { .. } => is_free().then_some(None),
    });
    found.ok_or_else(without_answer)
}

/// The failure if a process watches, but has no socket.
fn without_answer() -> Failure {
    let hint = "`planwatch doctor` explains why; `ps -C planwatch` finds the process, and `kill` ends it";
    let message = "another process watches these plans, but has no socket for commands";
    Failure::failed("locked", message).with_hint(hint).with_exit(4)
}

/// Asks a process for which watching is only a side job (`gives_way`) to stop watching. The process continues with its
/// other work. Returns when another process can watch.
fn end_giving_way(client: Client, plans: &PlansDir) -> Result<Option<Status>, Failure> {
    let status = client.stop();
    within(START, || plans.daemon_lock().ok().flatten()).ok_or_else(|| no_answer(None))?;
    Ok(status)
}

/// Returns the process that has just taken the lock, once it answers.
fn just_begun(plans: &PlansDir) -> Result<(Client, Status), Failure> {
    let mut silent = None;
    let found = within(START, || match client::holder(plans, &context::socket_dirs()) {
        Holder::Answering(client, status) => Some((client, status)),
        Holder::Silent { pid } => {
            silent = pid;
            None
        }
        Holder::None => None,
    });
    found.ok_or_else(|| no_answer(silent))
}

fn within<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + patience;
    loop {
        match look() {
            None if Instant::now() < end => std::thread::sleep(Duration::from_millis(20)),
            found => return found,
        }
    }
}

fn follow(client: Client, printer: EventPrinter<'_>) -> Result<u8, Failure> {
    let printer = std::cell::RefCell::new(printer);
    let ready = &mut |status: &Status| {
        let mut printer = printer.borrow_mut();
        printer.output.stderr_line(&format!("{}; its events follow", who(status)));
        if printer.output.is_json() { printer.ready(status) } else { ControlFlow::Continue(()) }
    };
    let end = client.follow(ready, &mut |event| printer.borrow_mut().event(event));
    let printer = printer.into_inner();
    match (printer.failure, end) {
        (Some(failure), _) => Err(failure),
        (None, client::End::BrokenOff) => Ok(0),
        (None, client::End::ByDaemon(why)) => {
            printer.output.stderr_line(&format!("the process that watched has ended: {why}"));
            Ok(0)
        }
        (None, client::End::Broken) => {
            let message = "the process that watched has ended without a message";
            Err(Failure::failed("no-daemon", message).with_exit(8))
        }
    }
}

fn who(status: &Status) -> String {
    let Status { pid, plans, steps, since, .. } = status;
    let (plans, steps) = (count(*plans, "plan"), count(*steps, "step"));
    format!("process {pid} has watched {plans} with {steps} since {since}{}", answers_on(status))
}

/// The address at which the process answers over HTTP, as the end of a sentence.
fn answers_on(status: &Status) -> String {
    status.http.as_ref().map(|it| format!(", and answers on {it}")).unwrap_or_default()
}

struct EventPrinter<'a> {
    output: &'a Output,
    failure: Option<Failure>,
    http: Http,
}

impl EventPrinter<'_> {
    fn go_on(&mut self, printed: Result<Reader, Failure>) -> ControlFlow<()> {
        match printed {
            Ok(Reader::There) => ControlFlow::Continue(()),
            Ok(Reader::Gone) => ControlFlow::Break(()),
            Err(failure) => {
                self.failure = Some(failure);
                ControlFlow::Break(())
            }
        }
    }
}

impl Observer for EventPrinter<'_> {
    fn ready(&mut self, status: &Status) -> ControlFlow<()> {
        if let Err(error) = self.http.start() {
            self.failure = Some(Failure::from(error).with_exit(8));
            return ControlFlow::Break(());
        }
        if self.output.is_json() {
            let (plans, steps) = (status.plans, status.steps);
            let total = json!({"plans_total": plans, "steps_total": steps, "http": status.http});
            let printed = self.output.json("ready", total);
            return self.go_on(printed);
        }
        self.output.stderr_line(&format!(
            "watching {} with {}{}; Ctrl-C ends it",
            count(status.plans, "plan"),
            count(status.steps, "step"),
            answers_on(status)
        ));
        ControlFlow::Continue(())
    }

    fn event(&mut self, event: &Event) -> ControlFlow<()> {
        let printed = if self.output.is_json() {
            self.output.json("event", event.to_json())
        } else {
            self.output.text(&line(event))
        };
        self.go_on(printed)
    }

    fn polling(&mut self, why: Option<&str>) {
        self.output.stderr_line(&polling(why));
    }

    fn without_socket(&mut self, why: &Untrusted) {
        self.output.stderr_line(&without_socket(why));
    }

    fn ending(&mut self) {
        self.http.serving().into_iter().for_each(Serving::close);
    }

    fn mended(&mut self) {
        self.http.serving().into_iter().for_each(Serving::put_token);
    }
}

fn without_socket(why: &Untrusted) -> String {
    format!("warning: {why}, so commands do not use this daemon; {}", why.hint())
}

fn polling(why: Option<&str>) -> String {
    why.map_or_else(
        || "the system reports changes again".to_owned(),
        |why| format!("checking for changes every two seconds: {why}"),
    )
}

fn line(event: &Event) -> String {
    let at = event.at.to_string();
    let time = at.get(11..19).unwrap_or(&at);
    let word = |status: &str| paint(colour(status), &escaped(status));
    let (status, said) = match &event.what {
        What::Status { old, new } => (new.as_str(), format!("{} → {}", escaped(old), word(new))),
        What::Added { new } => (new.as_str(), format!("added, {}", word(new))),
        What::Removed { .. } => ("", "removed".to_owned()),
        What::ClaimedElsewhere => ("in_progress", "claimed elsewhere".to_owned()),
        What::ReleasedElsewhere => ("pending", "released elsewhere".to_owned()),
        What::EndedElsewhere { new } => (new.as_str(), format!("{} elsewhere", word(new))),
        What::Attempt { attempt } => {
            let outcome = attempt.outcome.as_deref().unwrap_or("attempt");
            let notes = attempt.notes.as_deref().and_then(|it| it.lines().next()).unwrap_or_default();
            let by = attempt.by.as_deref().map(|it| format!(" by {it}")).unwrap_or_default();
            let notes = if notes.is_empty() { String::new() } else { format!(": {notes}") };
            (outcome, escaped(&format!("attempt {outcome}{by}{notes}")).into_owned())
        }
    };
    let mark = match (&event.what, event.of) {
        (What::Attempt { .. }, _) => '+',
        (_, Of::Plan) => '▪',
        (What::Removed { .. }, Of::Step) => '-',
        _ => mark(status),
    };
    let mark = paint(colour(status), &mark.to_string());
    let source = match &event.source {
        Source::Files => String::new(),
        Source::Engine { verb, by } => paint(DIM, &escaped(&format!("  ({verb}, {by})"))),
        Source::Remote { by, host } => paint(DIM, &escaped(&format!("  ({by} on {host})"))),
    };
    format!(
        "{} {mark} {} {}  {said}{source}\n",
        paint(DIM, time),
        paint(BOLD, &escaped(&event.id)),
        escaped(&event.title)
    )
}
