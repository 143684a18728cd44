//! Each directory `tests/cases/<verb>/<case>/` records command lines, their output and their changes of files.
//!
//! `cmd` contains the lines: `$ planwatch …` runs the binary, `@ …` prepares or edits files ([`Line`]), `#` is a comment.
//! `in/` is the initial working directory; without `in/`, the working directory contains the example plans as `plans/`.
//! The outcome: `stdout`, `stderr` (for several commands each part below its command line), `exit` (a line for each
//! command), `out/` with every created or changed file, `removed` with the removed paths, `left-empty` with new empty
//! directories. A missing file means no output or exit code 0. All other files must stay unchanged, byte for byte.
//! Claim ids are random. Those that do not occur in the case's input are replaced by `<claim-1>`, `<claim-2>` and so
//! on, in order of appearance, and ids of changes for `undo` by `<change-1>` and so on. `PLANWATCH_BLESS=1` records the
//! outcomes again. Review the differences then.
#![expect(
    clippy::disallowed_methods,
    reason = "tests create and read files, and read the environment for PLANWATCH_BLESS"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::{Place, Ran, Tree, copy, read, root, tree};

/// A line of `cmd`.
#[derive(Debug)]
enum Line {
    /// `$ planwatch WORD…`, quoted as in a shell.
    Run { shown: String, words: Vec<String> },
    /// `@ write FILE TEXT`; `\n`, `\r` and `\t` in the text are escapes.
    Write { file: String, text: String },
    /// `@ append FILE TEXT`.
    Append { file: String, text: String },
    /// `@ replace FILE OLD NEW`.
    Replace { file: String, old: String, new: String },
    /// `@ remove PATH`, a file or a directory.
    Remove { path: String },
    /// `@ env NAME VALUE`, for all commands below.
    Env { name: String, value: String },
    /// `@ stdin TEXT`, for the next command.
    Stdin { text: String },
    /// `@ terminal`: standard input of the next command is a terminal.
    Terminal,
    /// `@ cd DIR`, for all commands below.
    Cd { directory: String },
    /// `@ git WORD…`, with a fixed author. The `n`th such line has the time `n` minutes after a fixed time, so that ids of
    /// commits are the same each time.
    Git { words: Vec<String> },
}

impl Line {
    /// Reads the lines of `cmd`. A quoted text may span several lines.
    fn all(text: &str) -> Vec<Self> {
        let mut lines = Vec::new();
        let mut open = String::new();
        for line in text.lines() {
            if open.is_empty() && (line.trim().is_empty() || line.starts_with('#')) {
                continue;
            }
            open += line;
            match shell_words::split(&open) {
                Ok(words) => lines.push(Self::of(&std::mem::take(&mut open), &words)),
                Err(_) => open.push('\n'),
            }
        }
        assert!(open.is_empty(), "a quote is not closed: {open}");
        lines
    }

    fn of(line: &str, words: &[String]) -> Self {
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["$", "planwatch", words @ ..] => {
                Self::Run { shown: line.to_owned(), words: words.iter().map(ToString::to_string).collect() }
            }
            ["@", "write", file, text] => Self::Write { file: file.to_string(), text: unescape(text) },
            ["@", "append", file, text] => Self::Append { file: file.to_string(), text: unescape(text) },
            ["@", "replace", file, old, new] => {
                Self::Replace { file: file.to_string(), old: unescape(old), new: unescape(new) }
            }
            ["@", "remove", path] => Self::Remove { path: path.to_string() },
            ["@", "env", name, value] => Self::Env { name: name.to_string(), value: value.to_string() },
            ["@", "stdin", text] => Self::Stdin { text: unescape(text) },
            ["@", "terminal"] => Self::Terminal,
            ["@", "git", words @ ..] => Self::Git { words: words.iter().map(ToString::to_string).collect() },
            ["@", "cd", directory] => Self::Cd { directory: directory.to_string() },
            _ => panic!("`{line}` is not a line of a case"),
        }
    }
}

fn unescape(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t")
}

struct Case {
    directory: PathBuf,
    lines: Vec<Line>,
}

impl Case {
    fn read(directory: PathBuf) -> Self {
        let lines = Line::all(&read(&directory.join("cmd")));
        Self { directory, lines }
    }

    /// `verb/case`.
    fn name(&self) -> String {
        shown(&self.directory, &folder())
    }

    fn verb(&self) -> String {
        self.name().split('/').next().unwrap_or_default().to_owned()
    }

    fn runs(&self) -> impl Iterator<Item = &[String]> {
        self.lines.iter().filter_map(|it| match it {
            Line::Run { words, .. } => Some(words.as_slice()),
            _ => None,
        })
    }

    fn has_option(&self, option: &str) -> bool {
        let is_it = |word: &String| word == option || word.starts_with(&format!("{option}="));
        self.runs().any(|words| words.iter().any(is_it))
    }

    fn place(&self) -> Place {
        let start = self.directory.join("in");
        if !start.exists() {
            return Place::with_examples();
        }
        let place = Place::new();
        copy(&start, &place.work());
        place.date_fixture();
        place
    }

    fn outcome(&self) -> Outcome {
        let place = self.place();
        let mut stage = Stage {
            place: &place,
            env: Vec::new(),
            stdin: String::new(),
            has_terminal: false,
            directory: place.work(),
            n_git: 0,
        };
        let mut lines = self.lines.iter().peekable();
        while let Some(line) = lines.next_if(|it| !matches!(it, Line::Run { .. })) {
            stage.prepare(line);
        }
        place.date_fixture();
        let before = tree(&place.work());
        let mut ran = Vec::new();
        for line in lines {
            match line {
                Line::Run { shown, words } => ran.push((shown.as_str(), stage.run(words))),
                other => stage.prepare(other),
            }
            place.date_changes();
        }
        let known =
            tree(&self.directory).into_iter().filter(|(path, _)| path == "cmd" || path.starts_with("in/"));
        let known: Vec<_> = known.map(|(_, bytes)| bytes).chain(before.values().cloned()).collect();
        Outcome::of(&ran, &before, &tree(&place.work())).with_claims_named(&known)
    }
}

/// A case while it runs.
struct Stage<'a> {
    place: &'a Place,
    env: Vec<(&'a str, &'a str)>,
    stdin: String,
    has_terminal: bool,
    directory: PathBuf,
    n_git: u32,
}

/// Runs its arguments with a new pseudo terminal as standard input.
const AT_TERMINAL: &str = "import os, pty, subprocess, sys
_, terminal = pty.openpty()
sys.exit(subprocess.call(sys.argv[1:], stdin=terminal))";

impl<'a> Stage<'a> {
    fn prepare(&mut self, line: &'a Line) {
        match line {
            Line::Write { file, text } => self.place.write(file, text),
            Line::Append { file, text } => self.place.write(file, self.place.text(file) + text),
            Line::Replace { file, old, new } => {
                let text = self.place.text(file);
                assert!(text.contains(old), "{file} does not hold `{old}`");
                self.place.write(file, text.replacen(old, new, 1));
            }
            Line::Remove { path } => {
                let path = self.place.file(path);
                let removed =
                    if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
                removed.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            }
            Line::Env { name, value } => self.env.push((name, value)),
            Line::Stdin { text } => self.stdin.clone_from(text),
            Line::Terminal => self.has_terminal = true,
            Line::Cd { directory } => self.directory = self.place.file(directory),
            Line::Git { words } => {
                self.n_git += 1;
                self.place.git_at(&self.directory, self.n_git, words);
            }
            Line::Run { .. } => unreachable!("only the others prepare"),
        }
    }

    fn run(&mut self, words: &[String]) -> Ran {
        let mut command = match std::mem::take(&mut self.has_terminal) {
            false => self.place.command(),
            true => {
                let mut command = std::process::Command::new("python3");
                self.place.close_environment(&mut command);
                command.args(["-c", AT_TERMINAL, env!("CARGO_BIN_EXE_planwatch")]);
                command
            }
        };
        command.args(words).envs(self.env.iter().copied()).current_dir(&self.directory);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let mut stdin = child.stdin.take().expect("it is piped");
        // A command that does not read its input may have exited already.
        stdin.write_all(std::mem::take(&mut self.stdin).as_bytes()).ok();
        drop(stdin);
        let mut ran = Ran::of(child.wait_with_output().expect("it ends"));
        let top = self.place.top().to_string_lossy().into_owned();
        for text in [&mut ran.stdout, &mut ran.stderr] {
            *text = text.replace(&top, "[top]");
        }
        ran
    }
}

/// The outcome of a case, as files by their path in the case's directory.
#[derive(PartialEq)]
struct Outcome(Tree);

impl Outcome {
    fn of(ran: &[(&str, Ran)], before: &Tree, after: &Tree) -> Self {
        let output = |of: fn(&Ran) -> &str| match ran {
            [(_, only)] => of(only).to_owned(),
            all => {
                let parts = all.iter().filter(|(_, it)| !of(it).is_empty());
                parts.map(|(line, it)| format!("{line}\n{}", of(it))).collect()
            }
        };
        let codes = ran.iter().map(|(_, it)| format!("{}\n", it.code)).collect::<String>();
        let exit = if codes.lines().all(|it| it == "0") { String::new() } else { codes };
        let removed =
            before.keys().filter(|it| !after.contains_key(*it)).map(|it| format!("{it}\n")).collect();
        let mut files: Tree = [
            ("stdout", output(|it| &it.stdout)),
            ("stderr", output(|it| &it.stderr)),
            ("exit", exit),
            ("removed", removed),
        ]
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| (name.to_owned(), text.into_bytes()))
        .collect();
        let changed = after.iter().filter(|(path, bytes)| before.get(*path) != Some(bytes));
        for (path, bytes) in changed {
            if let Some(empty) = path.strip_suffix('/') {
                files.entry("left-empty".to_owned()).or_default().extend(format!("{empty}\n").bytes());
            } else {
                files.insert(format!("out/{path}"), bytes.clone());
            }
        }
        Self(files)
    }

    fn with_claims_named(mut self, known: &[Vec<u8>]) -> Self {
        let mut ids: Vec<Vec<u8>> = Vec::new();
        for bytes in self.0.values() {
            let new = bytes.windows(8).filter(|it| is_claim_id(it) && !ids.iter().any(|id| id == it));
            let new = new.filter(|it| !known.iter().any(|text| text.windows(8).any(|at| at == *it)));
            let mut found: Vec<_> = new.map(<[u8]>::to_vec).collect();
            found.dedup();
            ids.extend(found);
        }
        for bytes in self.0.values_mut() {
            let Ok(mut text) = String::from_utf8(bytes.clone()) else { continue };
            for (n, id) in ids.iter().enumerate() {
                text = text.replace(&*String::from_utf8_lossy(id), &format!("<claim-{}>", n + 1));
            }
            *bytes = text.into_bytes();
        }
        self.with_changes_named()
    }

    fn with_changes_named(mut self) -> Self {
        let mut ids: Vec<Vec<u8>> = Vec::new();
        for bytes in self.0.values() {
            for found in bytes.windows(9).filter(|it| is_change_id(it)).map(|it| it[1..8].to_vec()) {
                if !ids.contains(&found) {
                    ids.push(found);
                }
            }
        }
        for bytes in self.0.values_mut() {
            let Ok(mut text) = String::from_utf8(bytes.clone()) else { continue };
            for (n, id) in ids.iter().enumerate() {
                text = text.replace(&*String::from_utf8_lossy(id), &format!("<change-{}>", n + 1));
            }
            *bytes = text.into_bytes();
        }
        self
    }

    /// The expected outcome, from the case's directory.
    fn expected(case: &Case) -> Self {
        // Git does not store empty directories, so they are ignored.
        let is_outcome = |path: &String| path != "cmd" && !path.starts_with("in/") && !path.ends_with('/');
        Self(tree(&case.directory).into_iter().filter(|(path, _)| is_outcome(path)).collect())
    }

    fn bless(&self, case: &Case) {
        for path in Self::expected(case).0.keys() {
            std::fs::remove_file(case.directory.join(path)).expect("it is there");
        }
        for (path, bytes) in &self.0 {
            let path = case.directory.join(path);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("directories can be made");
            std::fs::write(path, bytes).expect("it can be written");
        }
    }

    /// The differences, as text for people.
    fn differences(&self, expected: &Self) -> String {
        let paths: BTreeSet<_> = self.0.keys().chain(expected.0.keys()).collect();
        let text = |of: &Self, path: &str| {
            of.0.get(path).map(|it| String::from_utf8_lossy(it).replace('\r', "\\r")).unwrap_or_default()
        };
        let differing = paths.into_iter().filter(|it| self.0.get(*it) != expected.0.get(*it));
        differing
            .map(|path| {
                let (expected, got) = (text(expected, path), text(self, path));
                let diff = similar::TextDiff::from_lines(&expected, &got);
                format!("{path}:\n{}", diff.unified_diff().header("expected", "got"))
            })
            .collect()
    }
}

/// A letter from g to z and seven hexadecimal digits.
fn is_claim_id(text: &[u8]) -> bool {
    let is_hex = |it: &u8| matches!(it, b'0'..=b'9' | b'a'..=b'f');
    text[0].is_ascii_lowercase() && !is_hex(&text[0]) && text[1..].iter().all(is_hex)
}

/// A `u` and six hexadecimal digits, as a separate word.
fn is_change_id(text: &[u8]) -> bool {
    let is_hex = |it: &u8| matches!(it, b'0'..=b'9' | b'a'..=b'f');
    let is_edge = |it: u8| !it.is_ascii_alphanumeric();
    is_edge(text[0]) && text[1] == b'u' && text[2..8].iter().all(is_hex) && is_edge(text[8])
}

fn folder() -> PathBuf {
    root().join("tests/cases")
}

fn shown(path: &Path, below: &Path) -> String {
    path.strip_prefix(below).expect("it is below").to_string_lossy().into_owned()
}

fn subfolders(of: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(of).expect("it is there").flatten();
    let mut found: Vec<_> = entries.map(|it| it.path()).filter(|it| it.is_dir()).collect();
    found.sort();
    found
}

fn cases() -> Vec<Case> {
    subfolders(&folder()).iter().flat_map(|verb| subfolders(verb)).map(Case::read).collect()
}

#[test]
fn every_case_has_the_recorded_outcome() {
    let is_blessing = std::env::var_os("PLANWATCH_BLESS").is_some();
    let cases = cases();
    let n_threads = std::thread::available_parallelism().map_or(2, usize::from);
    let failures: String = std::thread::scope(|scope| {
        let shares = cases.chunks(cases.len().div_ceil(n_threads));
        let threads: Vec<_> = shares.map(|share| scope.spawn(move || run_all(share, is_blessing))).collect();
        threads.into_iter().map(|it| it.join().expect("no case panics")).collect()
    });
    assert!(failures.is_empty(), "{failures}");
}

fn run_all(cases: &[Case], is_blessing: bool) -> String {
    let mut failures = Vec::new();
    for case in cases {
        // The panic message is on stderr already. The other cases run, too.
        let Ok(outcome) = std::panic::catch_unwind(|| case.outcome()) else {
            failures.push(format!("\n== {} cannot be run\n", case.name()));
            continue;
        };
        let expected = Outcome::expected(case);
        if outcome == expected {
            continue;
        }
        if is_blessing {
            outcome.bless(case);
        } else {
            failures.push(format!("\n== {}\n{}", case.name(), outcome.differences(&expected)));
        }
    }
    failures.concat()
}

/// The verbs from the binary's help, and whether each has `--dry-run`.
fn verbs() -> BTreeMap<String, bool> {
    let place = Place::new();
    let all = place.run("help --all").ok();
    let groups = all.lines().skip(3).take_while(|it| !it.starts_with("Options"));
    let names = groups.filter_map(|it| it.strip_prefix("  ")).filter_map(|it| it.split(' ').next());
    let writes = |verb: &str| place.run_with(&[verb, "--help"]).ok().contains("--dry-run");
    names.map(|verb| (verb.to_owned(), writes(verb))).collect()
}

/// What other tests cover: `watch` ends only with its reader (see `watching`), completions are long (see below), a token is
/// random (see `http`), and the board needs a terminal (see `scripts/board-check`).
const ELSEWHERE: [(&str, &str); 7] = [
    // A client has to end the session with messages of the protocol. tests/it/lsp.rs does so.
    ("lsp", "success"),
    ("board", "success"),
    // Its answer has a random code; tests/it/http/pages.rs tests it.
    ("browser", "success"),
    ("watch", "success"),
    ("watch", "--json"),
    ("completions", "success"),
    ("token", "success"),
];

#[test]
fn every_verb_has_a_success_an_error_a_dry_run_and_json() {
    let cases = cases();
    let mut missing = Vec::new();
    let verbs = verbs();
    assert!(verbs.len() > 20, "{verbs:?}");
    for (verb, is_writing) in &verbs {
        let own: Vec<_> = cases.iter().filter(|it| it.verb() == *verb).collect();
        let fails = |case: &Case| case.directory.join("exit").exists();
        let mut wanted =
            vec![("success", own.iter().any(|it| !fails(it))), ("error", own.iter().any(|it| fails(it)))];
        if *is_writing {
            wanted.push(("--dry-run", own.iter().any(|it| it.has_option("--dry-run"))));
        }
        if !["completions", "man", "help", "edit"].contains(&verb.as_str()) {
            wanted.push(("--json", own.iter().any(|it| it.has_option("--json"))));
        }
        let lacking =
            wanted.into_iter().filter(|(what, is_there)| !is_there && !ELSEWHERE.contains(&(verb, what)));
        missing.extend(lacking.map(|(what, _)| format!("{verb}: {what}")));
    }
    assert!(missing.is_empty(), "{missing:#?}");
    let unknown: Vec<_> = cases.iter().filter(|it| !verbs.contains_key(&it.verb())).map(Case::name).collect();
    assert!(unknown.is_empty(), "no such verb: {unknown:?}");
}

#[test]
fn completions_of_every_shell_offer_every_verb() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.run_with(&["completions", shell]).ok();
        assert!(script.contains("PLANWATCH_COMPLETE"), "{shell} does not call planwatch:\n{script}");
        let offered = offered(&place, shell, &["planwatch", ""]);
        for verb in verbs().keys() {
            assert!(offered.iter().any(|it| it == verb), "{shell} does not offer {verb}: {offered:?}");
        }
    }
}

#[test]
fn completion_scripts_pass_words_without_quotes() {
    let place = Place::new();
    for (shell, passed) in [
        ("zsh", "\"${(@Q)words[1,CURRENT-1]}\" \"${(Q)PREFIX}\""),
        ("fish", "(commandline --current-token | string unescape)"),
    ] {
        let script = place.run_with(&["completions", shell]).ok();
        assert!(script.contains(passed), "{shell}:\n{script}");
    }
}

/// The completions of the last word that planwatch returns to a shell's script, without descriptions and options.
fn offered(place: &Place, shell: &str, words: &[&str]) -> Vec<String> {
    let mut command = place.command();
    command.env("PLANWATCH_COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
    let last = words.last().expect("there is a word");
    let line = words.join(" ");
    let arguments = if shell == "bash" { vec![line.as_str(), last] } else { words.to_vec() };
    let ran = Ran::of(command.arg("--").args(arguments).output().expect("it runs"));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let separator = if shell == "zsh" { ':' } else { '\t' };
    let value = |line: &str| {
        let escaped = line.replace("\\:", "\u{1}");
        escaped.split(separator).next().unwrap_or_default().replace('\u{1}', ":")
    };
    ran.stdout.lines().map(value).filter(|it| !it.starts_with('-')).collect()
}

#[test]
fn shells_are_offered_plans_steps_statuses_and_agents() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        // Without a plans directory there are no completions and no messages.
        assert_eq!(offered(&place, shell, &["planwatch", "show", ""]), [""; 0]);
    }
    place.write("plans/auth/plan.md", "# Auth\n");
    place.write("plans/auth/step-1.md", "# One: first\n");
    place.write("plans/auth/step-2.5.md", "# Two\n");
    place.write("plans/billing/plan.md", "# Billing\n");
    for shell in ["bash", "zsh", "fish"] {
        let offered = |words: &[&str]| offered(&place, shell, &[&["planwatch"], words].concat());
        assert_eq!(offered(&["show", ""]), ["auth", "billing"], "{shell}");
        assert_eq!(offered(&["done", "au"]), ["auth", "auth:1", "auth:2.5"], "{shell}");
        assert_eq!(offered(&["done", "auth:2"]), ["auth:2.5"], "{shell}");
        assert_eq!(offered(&["list", "b"]), ["billing"], "{shell}");
        assert_eq!(offered(&["list", "--status", "f"]), ["failed"], "{shell}");
        assert_eq!(offered(&["run", "auth", "--agent", "cl"]), ["claude"], "{shell}");
        assert_eq!(offered(&["--plans", "elsewhere", "show", ""]), [""; 0], "{shell}");
        assert_eq!(offered(&["import", "plans/au"]), ["plans/auth/"], "{shell}");
        assert_eq!(
            offered(&["replace", "auth", "--file", "plans/auth/pl"]),
            ["plans/auth/plan.md"],
            "{shell}"
        );
        assert_eq!(offered(&["-C", "pl"]), ["plans/"], "{shell}");
    }
    // Bash replaces only the part after the colon.
    let mut command = place.command();
    command.env("PLANWATCH_COMPLETE", "bash").args(["--", "planwatch done auth:2", "2"]);
    assert_eq!(Ran::of(command.output().expect("it runs")).ok(), "2.5\n");
    // Bash passes the word without its open quote. Within quotes a space needs no backslash.
    place.write("plans/my plan/plan.md", "# Mine\n");
    for (line, expected) in [("planwatch show 'my p", "my plan\n"), ("planwatch show my\\ p", "my\\ plan\n")]
    {
        let mut command = place.command();
        command.env("PLANWATCH_COMPLETE", "bash").args(["--", line, "my p"]);
        assert_eq!(Ran::of(command.output().expect("it runs")).ok(), expected, "{line}");
    }
}

#[test]
fn the_manual_has_a_page_for_every_verb() {
    let place = Place::new();
    let ran = place.run("man pages/man1");
    assert_eq!(ran.code, 0, "{ran:?}");
    for verb in verbs().keys() {
        let page = place.text(&format!("pages/man1/planwatch-{verb}.1"));
        assert!(page.contains(".TH") && page.contains(verb.as_str()), "{page}");
    }
    assert!(place.text("pages/man1/planwatch.1").contains("planwatch"));
}

#[test]
fn a_different_outcome_is_detected() {
    let expected = Outcome(Tree::from([("out/plans/a/plan.md".to_owned(), b"status: active\r\n".to_vec())]));
    let got = Outcome(Tree::from([("out/plans/a/plan.md".to_owned(), b"status: active\n".to_vec())]));
    assert!(got != expected);
    assert!(got.differences(&expected).contains("-status: active\\r"), "{}", got.differences(&expected));
}
