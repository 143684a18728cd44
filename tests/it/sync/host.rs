//! Refs that hosts allow, and settings of users that must not change what is pushed.

use super::team::{Team, refused};

/// A hub that refuses refs whose names match this shell pattern.
fn strict(refused: &str) -> Team {
    let team = Team::without_sync(&[]);
    let hook = format!(
        "#!/bin/sh\nwhile read old new name; do\n  case $name in {refused}) echo \"$name is not allowed\" >&2; exit 1;; \
         esac\ndone\n"
    );
    team.write("hub.git/hooks/pre-receive", &hook);
    team.executable("hub.git/hooks/pre-receive");
    team
}

#[test]
fn the_first_namespace_that_the_host_allows_is_used() {
    let table = [
        ("none", "refs/planwatch/"),
        ("refs/planwatch/*", "refs/tags/planwatch-claims/"),
        ("refs/planwatch/*|refs/tags/*", "refs/heads/planwatch-claims/"),
    ];
    for (not_allowed, prefix) in table {
        let team = strict(not_allowed);
        let (a, b) = (team.clone_of("a"), team.clone_of("b"));
        let init = a.run("sync init").ok();
        assert!(init.contains(&format!("claims at origin in {prefix}")), "{init}");
        b.write("planwatch.toml", &crate::support::read(&team.path("a/planwatch.toml")));
        assert_eq!((a.claim("").0.as_str(), b.claim("").0.as_str()), ("p:1", "p:2"), "{prefix}");
        assert_eq!(team.records(), ["p/1 claimed ann", "p/2 claimed bob"], "{prefix}");
        refused(&b.run("claim p:1"), "claimed");
        b.mark_as_lapsed();
        b.claim("p:1");
        assert_eq!(team.records(), ["p/1 claimed bob", "p/2 claimed bob"], "{prefix}");
        b.run("done p:1").ok();
        b.run("release p:2").ok();
        assert_eq!(team.records(), ["p/1 completed bob"], "{prefix}");
        let outside: Vec<_> = team.pushed().into_iter().filter(|it| !it.starts_with(prefix)).collect();
        assert_eq!(outside, ["refs/heads/main"], "nothing but records below the namespace is pushed");
    }
    // Some hosts allow refs to be created, but not to be deleted. Claims need both.
    let team = Team::without_sync(&[]);
    let hook = "#!/bin/sh\nwhile read old new name; do\n  case $name$new in refs/planwatch/*000000000000) exit 1; esac\ndone\n";
    team.write("hub.git/hooks/pre-receive", hook);
    team.executable("hub.git/hooks/pre-receive");
    let init = team.clone_of("a").run("sync init").ok();
    assert!(init.contains("claims at origin in refs/tags/planwatch-claims/"), "{init}");
    let team = strict("refs/planwatch/*|refs/tags/*|refs/heads/planwatch-claims/*");
    let a = team.clone_of("a");
    refused(&a.run("sync init"), "remote-refused");
    assert!(!team.path("a/planwatch.toml").exists());
    // If a host withdraws the permission later, its refusal is not reported as a missing answer.
    let team = Team::new();
    team.write("hub.git/hooks/pre-receive", "#!/bin/sh\nexit 1\n");
    team.executable("hub.git/hooks/pre-receive");
    let (a, before) = (team.clone_of("a"), team.clone_of("a").step(1));
    refused(&a.run("claim"), "remote-refused");
    assert_eq!(a.step(1), before);
}

#[test]
fn settings_of_the_user_do_not_change_what_is_pushed() {
    let team = Team::new();
    let a = team.clone_of("a");
    a.git("tag -a -m One v1");
    a.git("config push.followTags true");
    a.git("config push.gpgSign true");
    a.git("config remote.origin.mirror true");
    a.git("config core.hooksPath hooks");
    team.write("a/hooks/pre-push", "#!/bin/sh\nexit 1\n");
    team.executable("a/hooks/pre-push");
    // As in a hook or an alias, git's own variables name another repository.
    let mut command = a.command();
    command.args(["claim", "p:1"]).env("GIT_DIR", team.path("elsewhere")).env("GIT_INDEX_FILE", "x");
    assert!(command.output().unwrap().status.success());
    a.run("done p:1").ok();
    assert_eq!(team.records(), ["p/1 completed ann"]);
    assert!(!team.pushed().iter().any(|it| it.contains("tags")), "{:?}", team.pushed());
}

#[test]
fn a_clone_contains_no_records_and_still_sees_the_claims() {
    let team = Team::new();
    team.clone_of("a").claim("p:1");
    team.place.git_at(&team.place.top(), 0, &["clone", "-q", "hub.git", "c"]);
    let c = team.clone_of("c");
    assert!(!c.git("for-each-ref").contains("planwatch"));
    // A shallow and a partial clone see the existing claims.
    let hub = format!("file://{}", team.path("hub.git").display());
    team.place.git_at(&team.path("hub.git"), 0, &["config", "uploadpack.allowFilter", "true"]);
    for (name, option) in [("d", "--depth=1"), ("e", "--filter=blob:none")] {
        team.place.git_at(&team.place.top(), 0, &["clone", "-q", option, &hub, name]);
        assert_eq!(team.clone_of(name).claim("").0, if name == "d" { "p:2" } else { "p:3" });
    }
}

#[test]
fn sha_256_repositories_and_reftables_work() {
    for option in ["--object-format=sha256", "--ref-format=reftable"] {
        // git 2.45 and later have reftables.
        let place = crate::support::Place::new();
        let tried = place.git_command().args(["init", "-q", option, "x"]).output().unwrap();
        if !tried.status.success() {
            continue;
        }
        let team = Team::with(&[option]);
        let (a, b) = (team.clone_of("a"), team.clone_of("b"));
        assert_eq!((a.claim("").0.as_str(), b.claim("").0.as_str()), ("p:1", "p:2"), "{option}");
        a.run("done p:1").ok();
        assert_eq!(team.records(), ["p/1 completed ann", "p/2 claimed bob"], "{option}");
    }
}

#[test]
fn a_repository_with_other_hashes_is_not_treated_as_a_missing_answer() {
    let team = Team::new();
    let a = team.clone_of("a");
    let (top, before) = (team.place.top(), a.step(1));
    let begin = ["-c", "init.defaultBranch=main", "init", "-q", "--object-format=sha256", "other"];
    team.place.git_at(&top, 0, &begin);
    team.place.git_at(&top.join("other"), 0, &["commit", "-q", "--allow-empty", "-m", "Begin"]);
    a.git("remote set-url origin ../other");
    refused(&a.run("claim"), "remote-refused");
    refused(&a.run("sync"), "remote-refused");
    assert_eq!(a.step(1), before);
}

#[test]
fn ssh_asks_nothing_and_ends_if_its_server_is_silent() {
    let team = Team::new();
    let a = team.clone_of("a");
    team.write("bin/ssh", "#!/bin/sh\nprintf '%s\\n' \"$*\" >> \"$TEAM/ssh\"\nexit 255\n");
    team.executable("bin/ssh");
    a.git("remote set-url origin ssh://host.invalid/hub.git");
    assert_eq!(a.run("sync").code, 4);
    let options = crate::support::read(&team.path("ssh"));
    for option in ["BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=2"] {
        assert!(options.contains(&format!("-o {option} ")), "{options}");
    }
    // The user's own command is used as it is.
    a.git("config core.sshCommand ssh");
    team.write("ssh", "");
    assert_eq!(a.run("sync").code, 4);
    let options = crate::support::read(&team.path("ssh"));
    assert!(!options.contains("BatchMode") && !options.is_empty(), "{options}");
}

/// The push URL of a remote can name another server than its fetch URL.
#[test]
fn claims_are_fetched_from_where_they_are_pushed_to() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    team.place.git_at(&team.place.top(), 0, &["clone", "-q", "--bare", "hub.git", "mirror.git"]);
    a.git("remote set-url origin ../mirror.git");
    a.git("remote set-url --push origin ../hub.git");
    b.claim("p:1");
    team.calls();
    assert_eq!(a.claim("").0, "p:2");
    assert_eq!(team.calls().len(), 2, "the first candidate is the step that b has not claimed");
}

#[test]
fn a_fork_shares_the_claims_of_its_upstream() {
    let team = Team::without_sync(&[]);
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    team.place.git_at(&team.place.top(), 0, &["clone", "-q", "--bare", "hub.git", "fork.git"]);
    a.git("remote rename origin upstream");
    a.git("remote add origin ../fork.git");
    assert!(a.run("sync init --remote upstream").ok().contains("upstream"));
    assert_eq!(a.claim("").0, "p:1");
    assert_eq!(team.records(), ["p/1 claimed ann"]);
    b.run("sync init").ok_code();
    refused(&b.run("claim p:1"), "claimed");
}

#[test]
fn claims_of_plans_with_any_name_are_shared() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    for plan in ["Größe & Co", "a..b.lock@{x~^", "x"] {
        for clone in [&a, &b] {
            clone.write(&format!("plans/{plan}/plan.md"), "# X\n");
            clone.write(&format!("plans/{plan}/step-2.50.md"), "# Y\n");
        }
        let step = format!("{plan}:2.5");
        let run = |clone: &super::team::Clone<'_>| {
            let out = clone.command().args(["claim", &step]).output().unwrap();
            out.status.code()
        };
        assert_eq!((run(&a), run(&b)), (Some(0), Some(4)), "{plan}");
    }
}

#[test]
fn sync_without_a_repository_or_a_remote_is_refused() {
    let place = crate::support::Place::with_examples();
    refused(&place.run("sync"), "sync-not-set-up");
    refused(&place.run("sync init"), "not-a-repository");
    let team = Team::without_sync(&[]);
    let a = team.clone_of("a");
    a.git("remote remove origin");
    refused(&a.run("sync init"), "no-remote");
    refused(&a.run("sync init --remote ../hub.git"), "no-remote");
    // A file of the repository cannot name a URL.
    a.write(
        "planwatch.toml",
        "[sync]\nid = \"0123456789abcdef\"\nremote = \"../hub.git\"\nclaims = \"refs/planwatch/\"\n",
    );
    refused(&a.run("sync"), "sync-not-set-up");
}
