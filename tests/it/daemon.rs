//! The daemon, tested through commands: start, queries, event streams, stop, kill, and replacement.
#![expect(clippy::disallowed_methods, reason = "tests edit files as editors do, and stop processes")]

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Lines, Place, Ran, lines_of, root};

/// Only a process that hangs takes this long.
const DEADLINE: Duration = Duration::from_secs(60);

/// A place with a daemon, which is stopped at the end of the test.
struct Watched {
    place: Place,
    pid: u32,
}

impl Watched {
    fn start(place: Place) -> Self {
        let started = place.run("watch --detach --json");
        Self::started(place, &started)
    }

    fn started(place: Place, started: &Ran) -> Self {
        assert_eq!((started.code, started.stderr.as_str()), (0, ""), "{}", started.stdout);
        let answer = started.json();
        assert_eq!((&answer["kind"], &answer["state"]), (&json!("daemon"), &json!("started")));
        Self { pid: pid_of(&answer), place }
    }

    /// The line of `doctor` about the daemon.
    fn doctor(&self) -> String {
        let report = self.place.run("doctor --json").json();
        let checks = report["checks"].as_array().expect("a list").clone();
        let check =
            checks.into_iter().find(|it| it["name"] == "watching process").expect("doctor reports it");
        check["value"].as_str().expect("a text").to_owned()
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.pid.to_string()]).status();
        assert!(sent.expect("there is a kill").success());
    }

    /// Waits until the process is gone.
    fn wait(&self) {
        eventually("the process is gone", || !is_running(self.pid));
    }

    #[track_caller]
    fn check_answers(&self) {
        // If the daemon was stopped while it wrote the index, a notice says that the index is in memory.
        let all = |how: &str| {
            let ran = self.place.run(&format!("{how} list --all --json"));
            assert_eq!(ran.code, 0, "{ran:?}");
            ran.stdout
        };
        assert_eq!(all(""), all("--no-index"));
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if is_running(self.pid) {
            self.signal("KILL");
        }
    }
}

fn pid_of(answer: &Value) -> u32 {
    answer["pid"].as_u64().and_then(|it| u32::try_from(it).ok()).expect("a process")
}

/// A zombie process does not count as running.
fn is_running(pid: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

#[track_caller]
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::yield_now();
    }
}

fn follow(place: &Place) -> (Child, Lines, Lines) {
    let mut command = place.command();
    let command = command.arg("watch").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let events = lines_of(child.stdout.take().expect("it is piped"));
    let mut messages = lines_of(child.stderr.take().expect("it is piped"));
    assert!(messages.next().contains("its events follow"));
    (child, events, messages)
}

const STEP: &str = "plans/fence-repair/step-4.md";

#[test]
fn one_daemon_runs_and_can_be_stopped() {
    let watched = Watched::start(Place::with_examples());
    let again = watched.place.run("watch --detach --json").json();
    assert_eq!((&again["state"], pid_of(&again)), (&json!("running"), watched.pid));
    assert!(watched.doctor().starts_with(&format!("{}, since", watched.pid)), "{}", watched.doctor());
    let stopped = watched.place.run("watch --stop --json").json();
    assert_eq!((&stopped["state"], pid_of(&stopped)), (&json!("stopped"), watched.pid));
    assert_eq!(watched.place.run("watch --stop").code, 8);
    assert_eq!(watched.doctor(), "none");
    assert!(!watched.place.file("plans/.planwatch/daemon.sock").exists());
}

#[test]
fn a_second_watch_follows_the_first() {
    let watched = Watched::start(Place::with_examples());
    let (mut child, mut events, messages) = follow(&watched.place);
    let edited = watched.place.text(STEP).replacen("status: pending", "status: wip", 1);
    watched.place.write(STEP, edited);
    assert!(events.next().ends_with("pending → in_progress"));
    assert_eq!(watched.place.run("done fence-repair:4").code, 0);
    let completed = events.next();
    assert!(completed.ends_with("in_progress → completed  (done, ann)"), "{completed}");
    let done = watched.place.text(STEP);
    assert_eq!(watched.place.run("undo").code, 0);
    assert!(events.next().ends_with("completed → in_progress  (undo, ann)"));
    // The same bytes written again, as by `git stash pop`, are not attributed to a command.
    watched.place.write(STEP, done);
    assert!(events.next().ends_with("in_progress → completed"));
    assert_eq!(watched.place.run("watch --stop").code, 0);
    assert_eq!(messages.end(), ["the process that watched has ended: it was stopped"]);
    assert!(child.wait().expect("it ended").success());
}

#[test]
fn the_first_json_line_of_a_follower_is_ready() {
    let watched = Watched::start(Place::with_examples());
    let mut command = watched.place.command();
    let mut child = command.args(["watch", "--json"]).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut events = lines_of(child.stdout.take().expect("it is piped"));
    let ready: Value = serde_json::from_str(&events.next()).expect("an object");
    assert_eq!((&ready["kind"], &ready["plans_total"]), (&json!("ready"), &json!(5)));
    assert_eq!(watched.place.run("watch --stop").code, 0);
    assert!(child.wait().expect("it ended").success());
}

#[test]
fn a_follower_reports_a_crash_of_the_daemon() {
    let watched = Watched::start(Place::with_examples());
    let (mut child, _events, messages) = follow(&watched.place);
    watched.signal("KILL");
    assert_eq!(messages.end(), ["error[no-daemon]: the process that watched has ended without a message"]);
    assert_eq!(child.wait().expect("it ended").code(), Some(8));
    // The socket of the killed daemon does not prevent a new start.
    watched.wait();
    watched.check_answers();
    let next = Watched::start(Place::with_examples());
    assert_ne!(next.pid, watched.pid);
    let again = watched.place.run("watch --detach --json").json();
    assert_eq!(again["state"], "started");
    assert_eq!(watched.place.run("watch --stop").code, 0);
}

#[test]
fn every_answer_contains_the_saves_before_the_query() {
    let watched = Watched::start(Place::with_examples());
    let text = watched.place.text(STEP);
    for status in ["wip", "blocked", "done", "pending", "failed", "skipped"] {
        watched.place.write(STEP, text.replacen("status: pending", &format!("status: {status}"), 1));
        watched.check_answers();
        watched
            .place
            .write(&format!("plans/new-{status}/step-1.md"), format!("---\nstatus: {status}\n---\n# One\n"));
        watched.check_answers();
        std::fs::remove_file(watched.place.file(&format!("plans/new-{status}/step-1.md")))
            .expect("it is there");
        watched.check_answers();
    }
    watched.place.write("planwatch.toml", "[words]\npending = \"blocked\"\n");
    watched.check_answers();
}

#[test]
fn an_answer_about_one_plan_matches_the_files() {
    let watched = Watched::start(Place::with_examples());
    let place = &watched.place;
    let write = |path: &str, text: &str| {
        let path = place.file(path);
        std::fs::create_dir_all(path.parent().expect("it is in a directory")).expect("there is room");
        std::fs::write(path, text).expect("there is room");
    };
    let check = || {
        for query in ["show fence-repair:4", "show fence-repair", "list fence-repair", "next fence-repair"] {
            let answer = |how: &str| {
                let ran = place.run(&format!("{how} {query} --json"));
                (ran.code, ran.stdout)
            };
            assert_eq!(answer(""), answer("--no-index"), "{query}");
        }
    };
    check();
    write("plans/other/step-1.md", "---\ndepends: [fence-repair:4]\n---\n# Waits\n");
    check();
    assert!(place.run("show fence-repair:4").stdout.contains("other:1"), "the dependent step is shown");
    write("plans/Fence-Repair/step-1.md", "# Another spelling\n");
    write("plans/Zäune/step-1.md", "---\ndepends: [fence-repair:4, other:1]\n---\n# Odd\n");
    write(STEP, "---\ndepends: [other:1, Zäune:1]\n---\n# In a circle\n");
    check();
    std::fs::rename(place.file("plans/other"), place.file("plans/elsewhere")).expect("it is there");
    check();
    std::fs::remove_dir_all(place.file("plans/Fence-Repair")).expect("it is there");
    write("plans/elsewhere/step-1.md", "# Waits no more\n");
    check();
}

#[test]
fn commands_work_without_an_answer_of_the_daemon() {
    let watched = Watched::start(Place::with_examples());
    watched.signal("STOP");
    watched.place.write(STEP, "---\nstatus: wip\n---\n# Clear\n");
    watched.check_answers();
    watched.signal("CONT");
    watched.check_answers();
}

/// A daemon stopped with SIGSTOP still holds the lock. Commands must not wait for ever, start a second daemon, or report
/// that none runs.
#[test]
fn every_verb_that_needs_the_daemon_reports_that_it_is_stopped() {
    let watched = Watched::start(Place::with_examples());
    watched.signal("STOP");
    let pid = watched.pid.to_string();
    assert_eq!(watched.doctor(), format!("{pid}, which does not answer"));
    let doctor = watched.place.run("doctor");
    assert_eq!(doctor.code, 6, "{}", doctor.stdout);
    assert!(doctor.stdout.contains(&format!("kill -CONT {pid}")), "{}", doctor.stdout);
    for verb in ["watch", "watch --detach", "watch --stop"] {
        let ran = watched.place.run(verb);
        assert_eq!((ran.code, ran.stdout.as_str()), (4, ""), "{verb}: {}", ran.stderr);
        for part in
            ["error[locked]", &format!("(process {pid}) does not respond"), &format!("kill -CONT {pid}")]
        {
            assert!(ran.stderr.contains(part), "{verb}: {}", ran.stderr);
        }
    }
    watched.signal("CONT");
    assert_eq!(watched.place.run("watch --stop").code, 0);
    watched.wait();
}

#[test]
fn many_new_directories_are_found_completely() {
    let watched = Watched::start(Place::with_examples());
    for n in 0..60 {
        for step in 1..=3 {
            watched.place.write(&format!("plans/s{n}/step-{step}.md"), "---\nstatus: wip\n---\n# Step\n");
        }
        watched.place.write(&format!("plans/s{n}/plan.md"), "# Storm\n");
        if n % 3 == 0 {
            let to = watched.place.file(&format!("plans/moved-{n}"));
            std::fs::rename(watched.place.file(&format!("plans/s{n}")), to).expect("it can be moved");
        }
    }
    watched.check_answers();
    eventually("all of them are counted", || {
        let status = watched.place.run("watch --detach --json").json();
        status["plans"] == 65 && status["steps"] == 31 + 180
    });
}

#[test]
fn the_daemon_survives_the_loss_of_its_files_but_not_of_the_plans() {
    let watched = Watched::start(Place::with_examples());
    let own = watched.place.file("plans/.planwatch");
    for entry in own.read_dir().expect("it is there").flatten() {
        if entry.file_name().to_string_lossy().ends_with(".db") {
            std::fs::remove_file(entry.path()).expect("it is there");
        }
    }
    // A new index that has only the daemon's later changes does not count as complete.
    watched.place.write("plans/fence-repair/step-9.md", "# Paint it\n");
    watched.check_answers();
    std::fs::remove_dir_all(&own).expect("it is there");
    eventually("its socket is there again", || watched.doctor().starts_with(&watched.pid.to_string()));
    watched.check_answers();
    let events = follow(&watched.place);
    std::fs::rename(watched.place.file("plans"), watched.place.file("gone")).expect("it can be moved");
    assert_eq!(
        events.2.end(),
        ["the process that watched has ended: the plans directory was deleted or moved"]
    );
    watched.wait();
}

#[test]
fn the_daemon_ends_when_the_plans_are_deleted() {
    for _ in 0..3 {
        let place = Place::with_examples();
        for n in 0..100 {
            place.write(&format!("plans/p{n}/step-1.md"), "# One\n");
        }
        let watched = Watched::start(place);
        let events = follow(&watched.place);
        let deleted = Command::new("rm").arg("-rf").arg(watched.place.file("plans")).output();
        let deleted = deleted.expect("there is an rm");
        assert!(deleted.status.success(), "{deleted:?}");
        assert_eq!(
            events.2.end(),
            ["the process that watched has ended: the plans directory was deleted or moved"]
        );
        watched.wait();
        assert!(!watched.place.file("plans").exists());
    }
}

#[test]
fn a_signal_stops_it_and_removes_the_socket() {
    for (signal, code) in [("TERM", 0), ("HUP", 0), ("INT", 130)] {
        let place = Place::with_examples();
        let mut command = place.command();
        let command = command.arg("watch").stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let mut messages = lines_of(child.stderr.take().expect("it is piped"));
        assert!(messages.next().starts_with("watching 5 plans"));
        let sent = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
        assert!(sent.expect("there is a kill").success());
        assert_eq!(child.wait().expect("it ended").code(), Some(code), "{signal}");
        assert!(!place.file("plans/.planwatch/daemon.sock").exists());
    }
}

#[test]
fn a_path_too_long_for_a_socket_works() {
    let place = Place::new();
    let long = "d".repeat(120);
    place.write(&format!("{long}/plans/trip/step-1.md"), "# Book\n");
    let run = |line: &str| {
        let mut command = place.command();
        command.current_dir(place.file(&long)).env("XDG_RUNTIME_DIR", place.top().join("home"));
        command.args(line.split(' ')).output().map(crate::support::Ran::of).expect("the binary starts")
    };
    let started = run("watch --detach --json");
    assert_eq!(started.code, 0, "{started:?}");
    let sockets: Vec<PathBuf> = place
        .top()
        .join("home/planwatch")
        .read_dir()
        .expect("it was made")
        .flatten()
        .map(|it| it.path())
        .collect();
    assert_eq!(sockets.len(), 1, "{sockets:?}");
    assert_eq!(run("watch --stop --json").json()["pid"], started.json()["pid"]);
}

/// The command lines of the documented services exist.
#[test]
fn the_documented_service_files_start_existing_commands() {
    let page = crate::support::read(&root().join("docs/daemon.md"));
    assert!(page.contains("ExecStart=") && page.contains("ProgramArguments"), "both kinds of service");
    let place = Place::with_examples();
    for line in page.lines().filter_map(|it| it.strip_prefix("$ planwatch ")) {
        let ran = place.run(line);
        assert!(matches!(ran.code, 0 | 8), "{line}: {ran:?}");
    }
    assert!(matches!(place.run("watch --stop").code, 0 | 8));
}

#[test]
fn the_daemon_claims_for_simultaneous_callers() {
    let place = Place::new();
    for n in 1..=8 {
        place.write(&format!("plans/p/step-{n}.md"), format!("# Step {n}\n"));
    }
    // The daemon's files are private, which distinguishes them from those of other processes.
    let mut shell = Command::new("sh");
    place.close_environment(&mut shell);
    shell.args(["-c", "umask 077; exec \"$0\" watch --detach --json", env!("CARGO_BIN_EXE_planwatch")]);
    let started = Ran::of(shell.output().expect("there is a shell"));
    let watched = Watched::started(place, &started);
    let claim = |n: usize| {
        let mut command = watched.place.command();
        command.args(["claim", "--json", "--by", &format!("worker-{n}")]).stdout(Stdio::piped());
        command.spawn().expect("the binary starts")
    };
    let running: Vec<_> = (1..=8).map(claim).collect();
    let answers: Vec<_> = running.into_iter().map(|it| it.wait_with_output().expect("it ends")).collect();
    let mut steps = HashSet::new();
    for (answer, n) in answers.iter().zip(1..) {
        let answer: Value = serde_json::from_slice(&answer.stdout).expect("JSON");
        let step = answer["step"]["id"].as_str().expect("a step is claimed");
        assert!(steps.insert(step.to_owned()), "{step} was claimed twice");
        let text = watched.place.text(&format!("plans/{}.md", step.replace(':', "/step-")));
        let claim = answer["claim"]["id"].as_str().expect("it has an id");
        assert!(text.contains(&format!("claim: {{id: \"{claim}\", by: \"worker-{n}\"")), "{text}");
    }
    let records =
        std::fs::read_dir(watched.place.file("plans/.planwatch/leases")).expect("claims are recorded");
    // The lock is always private, so it does not count.
    let records = records.map(|it| it.expect("it can be read")).filter(|it| it.file_name() != "lock");
    let mode = |it: std::fs::DirEntry| it.metadata().expect("it is there").permissions().mode() & 0o777;
    assert!(records.map(mode).any(|it| it == 0o600), "the daemon made no claim");
}

#[test]
fn a_daemon_killed_a_moment_ago_does_not_prevent_a_start() {
    let place = Place::new();
    place.write("plans/p/step-1.md", "# One\n");
    place.run("watch --detach").ok();
    place.run("watch --stop").ok();
    // The system releases the locks of a killed process with a small delay.
    let lock = std::fs::File::open(place.file("plans/.planwatch/daemon.lock")).expect("it is there");
    lock.lock().expect("it is free");
    let mut starting = place.command();
    starting.args(["watch", "--detach", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let starting = starting.spawn().expect("the binary starts");
    std::thread::park_timeout(Duration::from_millis(100));
    drop(lock);
    let started = Ran::of(starting.wait_with_output().expect("it ends"));
    Watched::started(place, &started).check_answers();
}
