//! Runs README.md and the pages in docs/: each `$ ` line of a `console` block must print the lines below it.
//!
//! Each page has a temporary directory. Its commands run in order and keep the directory and the variables. A line `> …`
//! directly below a command continues it; a line `…` matches any lines. Output on stderr is included, as in a terminal. The
//! time, the user's name and git's configuration are fixed. The example plans are available to pages that name them.
//! README.md's first two blocks are set-up commands, which are not run. `claude` and `cargo` are stand-ins: `claude`
//! completes its step as its prompt says, and `cargo` installs nothing.
#![expect(clippy::disallowed_methods, reason = "tests run the commands of the pages")]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::{NOW, Place, copy_examples, read, root};

/// A command, and its output according to the page.
#[derive(Debug, PartialEq)]
struct Typed {
    /// The line number in the page, from 1.
    line: usize,
    command: String,
    output: Vec<String>,
}

/// The `console` blocks of a page.
fn blocks(page: &str) -> Vec<Vec<Typed>> {
    let mut blocks = Vec::new();
    let mut open: Option<Vec<Typed>> = None;
    for (at, text) in page.lines().enumerate() {
        let Some(block) = &mut open else {
            if text.trim_end() == "```console" {
                open = Some(Vec::new());
            }
            continue;
        };
        if text.trim_end() == "```" {
            blocks.extend(open.take());
        } else if let Some(command) = text.strip_prefix("$ ") {
            block.push(Typed { line: at + 1, command: command.to_owned(), output: Vec::new() });
        } else {
            let last = block
                .last_mut()
                .unwrap_or_else(|| panic!("line {}: a console block begins with `$ `", at + 1));
            match text.strip_prefix("> ").filter(|_| last.output.is_empty()) {
                Some(more) => last.command.extend(["\n", more]),
                None => last.output.push(text.to_owned()),
            }
        }
    }
    assert!(open.is_none(), "a console block is not closed");
    blocks
}

/// Whether the output matches the page, in which `…` matches any lines.
fn matches(expected: &[String], printed: &[&str]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line == "…" => {
            (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]))
        }
        Some((line, rest)) => printed.first() == Some(&line.as_str()) && matches(rest, &printed[1..]),
    }
}

/// Programs in the pages that tests cannot start.
const STAND_INS: [(&str, &str); 2] = [
    (
        "claude",
        "#!/bin/sh
[ \"$1 $2 $3\" = '-p --output-format json' ] || exit 2
report=$(grep -o '`planwatch done [^`]*`' | tr -d '`')
eval \"$report -q\"
echo '{\"result\": \"It is done.\", \"total_cost_usd\": 0.01}'
",
    ),
    ("cargo", "#!/bin/sh\n[ \"$*\" = 'install --path . --locked' ]\n"),
];

/// Runs the commands in order. Returns the first difference from the page, or `None`.
fn first_difference(typed: &[Typed]) -> Option<String> {
    let place = Place::new();
    if typed.iter().any(|it| it.command.contains("plans-example")) {
        copy_examples(&place.file("plans-example"));
        place.date_fixture();
    }
    place.write(
        "../home/.gitconfig",
        "[user]\nname = ann\nemail = ann@example.org\n[init]\ndefaultBranch = main\n[core]\nabbrev = 7\n",
    );
    place.write("../home/shell", "");
    for (name, text) in STAND_INS {
        place.write(&format!("../home/bin/{name}"), text);
        let path = place.file(&format!("../home/bin/{name}"));
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("it is ours");
    }
    let _watching = Watching(&place);
    let port = free_port();
    for it in typed {
        let printed = shell(&place, &it.command.replace(PORT, &port)).replace(&port, PORT);
        place.date_changes();
        if !matches(&it.output, &printed.lines().collect::<Vec<_>>()) {
            let expected = it.output.join("\n");
            return Some(format!(
                "line {}: $ {}\n-- expected\n{expected}\n-- printed\n{printed}",
                it.line, it.command
            ));
        }
    }
    None
}

/// The port in the pages. It is replaced by a free one, because it may be in use.
const PORT: &str = "4001";

fn free_port() -> String {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    listener.local_addr().expect("it has an address").port().to_string()
}

/// Stops a daemon that a page left running.
struct Watching<'a>(&'a Place);

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        if self.0.file("plans/.planwatch/daemon.sock").exists() {
            let stopped = self.0.run("watch --stop");
            assert!(stopped.code == 0 || std::thread::panicking(), "{stopped:?}");
        }
    }
}

/// Runs a command and returns its output. The directory and the variables are saved for the next command.
fn shell(place: &Place, command: &str) -> String {
    let script = format!(
        "exec 2>&1; . \"$HOME/shell\"\n{command}\n{{ export -p; printf 'cd %q\\n' \"$PWD\"; }} > \"$HOME/shell\""
    );
    let mut bash = Command::new("bash");
    place.close_environment(&mut bash);
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_planwatch"));
    let binaries = binary.parent().expect("it is in a directory").to_string_lossy();
    let path = std::env::var("PATH").expect("there is a PATH");
    bash.args(["--noprofile", "--norc", "-c", &script]).stdin(Stdio::null()).stderr(Stdio::null());
    let stand_ins = place.file("../home/bin");
    bash.env("PATH", format!("{}:{binaries}:{path}", stand_ins.display())).env("LC_ALL", "C.UTF-8");
    bash.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_AUTHOR_DATE", NOW).env("GIT_COMMITTER_DATE", NOW);
    let output = bash.output().expect("bash is there");
    String::from_utf8(output.stdout).expect("it prints text")
}

fn check(name: &str, typed: &[Typed]) {
    if let Some(difference) = first_difference(typed) {
        panic!("{name}: {difference}");
    }
}

#[test]
fn commands_in_the_readme_print_what_it_shows() {
    let mut blocks = blocks(&read(&root().join("README.md")));
    let typed = blocks.split_off(2);
    for setup in &blocks {
        let [only] = setup.as_slice() else { panic!("a set-up block is one command: {setup:?}") };
        let is_script = only.command.starts_with("scripts/") && root().join(&only.command).is_file();
        assert!(is_script || only.command.starts_with("cargo "), "{only:?}");
        assert!(!only.command.contains('\n'), "{only:?}");
        assert!(only.output.is_empty(), "{only:?}");
    }
    check("README.md", &typed.into_iter().flatten().collect::<Vec<_>>());
}

#[test]
fn commands_in_the_pages_print_what_they_show() {
    let pages = std::fs::read_dir(root().join("docs")).expect("it is there").flatten().map(|it| it.path());
    let pages: Vec<_> = pages.filter(|it| it.extension().is_some_and(|it| it == "md")).collect();
    assert!(!pages.is_empty());
    for page in pages {
        let typed: Vec<_> = blocks(&read(&page)).into_iter().flatten().collect();
        check(&page.display().to_string(), &typed);
    }
}

/// Whether a command has an id with a time, such as `20261121T120000`. A reader's commands create other ids.
fn has_dated_id(command: &str) -> bool {
    let is_time =
        |it: &[u8]| it[8] == b'T' && it.iter().enumerate().all(|(nth, it)| nth == 8 || it.is_ascii_digit());
    command.as_bytes().windows(15).any(is_time)
}

#[test]
fn no_command_of_a_page_contains_a_dated_id() {
    assert!(has_dated_id("planwatch decide a b --supersedes 20261121T120000.000Z"));
    let pages = std::fs::read_dir(root().join("docs")).expect("it is there").flatten().map(|it| it.path());
    let pages =
        pages.filter(|it| it.extension().is_some_and(|it| it == "md")).chain([root().join("README.md")]);
    for page in pages {
        for it in blocks(&read(&page)).into_iter().flatten() {
            assert!(!has_dated_id(&it.command), "{}:{}: {}", page.display(), it.line, it.command);
        }
    }
}

const SAMPLE: &str = "\
A plan is created in a repository.

```console
$ mkdir shop && cd shop
$ git init -q
$ planwatch new auth Schema Tests
made auth with 3 files
…
$ git add .
$ git commit -q -m 'plan: auth'
$ git log --oneline --format=%s
plan: auth
```

Words between the blocks, and other blocks, are not run:

```
$ rm -rf /
```

```console
$ sed -i 's/^status: pending/status: wip/' plans/auth/step-1.md
$ export PLANWATCH_PLAN=auth
$ planwatch done 1
…
$ cat > plans/auth/step-3.md <<'END'
> # Deploy
> END
$ cat plans/auth/step-3.md
# Deploy
$ git diff
diff --git a/plans/auth/step-1.md b/plans/auth/step-1.md
…
-status: pending
+status: completed
…
$ ls nowhere
ls: cannot access 'nowhere': No such file or directory
$ planwatch show 9
error[not-found]: there is no step `auth:9`
…
```
";

#[test]
fn a_page_is_run_as_written() {
    let typed: Vec<_> = blocks(SAMPLE).into_iter().flatten().collect();
    assert_eq!(typed.len(), 14);
    check("the sample", &typed);
}

#[test]
fn a_difference_from_a_page_is_detected() {
    let difference = |page: &str| first_difference(&blocks(page).into_iter().flatten().collect::<Vec<_>>());
    assert!(difference("```console\n$ echo a; echo b\na\nb\n```\n").is_none());
    for lines in ["a", "b", "a\nb\nc", "a \nb", "b\n…", "", "…\na"] {
        let page = format!("```console\n$ echo a; echo b\n{lines}\n```\n").replace("\n\n```", "\n```");
        let found = difference(&page).unwrap_or_else(|| panic!("no difference in {page}"));
        assert!(found.starts_with("line 2: $ echo a; echo b\n"), "{found}");
    }
    for lines in ["…", "a\n…", "…\nb", "a\n…\nb", "…\na\nb\n…"] {
        assert_eq!(difference(&format!("```console\n$ echo a; echo b\n{lines}\n```\n")), None);
    }
}
