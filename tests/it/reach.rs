//! Limits of paths: no path in a request or a repository may lead out of the repository, or into `.git` and `.planwatch`.
#![expect(clippy::disallowed_methods, reason = "tests create and read files")]

use std::io::Write;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Place, Ran, tree};

const SECRET: &str = "SECRET-7261";

/// A repository with links to files that must not be read.
fn place() -> Place {
    let place = Place::new();
    let secret = format!("# {SECRET}\n\n- [ ] {SECRET}\n");
    for path in [".git/config", "../other/secret.md", "../other/plans/a/plan.md"] {
        place.write(path, &secret);
    }
    place.write(".git/HEAD", "ref: refs/heads/main\n");
    place.write(".git/objects/x", "");
    place.write("docs/doc.md", "# Log in\n\n- [ ] Schema\n- [ ] Form\n");
    place.write("docs/steps.md", "- Schema\n- Form\n");
    place.write("plans/a/plan.md", "# A\n");
    place.write("plans/a/step-1.md", "# One\n");
    // This creates `.planwatch`.
    place.run("list").ok();
    place.write("plans/.planwatch/token", &secret);
    for (to, link) in [
        (".git/config", "config.md"),
        ("plans/.planwatch/token", "token.md"),
        ("../other/secret.md", "out.md"),
        ("../other", "outdir"),
        ("docs/doc.md", "in.md"),
        ("/dev/zero", "zero.md"),
    ] {
        symlink(to, place.file(link)).expect("links can be made");
    }
    place
}

/// Every path that a client must not read.
const CLOSED: [&str; 17] = [
    "config.md",
    "token.md",
    "out.md",
    "outdir/secret.md",
    "zero.md",
    ".git/config",
    ".GIT/config",
    "docs/../.git/config",
    "plans/.planwatch/token",
    "plans/.Planwatch/token",
    "../other/secret.md",
    "docs/../../other/secret.md",
    "/etc/passwd",
    "/proc/self/exe",
    "/proc/self/environ",
    "docs",
    ".",
];

/// The answers of tools to calls over standard input, given by name and arguments.
fn called(place: &Place, tools: &str, calls: &[(&str, Value)]) -> Vec<Value> {
    let mut command = place.command();
    command.args(["mcp", "--tools", tools]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut input = child.stdin.take().expect("it is piped");
    let hello = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "codex", "version": "1"},
    });
    let mut say = |it: Value| writeln!(input, "{it}").expect("it reads");
    say(json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello}));
    say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    for (nth, (name, arguments)) in calls.iter().enumerate() {
        let params = json!({"name": name, "arguments": arguments});
        say(json!({"jsonrpc": "2.0", "id": nth, "method": "tools/call", "params": params}));
    }
    drop(input);
    let output = String::from_utf8(child.wait_with_output().expect("it ends").stdout).expect("UTF-8");
    assert!(!output.contains(SECRET), "{output}");
    let answers: Vec<Value> = output.lines().map(|it| serde_json::from_str(it).expect("an object")).collect();
    answers.into_iter().filter(|it| it["id"].is_u64()).map(|it| it["result"].clone()).collect()
}

fn is_refused(answer: &Value) -> bool {
    let text = answer["content"][0]["text"].as_str().unwrap_or_default();
    answer["isError"] == true && text.starts_with("{\"error\":{\"code\":\"usage\"")
}

#[test]
fn tools_import_only_documents_of_the_repository() {
    let import = |path: &str| json!({"action": "import", "plan_file_path": path, "category": "bug"});
    // `again` is needed because several paths lead to the same document.
    let create = |path: &str| json!({"title": format!("Of {path}"), "from_file": path, "again": true});
    let place = place();
    let calls: Vec<_> = CLOSED.iter().map(|it| ("memory_plan", import(it))).collect();
    for (path, answer) in CLOSED.iter().zip(called(&place, "compat", &calls)) {
        assert!(is_refused(&answer), "{path}: {answer}");
    }
    let calls: Vec<_> = CLOSED.iter().map(|it| ("create_plan", create(it))).collect();
    for (path, answer) in CLOSED.iter().zip(called(&place, "all", &calls)) {
        assert!(is_refused(&answer), "{path}: {answer}");
    }
    assert_eq!(place.run("list --json").json()["plans"].as_array().map(Vec::len), Some(1));
    let absolute = place.file("docs/doc.md").display().to_string();
    for path in ["in.md", "docs/../docs/doc.md", &absolute] {
        let done = called(&place, "all", &[("create_plan", create(path))]);
        assert_eq!(done[0]["structuredContent"]["written"], true, "{path}: {done:?}");
    }
}

#[test]
fn a_script_runs_only_in_directories_of_the_repository() {
    let place = place();
    for directory in ["outdir", "../other", "/etc", ".git", "plans/.planwatch", "outdir/none"] {
        let add = json!({"action": "add", "name": "x", "command": "true", "directory": directory});
        let done = called(&place, "all", &[("manage_script", add)]);
        assert!(is_refused(&done[0]), "{directory}: {done:?}");
        place.write("plans/_scripts/y.md", format!("---\ncommand: \"true\"\ndirectory: {directory}\n---\n"));
        let is_typed_outside = directory.starts_with(['.', '/']) && directory != ".git";
        let code = if is_typed_outside { "wrong-type" } else { "directory-missing" };
        refused(&place.run_with(&["script", "run", "y", "--trust-hash", "0"]), code);
    }
}

#[track_caller]
fn refused(ran: &Ran, code: &str) {
    assert!(ran.stderr.starts_with(&format!("error[{code}]")), "{ran:?}");
    assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET), "{ran:?}");
}

#[test]
fn a_typed_path_follows_no_link_that_leads_out_of_the_repository() {
    let place = place();
    for path in ["config.md", "token.md", "out.md", "outdir/secret.md", "zero.md", "plans/.planwatch/token"] {
        for command in [
            vec!["add", "a", "Two", "--body", path],
            vec!["replace", "a", "--file", path],
            vec!["import", path],
            vec!["draft", "sign-in", "--from", path, "--command", "cat"],
        ] {
            refused(&place.run_with(&command), "bad-path");
        }
    }
    for command in ["import out.md", "add a Two --body out.md"] {
        let linked = place.run(command);
        assert!(linked.stderr.ends_with("hint: name the target of the link instead\n"), "{linked:?}");
    }
    place.run("import ../other/secret.md --dry-run").ok();
    let key = place.top().join("home/state/planwatch/key").display().to_string();
    refused(&place.run_with(&["add", "a", "Two", "--body", &key]), "bad-path");
    // A user may type the path of any other file.
    for path in ["docs/doc.md", "in.md", "../other/secret.md", ".git/config"] {
        place.run_with(&["add", "a", "Two", "--body", path]).ok();
    }
    place.run("replace a --file docs/steps.md --dry-run").ok();
}

#[test]
fn a_pipe_can_be_read_and_an_endless_device_is_refused() {
    let place = place();
    let line = "\"$0\" add a Two --body /dev/stdin && exec \"$0\" add a Three --body /dev/zero";
    let mut shell = std::process::Command::new("sh");
    place.close_environment(&mut shell);
    shell.args(["-c", line, env!("CARGO_BIN_EXE_planwatch")]);
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = shell.spawn().expect("sh starts");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(b"# Two\n\nFrom a pipe.\n").expect("it reads");
    drop(input);
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    assert!(place.text("plans/a/step-2.md").contains("From a pipe."), "{ran:?}");
    assert!(ran.stderr.starts_with("error[too-large]"), "{ran:?}");
}

#[test]
fn a_draft_continues_only_with_a_conversation_of_the_repository() {
    let place = place();
    place.write("talk.md", "User: I want to sign in.\n");
    let draft = ["draft", "sign-in", "--from", "talk.md", "--command", "cat", "--passes", "1"];
    assert!(place.run_with(&draft).stdout.contains("pass 1"));
    let go_on = ["draft", "sign-in", "--continue", "--command", "cat; echo x", "--passes", "5"];
    let plan = place.text("plans/sign-in/plan.md");
    assert!(plan.contains("talk.md"), "{plan}");
    for path in ["out.md", "../other/secret.md", ".git/config", "/etc/passwd"] {
        place.write("plans/sign-in/plan.md", plan.replace("talk.md", path));
        refused(&place.run_with(&go_on), "bad-path");
    }
    place.write("plans/sign-in/plan.md", &plan);
    assert_eq!(place.run_with(&go_on).code, 0);
}

#[test]
fn a_configuration_can_only_name_plans_in_its_directory() {
    let place = place();
    for (directory, is_fine) in
        [("outdir/plans", false), ("outdir", false), (".git", false), ("none", true), ("linked", true)]
    {
        symlink("plans", place.file("linked")).ok();
        place.write("planwatch.toml", format!("plans_dir = \"{directory}\"\n"));
        let ran = place.run("list");
        if is_fine {
            assert!(!ran.stderr.contains("configuration"), "{ran:?}");
        } else {
            refused(&ran, "configuration");
        }
    }
    std::fs::remove_file(place.file("planwatch.toml")).expect("it is there");
    symlink("../other/secret.md", place.file("planwatch.toml")).expect("links can be made");
    refused(&place.run("list"), "configuration");
    std::fs::remove_file(place.file("planwatch.toml")).expect("it is there");
    std::fs::create_dir(place.file("planwatch.toml")).expect("directories can be made");
    refused(&place.run("list"), "not-a-file");
    std::fs::remove_dir(place.file("planwatch.toml")).expect("it is empty");
    std::fs::rename(place.file("plans"), place.file("own")).expect("it can be renamed");
    symlink("../other/plans", place.file("plans")).expect("links can be made");
    refused(&place.run("list"), "configuration");
    let named = place.top().join("other/plans").display().to_string();
    assert_eq!(place.run_with(&["--plans", &named, "list"]).code, 0);
}

#[test]
fn no_link_in_the_plans_leads_into_a_git_directory() {
    let place = place();
    place.write("plans/.git/config", format!("# {SECRET}\n"));
    place.write("plans/_templates/own/step-1.md", "# One\n");
    for (to, link) in [
        ("../../.git/config", "plans/_templates/own/plan.md"),
        ("../.git/config", "plans/_prompts/step.pmt"),
        ("../.git/config", "plans/a/step-2.md"),
        ("../.planwatch/token", "plans/a/step-3.md"),
    ] {
        std::fs::create_dir_all(place.file(link).parent().expect("it has one")).expect("it can be made");
        symlink(to, place.file(link)).expect("links can be made");
    }
    for command in
        ["template show own", "template render own X", "template show step", "show a:2", "show a:3"]
    {
        let ran = place.run(command);
        assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET), "{command}: {ran:?}");
    }
}

#[test]
fn archive_does_not_break_a_link() {
    let place = Place::new();
    place.write("plans/_shared/two.md", "---\nstatus: completed\n---\n# Two\n");
    place.write("plans/p/plan.md", "# P\n");
    place.write("plans/p/step-1.md", "---\nstatus: completed\n---\n# One\n");
    let link = place.file("plans/p/step-2.md");
    symlink("../_shared/two.md", &link).expect("a new name");
    let before = tree(&place.work().join("plans"));
    let refused = place.run("archive p");
    assert_eq!(refused.code, 6, "{refused:?}");
    assert!(refused.stderr.contains("would lead elsewhere"), "{refused:?}");
    assert_eq!(tree(&place.work().join("plans")), before);
    // A link within the plan moves with its target.
    std::fs::remove_file(&link).expect("it is there");
    place.write("plans/p/two/text.md", "---\nstatus: completed\n---\n# Two\n");
    symlink("two/text.md", &link).expect("a new name");
    place.run("archive p").ok();
    assert_eq!(place.text("plans/_archive/p/step-2.md"), "---\nstatus: completed\n---\n# Two\n");
    place.run("archive --restore p").ok();
    assert_eq!(place.text("plans/p/step-2.md"), "---\nstatus: completed\n---\n# Two\n");
}
