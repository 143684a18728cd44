//! Completions for shells: verbs, options and their values, plans and steps.
//!
//! The scripts that `planwatch completions` prints run this program each time the user presses Tab. It prints only the
//! completions, on stdout. If there is no plans directory, it prints no error.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use anstream::ColorChoice;
use clap::{Arg, Args, Command, FromArgMatches};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};
use clap_complete::{Shell, engine};
use planwatch::api::context::Context;
use planwatch::ops::completion;

use crate::args::{self, Everywhere};
use crate::context::{self, Session};
use crate::failure::{self, Failure};
use crate::help;
use crate::output::{Form, Loudness};
use crate::typed::Typed;

/// The environment variable in which a completion script names its shell. Nothing else sets it.
pub(crate) const VARIABLE: &str = "PLANWATCH_COMPLETE";

/// Prints the completions of this command line. Errors are ignored, because a shell cannot show them during completion.
pub(crate) fn answer(shell: &str, words: &[OsString]) -> u8 {
    let line = Arc::new(Line::of(shell, words));
    let asked = CompleteEnv::with_factory(|| command(&line)).var(VARIABLE).shells(Shells(&SHELLS));
    // Without a directory no relative path is completed.
    let directory = env::current_dir().ok();
    asked.try_complete(words.to_vec(), directory.as_deref()).ok();
    0
}

/// The completion script for a shell. It calls this program.
pub(crate) fn script(shell: Shell) -> Result<Vec<u8>, Failure> {
    let of: &dyn EnvCompleter = match shell {
        Shell::Bash => &Bash,
        Shell::Elvish => &Elvish,
        Shell::Fish => &Fish,
        Shell::PowerShell => &Powershell,
        Shell::Zsh => &Zsh,
        other => return Err(Failure::usage(format!("`{other}` has no completions"), "")),
    };
    let mut script = Vec::new();
    of.write_registration(VARIABLE, "planwatch", "planwatch", "planwatch", &mut script)
        .map_err(|error| Failure::failed("io-error", failure::system(&error)))?;
    for (of, old, new) in AMENDED {
        if of == shell {
            let text = String::from_utf8_lossy(&script);
            script = text.replacen(old, new, 1).into_bytes();
        }
    }
    if shell == Shell::Zsh {
        // If the script is a file on the `fpath`, zsh runs it at the first tab as the function `_planwatch`. That first
        // call has to print completions, too.
        script
            .extend(b"if [[ ${funcstack[1]} == _planwatch ]]; then _clap_dynamic_completer_planwatch; fi\n");
    }
    Ok(script)
}

/// Replacements in the scripts that `clap_complete` writes: the shell, the old text and the new text. These scripts pass
/// words as typed, with quotes and backslashes, so a word with a space would get no completions. Zsh would quote the
/// tilde of a completion such as `~/…`, so its own completion of files is used for words that begin with a tilde.
const AMENDED: [(Shell, &str, &str); 3] = [
    (Shell::Zsh, r#""${words[@]}""#, r#""${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}""#),
    (Shell::Zsh, "planwatch() {\n", "planwatch() {\n    if [[ $PREFIX == '~'* ]]; then _files; return; fi\n"),
    (Shell::Fish, "(commandline --current-token)", "(commandline --current-token | string unescape)"),
];

const SHELLS: [&dyn EnvCompleter; 5] = [&Bash, &Elvish, &Fish, &Powershell, &Zsh];

/// Bash splits words such as `auth:2` at the colon. So its script passes the whole line, and the part of the last word
/// that Bash is going to replace.
struct Bash;

const BASH: &str = r#"_planwatch() {
    local found
    COMPREPLY=()
    while IFS= read -r found; do
        COMPREPLY+=("$found")
    done < <(VAR=bash COMPLETER -- "${COMP_LINE:0:COMP_POINT}" "$2" 2> /dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/:] ]]; then
        compopt -o nospace 2> /dev/null
    fi
}
complete -F _planwatch BIN
"#;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn is(&self, name: &str) -> bool {
        name == "bash"
    }

    fn write_registration(
        &self,
        var: &str,
        _name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        let script = BASH.replace("VAR", var).replace("COMPLETER", completer).replace("BIN", bin);
        buf.write_all(script.as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut Command,
        arguments: Vec<OsString>,
        directory: Option<&Path>,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        let arguments: Vec<_> = arguments.iter().map(|it| it.to_string_lossy()).collect();
        let [line, replaced] = arguments.as_slice() else { return Ok(()) };
        let Some((words, quote)) = words_of(line) else { return Ok(()) };
        let last = words.len() - 1;
        // Bash replaces only the end of the last word, so the beginning that stays is removed from each value.
        let stays = words[last].strip_suffix(&**replaced).map_or(0, str::len);
        for it in engine::complete(command, words.iter().map(OsString::from).collect(), last, directory)? {
            let value = it.get_value().to_string_lossy();
            let rest = value.get(stays..).unwrap_or(&value);
            let rest = if quote.is_empty() { quoted(rest, replaced) } else { rest.to_owned() };
            writeln!(buf, "{rest}")?;
        }
        Ok(())
    }
}

/// The words of a line that is being typed, and the quote that is open at its end. After a space, the last word is
/// empty.
fn words_of(line: &str) -> Option<(Vec<String>, &'static str)> {
    const END: char = '\u{1}';
    let split = |quote| Some((shell_words::split(&format!("{line}{END}{quote}")).ok()?, quote));
    let (mut words, quote) = ["", "'", "\""].into_iter().find_map(split)?;
    let last = words.last_mut()?;
    last.pop().filter(|it| *it == END)?;
    Some((words, quote))
}

/// Escapes a value for use outside of quotes in Bash: all characters that can be special in a shell.
fn quoted(value: &str, replaced: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%".contains(c);
    // An escaped tilde would not mean the home directory.
    let home = if replaced.starts_with('~') && value.starts_with("~/") { "~/" } else { "" };
    let escaped = value[home.len()..].chars();
    let escaped = escaped.flat_map(|c| (!is_plain(c)).then_some('\\').into_iter().chain([c]));
    home.chars().chain(escaped).collect()
}

/// The whole command line, with completers for the values of its arguments.
fn command(line: &Arc<Line>) -> Command {
    with_values(args::whole_command(), "", line)
}

fn with_values(command: Command, above: &str, line: &Arc<Line>) -> Command {
    let verb = command.get_name().to_owned();
    let command = command.mut_args(|it| match Taken::by(above, &verb, &it) {
        None => it,
        Some(taken) => {
            let line = Arc::clone(line);
            it.add(ArgValueCompleter::new(move |begun: &OsStr| taken.candidates(begun, &line)))
        }
    });
    command.mut_subcommands(|it| with_values(it, &verb, line))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Plan,
    /// A step, or a plan.
    Step,
    Status,
    Agent,
    Script,
    HelpTopic,
    Template,
    Archived,
    /// A plan; with `--restore`, an archived plan.
    ToArchive,
    Key,
    Value,
    SortKey,
}

impl Taken {
    /// `above` is the parent command of `verb`, for example `script` for `script run`.
    fn by(above: &str, verb: &str, it: &Arg) -> Option<Self> {
        match (above, verb, it.get_id().as_str()) {
            ("script", _, "id") | (_, "trust", "scripts") => Some(Self::Script),
            (_, "undo", _) => None,
            (_, "archive", "ids") => Some(Self::ToArchive),
            (_, "restore", "ids") => Some(Self::Archived),
            (_, "set" | "unset", "key") => Some(Self::Key),
            (_, "set", "value") => Some(Self::Value),
            (_, _, "sort") => Some(Self::SortKey),
            (_, "new", "template") => Some(Self::Template),
            (_, _, "plan" | "program") => Some(Self::Plan),
            ("template", ..) => None,
            (_, "squash", "steps") => Some(Self::Step),
            (_, _, "id" | "ids" | "target" | "step" | "after" | "before" | "depends") => Some(Self::Step),
            (_, _, "status") => Some(Self::Status),
            (_, "run" | "draft", "agent") => Some(Self::Agent),
            (_, "help", "topic") => Some(Self::HelpTopic),
            _ => None,
        }
    }

    fn candidates(self, begun: &OsStr, line: &Line) -> Vec<CompletionCandidate> {
        let Some(begun) = begun.to_str() else { return Vec::new() };
        let plain = |words: Vec<String>| words.into_iter().map(CompletionCandidate::new).collect();
        let fixed = |words: Vec<&str>| words.into_iter().map(CompletionCandidate::new).collect();
        let mut found: Vec<CompletionCandidate> = match self {
            Self::Status => fixed(completion::statuses()),
            Self::HelpTopic => topics(),
            Self::Key => fixed(completion::keys()),
            Self::Value => fixed(line.key().map(completion::values).unwrap_or_default()),
            Self::SortKey => {
                // The keys before the last comma are a part of each candidate.
                let (before, _) =
                    begun.rsplit_once(',').map_or(("", begun), |it| (&begun[..=it.0.len()], it.1));
                plain(completion::sort_keys().into_iter().map(|it| format!("{before}{it}")).collect())
            }
            _ => {
                let Some((session, context)) = surroundings(&line.options()) else { return Vec::new() };
                match self {
                    Self::Archived => plain(completion::archived_plans(&context)),
                    Self::ToArchive if line.restores() => plain(completion::archived_plans(&context)),
                    Self::ToArchive => plain(completion::plans(&context)),
                    Self::Template => plain(completion::templates(&context)),
                    Self::Plan => plain(completion::plans(&context)),
                    Self::Agent => plain(completion::agents(&context, session.own_agents())),
                    Self::Script => plain(completion::scripts(&context)),
                    _ => plans_and_steps(&context, begun),
                }
            }
        };
        found.retain(|it| it.get_value().to_str().is_some_and(|it| it.starts_with(begun)));
        found
    }
}

/// For a word with a colon, the steps of the plan before the colon. For any other word, the plans that match and, if only
/// one plan matches, its steps.
fn plans_and_steps(context: &Context, begun: &str) -> Vec<CompletionCandidate> {
    let named = |plan: &str| -> Vec<CompletionCandidate> {
        let steps = completion::steps(context, plan).into_iter();
        steps.map(|(id, title)| CompletionCandidate::new(id).help(Some(title.into()))).collect()
    };
    if let Some((plan, _)) = begun.split_once(':') {
        return named(plan);
    }
    let plans: Vec<_> = completion::plans(context).into_iter().filter(|it| it.starts_with(begun)).collect();
    let steps = if let [only] = plans.as_slice() { named(only) } else { Vec::new() };
    plans.into_iter().map(CompletionCandidate::new).chain(steps).collect()
}

/// Verbs and topics, for `help`.
fn topics() -> Vec<CompletionCandidate> {
    let command = args::visible_command();
    let verbs = command
        .get_subcommands()
        .map(|it| CompletionCandidate::new(it.get_name()).help(it.get_about().cloned()));
    let is_verb = |name: &str| command.find_subcommand(name).is_some();
    let topics = help::names().filter(|(name, _)| !is_verb(name));
    verbs.chain(topics.map(|(name, about)| CompletionCandidate::new(name).help(Some(about.into())))).collect()
}

/// The session and the context for the plans directory that the options of the line select. Prints nothing.
fn surroundings(options: &[OsString]) -> Option<(Session, Context)> {
    let command = Everywhere::augment_args(Command::new("planwatch").disable_help_flag(true));
    let everywhere = Everywhere::from_arg_matches(&command.try_get_matches_from(options).ok()?).ok()?;
    let silent = Typed { form: Form::Text, colour: ColorChoice::Never };
    let session = Session::begin(&everywhere, context::output(&silent, Loudness::Quiet)).ok()?;
    let context = session.context().ok()?;
    Some((session, context))
}

struct Line(Vec<String>);

impl Line {
    /// Bash passes the whole line as one word.
    fn of(shell: &str, words: &[OsString]) -> Self {
        let typed = words.iter().skip_while(|it| *it != "--").skip(1);
        let mut line: Vec<String> = typed.map(|it| it.to_string_lossy().into_owned()).collect();
        if shell == "bash" {
            line = line.first().and_then(|it| words_of(it)).unwrap_or_default().0;
        }
        Self(line)
    }

    /// The options that select the plans directory.
    fn options(&self) -> Vec<OsString> {
        let mut options = vec![OsString::from("planwatch")];
        for (at, word) in self.0.iter().enumerate() {
            match word.as_str() {
                "--plans" | "-C" => {
                    if let Some(value) = self.0.get(at + 1) {
                        options.extend([word, value].map(OsString::from));
                    }
                }
                it if it.starts_with("--plans=") || it.starts_with("-C") => options.push(it.into()),
                _ => {}
            }
        }
        options
    }

    /// In a `set` command, the key whose value is being typed.
    fn key(&self) -> Option<&str> {
        let words = self.0.iter().skip_while(|it| *it != "set").filter(|it| !it.starts_with('-'));
        words.map(String::as_str).nth(2)
    }

    fn restores(&self) -> bool {
        self.0.iter().any(|it| it == "--restore")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_while_it_is_typed() {
        for (line, expected) in [
            ("planwatch show auth:2", &["planwatch", "show", "auth:2"][..]),
            ("planwatch show ", &["planwatch", "show", ""]),
            ("planwatch show 'my pl", &["planwatch", "show", "my pl"]),
            ("planwatch note \"my pl", &["planwatch", "note", "my pl"]),
            ("planwatch show my\\ pl", &["planwatch", "show", "my pl"]),
        ] {
            assert_eq!(
                words_of(line).map(|it| it.0).as_deref(),
                Some(&expected.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()[..])
            );
        }
    }

    #[track_caller]
    fn check_bash(line: &str, replaced: &str, expected: &[&str]) {
        let mut answer = Vec::new();
        let (typed, _) = words_of(line).unwrap();
        let line_of = ["--plans", "/no/such/directory"].into_iter().map(str::to_owned).chain(typed);
        Bash.write_complete(
            &mut command(&Arc::new(Line(line_of.collect()))),
            vec![line.into(), replaced.into()],
            None,
            &mut answer,
        )
        .unwrap();
        let answer = String::from_utf8(answer).unwrap();
        assert_eq!(answer.lines().collect::<Vec<_>>(), expected, "{line}");
    }

    #[test]
    fn verbs_options_and_closed_words_are_offered_without_plans() {
        check_bash("planwatch reo", "reo", &["reopen"]);
        check_bash("planwatch list --status fa", "fa", &["failed"]);
        check_bash("planwatch list --status=fa", "fa", &["failed"]);
        check_bash("planwatch list --status failed,blo", "failed,blo", &["failed,blocked"]);
        check_bash("planwatch help exit", "exit", &["exit-codes"]);
        check_bash("planwatch script re", "re", &["remove"]);
        check_bash("planwatch list --sort pri", "pri", &["priority"]);
        check_bash("planwatch list --sort -due,up", "-due,up", &["-due,updated"]);
        check_bash("planwatch set auth pri", "pri", &["priority"]);
        check_bash("planwatch set auth claim", "claim", &[]);
        check_bash("planwatch set auth priority c", "c", &["critical"]);
        check_bash("planwatch set auth title c", "c", &[]);
        check_bash("planwatch show a", "a", &[]);
        check_bash("planwatch show", "show", &["show"]);
    }

    #[test]
    fn what_is_hidden_is_not_offered() {
        let mut answer = Vec::new();
        let line = Arc::new(Line(Vec::new()));
        Bash.write_complete(&mut command(&line), vec!["planwatch ".into(), "".into()], None, &mut answer)
            .unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let offered: Vec<_> = answer.lines().collect();
        assert!(!offered.contains(&"restore") && !offered.contains(&"briefing"), "{offered:?}");
        assert!(offered.contains(&"status") && offered.contains(&"completions"), "{offered:?}");
    }

    #[test]
    fn special_characters_are_escaped_outside_of_quotes() {
        assert_eq!(quoted("my plan:1", "my"), "my\\ plan:1");
        assert_eq!(quoted("~/my plans/", "~/my"), "~/my\\ plans/");
        assert_eq!(quoted("~/x", "x"), "\\~/x");
    }

    #[test]
    fn options_say_where_the_plans_are() {
        let found = |shell: &str, words: &[&str]| {
            let words: Vec<_> = words.iter().map(OsString::from).collect();
            Line::of(shell, &words)
                .options()
                .into_iter()
                .skip(1)
                .map(|it| it.into_string().unwrap())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            found("zsh", &["planwatch", "--", "planwatch", "--plans", "a b", "show", ""]),
            "--plans a b"
        );
        assert_eq!(
            found("bash", &["planwatch", "--", "planwatch -C dir --plans=x show a", "a"]),
            "-C dir --plans=x"
        );
    }

    #[test]
    fn every_amendment_applies_once() {
        for (shell, old, new) in AMENDED {
            let script = String::from_utf8(super::script(shell).ok().unwrap()).unwrap();
            assert_eq!(script.matches(new).count(), 1, "{shell}: {new}\n{script}");
            assert_eq!(script.matches(old).count(), new.matches(old).count(), "{shell}: {old}\n{script}");
        }
    }
}
