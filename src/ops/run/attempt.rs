//! One attempt at a step, from the step's claim to the entry in the step's file.

use serde_json::Value;

use crate::api::agents::AgentCommand;
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::shown_path;
use crate::disk::Process;
use crate::ops::claim::{Begun, Task};
use crate::ops::run::outcome::{self, ClaimState, ExitKind, Outcome, Verdict, Verified};
use crate::ops::run::settle::{self, Facts};
use crate::ops::run::trees::{self, Gathered, Merged, Tree, Trees};
use crate::ops::run::{Ended, EndedStep, Event, Job, RunRequest, Surface, WorkerEvent, Workers, environment};
use crate::plan::id::StepId;
use crate::plan::model::Step;
use crate::plan::words::StepStatus;
use crate::store::prompt;
use crate::store::sync::ending::{self, Fenced};
use crate::store::verify;
use crate::store::{leases, load};

/// The maximum number of tries to write the result of an attempt. If the step's file changes meanwhile, the next try decides
/// the result again.
const TRIES: usize = 5;

pub(super) struct Attempt<'a> {
    pub(super) request: &'a RunRequest,
    pub(super) surface: &'a dyn Surface,
    pub(super) workers: &'a dyn Workers,
    pub(super) begun: &'a Begun,
    /// The working tree of the step. `None`: the step is worked on in the user's own working tree.
    pub(super) place: Option<(&'a Trees, &'a Tree)>,
    /// Called before the result is written into the step's file.
    pub(super) before_result: &'a dyn Fn(),
}

/// The context with a step's working tree as its root, if the step has one.
pub(super) fn within(mut context: Context, tree: Option<&Tree>) -> Context {
    if let Some(tree) = tree {
        context.here.root.clone_from(&tree.path);
    }
    context
}

pub(super) struct Made {
    pub(super) verdict: Verdict,
    /// The step as it is now. `None`: it was not found.
    pub(super) step: Option<Step>,
    pub(super) ended_step: EndedStep,
    pub(super) cost: Option<f64>,
}

impl Made {
    pub(super) fn id<'a>(&'a self, begun: &'a Begun) -> &'a StepId {
        id_now(self.step.as_ref(), begun)
    }
}

/// The step's id, which the attempt may have changed.
fn id_now<'a>(step: Option<&'a Step>, begun: &'a Begun) -> &'a StepId {
    step.map_or(&begun.step.id, |it| &it.id)
}

impl Attempt<'_> {
    /// Runs the process, reads the file, verifies, and writes the result.
    pub(super) fn make(&self) -> Result<Made, Error> {
        let context = self.surface.context()?;
        // Trust in the `verify` commands was checked before the work. This hash shows later whether they have changed.
        let trusted = verify::subject(&self.inside()?, &self.begun.step).map(|it| it.hash);
        let log = context.plans.run_log(&self.begun.log)?;
        let ended = match self.begun.task {
            Task::Verify => None,
            Task::Work => Some(self.work(&context, &log)?),
        };
        let how = ended.as_ref().map_or(ExitKind::Exited, |it| it.how.clone());
        let (answer, cost) = ended.as_ref().map_or((String::new(), None), |it| self.answer(it));
        let facts = Facts {
            by: self.request.by().to_owned(),
            exit_code: match how {
                ExitKind::Stopped => Some(130),
                _ => ended.as_ref().and_then(|it| it.exit_code),
            },
            cost,
            said: answer,
        };
        self.settle(&how, facts, trusted.as_deref(), &log)
    }

    /// The context of the processes that run for the step.
    fn inside(&self) -> Result<Context, Error> {
        Ok(within(self.surface.context()?, self.place.map(|it| it.1)))
    }

    fn work(&self, context: &Context, log: &std::fs::File) -> Result<Ended, Error> {
        let begun = self.begun;
        let id = &begun.step.id;
        let plan = load::existing_plan(context, &id.plan)?;
        let mut values = prompt::step_values(context, &plan, &begun.step, Some(&begun.claim));
        if self.place.is_some() {
            // In the step's working tree, a relative path would name only a copy of the file, so the prompt gets an absolute
            // path.
            values["path"] = context.plans.root().join(&begun.step.path).to_string_lossy().into();
        }
        let directory = self.place.map_or(&context.here.root, |it| &it.1.path);
        let rendered = prompt::render(context, "step", &values)?;
        rendered.notes.iter().for_each(|text| self.surface.report(&Event::Note { text }));
        let prompt = context.plans.run_prompt(&begun.log, rendered.text.as_bytes())?;
        let step = id.to_string();
        let environment = environment(context, self.request, &step, id.plan.as_str(), &begun.claim);
        let max = context.config.max_attempts() as usize;
        self.surface.report(&Event::Started {
            step: &step,
            title: &begun.step.title,
            attempt: begun.step.tries() + 1,
            of: max,
            why: &begun.why,
            log: &shown_path(&context.root_name(), &begun.log),
        });
        let job = Job {
            command: &self.request.agent.command,
            prompt: Some((&prompt, self.request.agent.prompt)),
            directory,
            is_in_own_tree: self.place.is_some(),
            environment: &environment,
            log,
            timeout: self.timeout(self.request.timeout()),
            idle: self.request.idle(),
        };
        let on_event = |event: WorkerEvent<'_>| match event {
            WorkerEvent::Output(bytes) => self.surface.report(&Event::Output { step: &step, bytes }),
            WorkerEvent::Started(pid) => {
                if let Some(process) = Process::find(context.plans.disk(), pid) {
                    leases::note_worker(context, id, &begun.claim, &process);
                }
            }
        };
        Ok(self.workers.work(&job, &on_event))
    }

    /// The time limit of an attempt: its own limit, or the time that is left of the run if that is shorter.
    fn timeout(&self, own: std::time::Duration) -> std::time::Duration {
        let left = self.request.max_time.map(|it| it.saturating_sub(self.surface.elapsed()));
        left.map_or(own, |it| it.min(own))
    }

    /// The text of the agent's answer, and the cost that it reports.
    fn answer(&self, ended: &Ended) -> (String, Option<f64>) {
        let text = String::from_utf8_lossy(&ended.output);
        let agent = &self.request.agent;
        let object = last_object(&text);
        let cost = agent.cost.as_deref().zip(object.as_ref()).and_then(|(key, it)| it.get(key)?.as_f64());
        let words = agent.answer.zip(object.as_ref()).and_then(|(key, it)| it.get(key)?.as_str());
        let words = words.map_or_else(|| text.clone().into_owned(), str::to_owned);
        (plain(&words), cost.filter(|it| it.is_finite() && *it >= 0.0))
    }

    fn settle(
        &self,
        how: &ExitKind,
        mut facts: Facts,
        trusted: Option<&str>,
        log: &std::fs::File,
    ) -> Result<Made, Error> {
        let mut verified = None;
        for _ in 0..TRIES {
            let context = self.surface.context()?;
            let (found, seen) = settle::look(&context, self.begun)?;
            let mut verdict = outcome::decide(found, how, verified.as_ref());
            if verdict == Verdict::Lost && !settle::end_lost(&context, self.begun)? {
                continue;
            }
            let Some(seen) = seen else { return Ok(self.made(&context, verdict, None, &facts)) };
            if found == ClaimState::Completed
                && (verdict == Verdict::Verify || self.is_changed(&self.inside()?, &seen, trusted))
            {
                if let Some(why) = self.gather(&seen)? {
                    verdict = Verdict::NotMerged(why);
                } else {
                    let said = self.verify(&self.inside()?, &seen, trusted, log)?;
                    if let Verified::Failed(words) = &said {
                        facts.said.clone_from(words);
                    }
                    verdict = outcome::decide(found, how, Some(&said));
                    verified = Some(said);
                }
            }
            let is_read_only = matches!(verdict, Verdict::Leave | Verdict::Lost | Verdict::Unclear);
            let is_ended = matches!(&verdict, Verdict::AsItIs(_)) && !settle::is_ours(&context, self.begun);
            if is_read_only || is_ended {
                return Ok(self.made(&context, verdict, Some(seen), &facts));
            }
            let mut verdict = self.fenced(&context, &seen, verdict)?;
            verdict = self.merged(verdict, &seen).inspect_err(|_| ending::put_back(&context, &seen.id))?;
            if matches!(verdict, Verdict::NotMerged(_)) {
                // The record at the registry says that the step was completed, but the step is going to be blocked.
                verdict = self.fenced(&context, &seen, verdict)?;
            }
            (self.before_result)();
            let written = settle::write(&context, self.begun, &seen, &verdict, &facts);
            if let Some(after) = self.close_fence(&context, &seen, &verdict, written)? {
                return Ok(self.made(&context, verdict, Some(after), &facts));
            }
        }
        let message = format!("the file of `{}` changes again and again", self.begun.step.id);
        Err(Error::Conflict { code: "file-changed", message, hint: "repeat the command".to_owned() })
    }

    /// Ends the claim's record at the registry. The record gets the state that [`settle::state_after`] returns. If that
    /// function returns none, the record is not changed here, but in [`Self::close_fence`], after the file is written. If
    /// another machine has taken over the step, returns [`Verdict::Overtaken`].
    fn fenced(&self, context: &Context, seen: &Step, verdict: Verdict) -> Result<Verdict, Error> {
        let Some(state) = settle::state_after(context, seen, &verdict) else { return Ok(verdict) };
        match ending::fence(context, &seen.id, Some(&self.begun.claim), state)? {
            Fenced::Lost { .. } | Fenced::LostBefore { .. } => Ok(Verdict::Overtaken),
            Fenced::NoRecord | Fenced::Passed => Ok(verdict),
        }
    }

    fn close_fence(
        &self,
        context: &Context,
        seen: &Step,
        verdict: &Verdict,
        written: Result<Option<Step>, Error>,
    ) -> Result<Option<Step>, Error> {
        let id = &seen.id;
        match (&written, settle::state_after(context, seen, verdict)) {
            (Err(_), Some(_)) => ending::put_back(context, id),
            (Ok(Some(_)), Some(_)) => ending::written(context, id, None),
            (Ok(Some(_)), None) => ending::released(context, id),
            // If the file has changed, the caller reads it again.
            _ => {}
        }
        written
    }

    /// Commits the content of the step's working tree, so that the content that is verified is also the content that is
    /// merged. If it cannot be merged as it is, returns the reason.
    fn gather(&self, seen: &Step) -> Result<Option<String>, Error> {
        let Some((trees, tree)) = self.place else { return Ok(None) };
        match trees.gather(tree, seen)? {
            Gathered::Stuck(why) => Ok(Some(trees.why(tree, &why))),
            Gathered::Ready { left_out } => {
                if !left_out.is_empty() {
                    let (id, branch, paths) = (&seen.id, &tree.branch, left_out.join(", "));
                    let text = format!("`{id}`: changes of plan files in `{branch}` are left out: {paths}");
                    self.surface.report(&Event::Note { text: &text });
                }
                Ok(None)
            }
        }
    }

    /// Merges the step's work if the verdict is [`Verdict::Close`]. After a conflict, the verdict is
    /// [`Verdict::NotMerged`].
    fn merged(&self, verdict: Verdict, seen: &Step) -> Result<Verdict, Error> {
        let Some((trees, tree)) = self.place.filter(|_| verdict == Verdict::Close) else {
            return Ok(verdict);
        };
        Ok(match trees.merge(tree, seen)? {
            Merged::Done => verdict,
            Merged::Conflict(paths) => Verdict::NotMerged(trees.why(tree, &trees::conflict(&paths))),
        })
    }

    /// Whether the `verify` commands, or the files that trust covers, have changed since the attempt began.
    fn is_changed(&self, context: &Context, seen: &Step, trusted: Option<&str>) -> bool {
        let now = verify::subject(context, seen).map(|it| it.hash);
        seen.verify != self.begun.step.verify || now.as_deref() != trusted
    }

    fn verify(
        &self,
        context: &Context,
        seen: &Step,
        trusted: Option<&str>,
        log: &std::fs::File,
    ) -> Result<Verified, Error> {
        if self.is_changed(context, seen, trusted) {
            return Ok(Verified::Changed);
        }
        // Trust may have been revoked during the work.
        verify::check(context, seen, &self.request.trust_hashes)?;
        let step = seen.id.to_string();
        let environment = environment(context, self.request, &step, seen.id.plan.as_str(), &self.begun.claim);
        // The `verify` commands are not the step's own process, so these two variables are left out.
        let is_kept = |name: &std::ffi::OsString| name != "PLANWATCH_CLAIM" && name != "PLANWATCH_STEP";
        let environment = environment.into_iter().filter(|(name, _)| is_kept(name));
        let mark = ("PLANWATCH_VERIFY".into(), self.begun.claim.clone().into());
        let environment: Vec<_> = environment.chain([mark]).collect();
        for check in verify::checks(context, seen) {
            if self.workers.is_stopped() {
                return Ok(Verified::Stopped);
            }
            self.surface.report(&Event::Verifying { step: &step, command: &check.command });
            let Some(directory) = &check.directory else {
                return Ok(Verified::Failed(format!(
                    "the directory in which `{}` runs does not exist in the repository",
                    check.command
                )));
            };
            let command = AgentCommand::Line(check.command.clone());
            let job = Job {
                command: &command,
                prompt: None,
                directory,
                is_in_own_tree: self.place.is_some(),
                environment: &environment,
                log,
                timeout: check.timeout,
                idle: None,
            };
            let ended = self.workers.work(&job, &|event| {
                if let WorkerEvent::Output(bytes) = event {
                    self.surface.report(&Event::Output { step: &step, bytes });
                }
            });
            match (&ended.how, ended.exit_code) {
                (ExitKind::Stopped, _) => return Ok(Verified::Stopped),
                (ExitKind::Exited, Some(0)) => {}
                (how, code) => return Ok(Verified::Failed(why_failed(&check.command, how, code, &ended))),
            }
        }
        Ok(if seen.verify.is_empty() { Verified::NotNeeded } else { Verified::Ok })
    }

    fn made(&self, context: &Context, verdict: Verdict, step: Option<Step>, facts: &Facts) -> Made {
        let begun = self.begun;
        let outcome = match &verdict {
            Verdict::Close => "completed".to_owned(),
            Verdict::Attempt(outcome) => outcome.word().to_owned(),
            Verdict::AsItIs(StepStatus::Pending) => "released".to_owned(),
            Verdict::AsItIs(status) => status.to_string(),
            Verdict::GiveBack(_) => "not started".to_owned(),
            Verdict::VerifyChanged => "verify changed".to_owned(),
            Verdict::NotMerged(_) => settle::MERGE_CONFLICT.to_owned(),
            Verdict::Leave | Verdict::Verify => "not verified".to_owned(),
            Verdict::Lost | Verdict::Overtaken => "claim lost".to_owned(),
            Verdict::Unclear => "file faulty".to_owned(),
        };
        let status = step.as_ref().map(|it| it.standing().word().to_owned()).unwrap_or_default();
        let last = step.as_ref().and_then(|it| it.attempts.last());
        let notes = match &verdict {
            Verdict::GiveBack(why) | Verdict::NotMerged(why) => Some(why.clone()),
            Verdict::Attempt(Outcome::VerifyFailed) => facts.said.lines().next().map(str::to_owned),
            _ => last
                .filter(|it| it.is_of_claim(&begun.claim))
                .and_then(|it| it.notes.as_deref()?.lines().last().map(str::to_owned)),
        };
        let at = begun.step.claim.as_ref().and_then(|it| it.at);
        let ended_step = EndedStep {
            step: id_now(step.as_ref(), begun).to_string(),
            title: begun.step.title.clone(),
            outcome,
            status,
            exit_code: facts.exit_code,
            seconds: at.map_or(0, |at| context.now.seconds_since(at)).max(0),
            cost: facts.cost,
            log: shown_path(&context.root_name(), &begun.log),
            notes,
        };
        Made { verdict, step, ended_step, cost: facts.cost }
    }
}

/// The last JSON object that begins at the start of a line. It may have several lines.
fn last_object(text: &str) -> Option<Value> {
    let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let starts: Vec<_> = starts.filter(|at| text[*at..].starts_with('{')).collect();
    let read =
        |at: &usize| serde_json::Deserializer::from_str(&text[*at..]).into_iter::<Value>().next()?.ok();
    starts.iter().rev().find_map(read)
}

/// The maximum number of characters of a `verify` command's output in the notes. This leaves room for the command in the
/// notes.
const MOST_PRINTED: usize = 3_000;

fn why_failed(command: &str, how: &ExitKind, code: Option<i32>, ended: &Ended) -> String {
    let why = match (how, code) {
        (ExitKind::TimedOut | ExitKind::Idle, _) => "took too long".to_owned(),
        (ExitKind::NotStarted(why), _) => format!("could not be started: {why}"),
        (_, Some(code)) => format!("ended with exit code {code}"),
        (_, None) => "was ended by a signal".to_owned(),
    };
    let said = plain(&String::from_utf8_lossy(&ended.output));
    let tail: Vec<_> = said.trim().lines().collect();
    let tail = tail[tail.len().saturating_sub(40)..].join("\n");
    let n_cut = tail.chars().count().saturating_sub(MOST_PRINTED);
    let tail: String = tail.chars().skip(n_cut).collect();
    format!("`{command}` {why}\n{tail}").trim().to_owned()
}

/// A text without terminal control sequences.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' if rest.peek() == Some(&'[') => {
                rest.next();
                while rest.next().is_some_and(|it| !it.is_ascii_alphabetic()) {}
            }
            '\n' | '\t' => plain.push(c),
            c if c.is_control() => {}
            c => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failed_command_is_named_although_it_printed_much() {
        let output = format!("{}\n", "x".repeat(200)).repeat(60).into_bytes();
        let ended = Ended { how: ExitKind::Exited, exit_code: Some(1), output };
        let text = why_failed("make", &ExitKind::Exited, Some(1), &ended);
        assert!(text.starts_with("`make` ended with exit code 1\nx"), "{text}");
        assert!(text.chars().count() < 3_100);
    }

    #[test]
    fn the_last_object_is_the_answer() {
        let key = |text: &str| last_object(text).and_then(|it| it.get("a").and_then(Value::as_i64));
        assert_eq!(key("{\"a\": 1}\n{\"a\": 2}\nbye\n"), Some(2));
        assert_eq!(key("warning\n{\n  \"a\": 3,\n  \"b\": {\n  }\n}\n"), Some(3));
        assert_eq!(key("{\"a\": 4}\n{ no json\n"), Some(4));
        assert_eq!((key(""), key("{"), key("  {\"a\": 5}")), (None, None, None));
    }

    #[test]
    fn control_sequences_are_removed() {
        assert_eq!(plain("\u{1b}[1;31mred\u{1b}[0m\u{7} and\tplain\r\n"), "red and\tplain\n");
    }
}
