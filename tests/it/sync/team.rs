//! A bare repository and its clones, with a git that can fail at chosen moments.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "helpers of tests create and read files, and start the binary and git"
)]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::support::{Place, Ran, read};

/// A wrapper that precedes git on the PATH. It logs each call that contacts the remote, and simulates the fault in the
/// file `fault`: `offline` and `refused` until [`Team::heal`] is called, `answers-lost` and `requests-lost` at the next two
/// pushes, the others at the next push.
const GIT: &str = r#"#!/bin/sh
for word in "$@"; do
  case $word in push|fetch|ls-remote) call=$word; break;; esac
done
[ -n "$call" ] || exec /usr/bin/git "$@"
printf '%s\n' "$*" >> "$TEAM/calls"
hung_up() { echo 'fatal: the remote end hung up unexpectedly' >&2; exit 128; }
fault=
[ ! -e "$TEAM/fault" ] || read -r fault < "$TEAM/fault"
case $fault in
  offline) echo "fatal: unable to access 'x': Could not resolve host: x" >&2; exit 128;;
  refused) echo "fatal: could not read Username for 'x': terminal prompts disabled" >&2; exit 128;;
esac
if [ "$call" = push ] && [ -n "$fault" ]; then
  rm "$TEAM/fault"
  case $fault in
    answer-lost) /usr/bin/git "$@" >/dev/null 2>&1; hung_up;;
    answers-lost) echo request-lost > "$TEAM/fault"; /usr/bin/git "$@" >/dev/null 2>&1; hung_up;;
    request-lost) hung_up;;
    requests-lost) echo request-lost > "$TEAM/fault"; hung_up;;
    killed-after) /usr/bin/git "$@" >/dev/null 2>&1; kill -9 $PPID; exit 1;;
    killed-before) kill -9 $PPID; exit 1;;
    race) sh "$TEAM/race" >/dev/null 2>&1 </dev/null;;
  esac
fi
exec /usr/bin/git "$@"
"#;

/// A hook that lists each pushed ref that the server accepted.
const POST_RECEIVE: &str = "#!/bin/sh\nwhile read -r line; do echo \"$line\"; done >> \"$PWD/pushed\"\n";

pub(super) struct Team {
    pub(super) place: Place,
}

pub(super) struct Clone<'a> {
    pub(super) team: &'a Team,
    name: &'static str,
}

impl Team {
    /// A hub with one plan of three steps, and the clones `a` and `b`; `a` has set up sync.
    pub(super) fn new() -> Self {
        Self::with(&[])
    }

    pub(super) fn with(options: &[&str]) -> Self {
        let team = Self::without_sync(options);
        let a = team.clone_of("a");
        a.run("sync init").ok_code();
        a.git("add planwatch.toml");
        a.git("commit -q -m Sync");
        a.git("push -q origin main");
        team.clone_of("b").git("pull -q");
        team
    }

    pub(super) fn without_sync(options: &[&str]) -> Self {
        let team = Self { place: Place::new() };
        team.write("bin/git", GIT);
        std::fs::set_permissions(team.path("bin/git"), PermissionsExt::from_mode(0o755)).unwrap();
        let top = team.place.top();
        let words = [&["init", "-q", "--bare", "-b", "main"], options, &["hub.git"]].concat();
        team.place.git_at(&top, 0, &words);
        team.write("hub.git/hooks/post-receive", POST_RECEIVE);
        team.executable("hub.git/hooks/post-receive");
        team.place.git_at(&top, 0, &[&["init", "-q"], options, &["a"]].concat());
        let a = team.clone_of("a");
        a.git("remote add origin ../hub.git");
        team.write("a/plans/p/plan.md", "# P\n");
        for n in 1..=3 {
            team.write(
                &format!("a/plans/p/step-{n}.md"),
                &format!("---\nstatus: pending\n---\n# Step {n}\n"),
            );
        }
        team.write("a/.gitignore", "plans/.planwatch\n");
        a.git("add .");
        a.git("commit -q -m Begin");
        a.git("push -q -u origin main");
        team.place.git_at(&top, 0, &["clone", "-q", "hub.git", "b"]);
        team
    }

    pub(super) fn clone_of(&self, name: &'static str) -> Clone<'_> {
        Clone { team: self, name }
    }

    pub(super) fn path(&self, relative: &str) -> PathBuf {
        self.place.top().join(relative)
    }

    pub(super) fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(super) fn executable(&self, relative: &str) {
        std::fs::set_permissions(self.path(relative), PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// Sets the fault; the comment of [`GIT`] says when it ends.
    pub(super) fn fault(&self, fault: &str) {
        self.write("fault", fault);
    }

    pub(super) fn heal(&self) {
        std::fs::remove_file(self.path("fault")).ok();
    }

    /// The calls that contacted the remote since this method was last called.
    pub(super) fn calls(&self) -> Vec<String> {
        let path = self.path("calls");
        let calls = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::remove_file(path).ok();
        calls.lines().map(str::to_owned).collect()
    }

    /// The names of all refs that were ever pushed to the hub.
    pub(super) fn pushed(&self) -> Vec<String> {
        let pushed = std::fs::read_to_string(self.path("hub.git/pushed")).unwrap_or_default();
        let mut names: Vec<_> =
            pushed.lines().filter_map(|it| it.split(' ').nth(2)).map(str::to_owned).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The records at the hub, as `p/1 claimed ann`.
    pub(super) fn records(&self) -> Vec<String> {
        let hub = self.path("hub.git");
        let git = |words: &[&str]| self.place.git_at(&hub, 0, words);
        let refs = git(&["for-each-ref", "--format=%(refname)"]);
        let mut records = Vec::new();
        for name in refs.lines() {
            let Some((_, step)) = name.split_once("claims/plans/") else { continue };
            let shown = git(&["cat-file", "-p", name]);
            let body = shown.split_once("\n\n").map_or(shown.as_str(), |it| it.1);
            let record: Value = serde_json::from_str(body.trim()).unwrap_or_default();
            let text = |key: &str| record[key].as_str().unwrap_or("?").to_owned();
            records.push(format!("{step} {} {}", text("state"), text("by")));
        }
        records
    }

    /// The object of each record at the hub.
    pub(super) fn oids(&self) -> BTreeMap<String, String> {
        let refs = ["for-each-ref", "--format=%(refname) %(objectname)"];
        let refs = self.place.git_at(&self.path("hub.git"), 0, &refs);
        let oid = |line: &str| {
            let (name, oid) = line.split_once(' ')?;
            Some((name.split_once("claims/plans/")?.1.to_owned(), oid.to_owned()))
        };
        refs.lines().filter_map(oid).collect()
    }
}

impl Clone<'_> {
    pub(super) fn command(&self) -> Command {
        let mut command = self.team.place.command();
        let top = self.team.place.top();
        command.current_dir(top.join(self.name)).env("TEAM", &top).env("PLANWATCH_BY", self.by());
        command.env("PATH", format!("{}:/usr/bin:/bin", top.join("bin").display()));
        command.env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    fn by(&self) -> &'static str {
        if self.name == "a" { "ann" } else { "bob" }
    }

    pub(super) fn run(&self, line: &str) -> Ran {
        Ran::of(self.command().args(line.split_whitespace()).output().unwrap())
    }

    /// Claims; returns the step and the claim's id.
    #[track_caller]
    pub(super) fn claim(&self, what: &str) -> (String, String) {
        let ran = self.run(&format!("claim {what} --json"));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
        let json = ran.json();
        let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        (text(&json["step"]["id"]), text(&json["claim"]["id"]))
    }

    #[track_caller]
    pub(super) fn git(&self, line: &str) -> String {
        let words: Vec<_> = line.split_whitespace().collect();
        self.team.place.git_at(&self.team.path(self.name), 0, &words)
    }

    /// As [`Self::git`], for a command that may fail.
    pub(super) fn try_git(&self, words: &[&str]) {
        let mut command = self.team.place.git_command();
        command.current_dir(self.team.path(self.name)).args(words).output().unwrap();
    }

    pub(super) fn step(&self, n: u32) -> String {
        read(&self.team.path(&format!("{}/plans/p/step-{n}.md", self.name)))
    }

    pub(super) fn write(&self, relative: &str, text: &str) {
        self.team.write(&format!("{}/{relative}", self.name), text);
    }

    pub(super) fn commit_and_push(&self) {
        self.git("add plans");
        self.git("commit -q -m Work");
        self.git("push -q origin HEAD");
    }

    /// Makes the records of this clone look as if the registry had last confirmed them before the machine last booted.
    pub(super) fn make_renewals_due(&self) {
        let directory = self.team.path(&format!("{}/.git/planwatch/sync", self.name));
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            let Ok(text) = std::fs::read_to_string(entry.path()) else { continue };
            let Ok(mut own) = serde_json::from_str::<Value>(&text) else { continue };
            if own["claim"].is_string() {
                own["confirmed"]["boot"] = "earlier".into();
                std::fs::write(entry.path(), own.to_string()).unwrap();
            }
        }
    }

    /// Changes all records that this clone has seen, its own included: they count as lapsed.
    pub(super) fn mark_as_lapsed(&self) {
        let path = self.team.path(&format!("{}/.git/planwatch/seen", self.name));
        let mut seen: Value = serde_json::from_str(&read(&path)).unwrap();
        for record in seen["records"].as_object_mut().unwrap().values_mut() {
            record["has_lapsed"] = true.into();
        }
        std::fs::write(path, seen.to_string()).unwrap();
    }
}

/// Asserts that a command was refused with this code.
#[track_caller]
pub(super) fn refused(ran: &Ran, code: &str) {
    assert!(ran.code != 0 && ran.stderr.contains(&format!("error[{code}]")), "{ran:?}");
}
