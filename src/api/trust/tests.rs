#![expect(clippy::disallowed_methods, reason = "tests make and change their own files")]

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use super::*;
use crate::disk::{PlansDir, RealDisk};

struct Place {
    top: tempfile::TempDir,
    context: Context,
}

impl Place {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().canonicalize().unwrap().join("shop");
        for path in [
            "c.sh",
            "no space.sh",
            "env.sh",
            "tools/c.sh",
            "tools/deep/x.py",
            "a/b/c.sh",
            "build/out",
            "plans/p/plan.md",
            "plans/p/step-1.md",
            "plans/p/help.sh",
            "plans/.planwatch/token",
            ".git/HEAD",
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "before").unwrap();
        }
        fs::create_dir(top.path().join("other")).unwrap();
        fs::write(top.path().join("other/c.sh"), "before").unwrap();
        symlink("c.sh", root.join("link.sh")).unwrap();
        symlink("tools", root.join("linked")).unwrap();
        symlink("../other", root.join("out")).unwrap();
        let plans = PlansDir::open(Arc::new(RealDisk), &root.join("plans"), None).unwrap();
        let mut context = Context::of(plans);
        context.here.root = root;
        Self { top, context }
    }

    fn covered(&self, line: &str, directory: &str) -> Covered {
        let real = self.context.here.root.join(directory);
        covered(&self.context, line, directory, Some(&real))
    }

    fn change(&self, path: &str) {
        let path = self.context.here.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "after").unwrap();
    }
}

/// Checks that the hash of a line covers `files`, and that a change of a file changes the hash if and only if `changing`
/// contains the file.
#[track_caller]
fn check(line: &str, directory: &str, files: &[&str], changing: &[&str]) {
    let place = Place::new();
    let before = place.covered(line, directory);
    assert_eq!(before.fault, None, "{line}");
    assert_eq!(before.files, files, "{line}");
    assert_eq!(place.covered(line, directory), before, "{line}");
    let all =
        ["c.sh", "no space.sh", "env.sh", "tools/c.sh", "tools/deep/x.py", "a/b/c.sh", "tools/new", "new.sh"];
    for path in all {
        let file = place.context.here.root.join(path);
        let was = fs::read(&file).ok();
        fs::write(&file, "after").unwrap();
        let is_other = place.covered(line, directory).hash != before.hash;
        assert_eq!(is_other, changing.contains(&path), "{line} in {directory}: {path}");
        match was {
            Some(was) => fs::write(&file, was).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
    }
}

#[test]
fn the_files_that_a_line_names_are_covered() {
    for line in [
        "./c.sh",
        "\"./c.sh\"",
        "'./c.sh' x",
        "./c.sh; true",
        "./c.sh&&true",
        "./c.sh|cat",
        "bash c.sh",
        "sh -c './c.sh x'",
        "cat <./c.sh",
        ". ./c.sh",
        "X=./c.sh make",
        "curl -d @c.sh x",
        "run --flag=./c.sh",
        "run -f./c.sh",
        "run --paths=x:c.sh",
        "python3 -c 'open(\"c.sh\")'",
        "if true; then ./c.sh; fi",
        "f() { ./c.sh; }; f",
        "test -f env.sh && ./c.sh >env.sh",
        "make c.sh",
    ] {
        check(line, "", &["c.sh"], &["c.sh"]);
    }
    check("./no\\ space.sh", "", &["no space.sh"], &["no space.sh"]);
    check("make all", "", &[], &[]);
    check("test -f new.sh", "", &[], &[]);
    check("./new.sh", "", &[], &["new.sh"]);
    check("echo done >new.sh", "", &[], &[]);
    check("./link.sh", "", &["c.sh", "link.sh"], &["c.sh"]);
    check("./out/c.sh", "", &["out"], &[]);
    check("/bin/sh /etc/hostname", "", &[], &[]);
}

#[test]
fn paths_are_resolved_from_every_directory_that_a_line_may_use() {
    check("./c.sh", "tools", &["c.sh", "tools/c.sh"], &["c.sh", "tools/c.sh"]);
    check("../env.sh", "tools", &["env.sh"], &["env.sh"]);
    check("cd tools && ./c.sh", "", &["c.sh", "tools/c.sh"], &["c.sh", "tools/c.sh"]);
    check("cd a; cd b; ./c.sh", "", &["a/b/c.sh", "c.sh"], &["a/b/c.sh", "c.sh"]);
    check("cd tools && make", "", &[], &[]);
    let tools = ["tools/c.sh", "tools/deep/x.py", "tools/new"];
    check("make -C tools", "", &["tools/"], &tools);
    check("make -Ctools", "", &["tools/"], &tools);
    check("PATH=./tools make", "", &["tools/"], &tools);
    check("pytest tools", "", &["tools/"], &tools);
    check("make tools", "", &[], &[]);
    check("pytest linked/deep", "", &["linked", "tools/deep/"], &["tools/deep/x.py"]);
}

#[test]
fn a_line_whose_files_are_known_only_when_it_runs_covers_the_repository() {
    let all =
        ["c.sh", "no space.sh", "env.sh", "tools/c.sh", "tools/deep/x.py", "a/b/c.sh", "tools/new", "new.sh"];
    for line in ["./$X", "./*.sh", "eval ./c.sh", "sh -c \"$X\"", "cat <<E\nE", "'unclosed", "ls | xargs sh"]
    {
        let files = &place_files(line)[..];
        let files: Vec<_> = files.iter().map(String::as_str).collect();
        assert!(files.contains(&"./"), "{line}: {files:?}");
        check(line, "tools", &files, &all);
    }
    let place = Place::new();
    let before = place.covered("./$X", "");
    for path in
        ["plans/p/plan.md", "plans/p/step-1.md", "plans/q/plan.md", "plans/.planwatch/token", ".git/HEAD"]
    {
        place.change(path);
        assert_eq!(place.covered("./$X", ""), before, "{path}");
    }
    place.change("plans/p/help.sh");
    assert_ne!(place.covered("./$X", ""), before);
}

fn place_files(line: &str) -> Vec<String> {
    Place::new().covered(line, "tools").files
}

#[test]
fn a_changed_target_of_a_link_changes_the_hash() {
    for line in ["./link.sh", "./link.sh ./c.sh ./env.sh", "./linked/c.sh", "./out/c.sh", "./$X"] {
        let place = Place::new();
        let before = place.covered(line, "").hash;
        let link = line.split(['.', '/', ' ', '$']).find(|it| !it.is_empty()).unwrap();
        let link = if link == "link" { "link.sh" } else { link };
        let link = place.context.here.root.join(if link == "X" { "out" } else { link });
        fs::remove_file(&link).unwrap();
        symlink(if link.ends_with("link.sh") { "env.sh" } else { "a/b" }, &link).unwrap();
        assert_ne!(place.covered(line, "").hash, before, "{line}");
    }
}

#[test]
fn a_line_that_covers_too_much_cannot_be_trusted() {
    let place = Place::new();
    let huge = fs::File::create(place.context.here.root.join("tools/huge")).unwrap();
    huge.set_len(1 << 40).unwrap();
    for (line, is_refused) in [
        ("./c.sh", false),
        ("./$X", true),
        ("make -C tools", true),
        ("tools/huge", true),
        ("cd tools && make", false),
    ] {
        let covered = place.covered(line, "");
        assert_eq!(covered.fault.is_some(), is_refused, "{line}: {:?}", covered.fault);
        let subject = Subject {
            what: "it".to_owned(),
            name: "it".to_owned(),
            path: place.top.path().join("x"),
            command: line.to_owned(),
            directory: ".".to_owned(),
            hash: covered.hash.clone(),
            files: covered.files,
            fault: covered.fault,
        };
        let may = may_run(&place.context, &subject, std::slice::from_ref(&covered.hash));
        assert_eq!(may, !is_refused, "{line}");
        assert_eq!(
            super::check(&place.context, &subject, Some(&covered.hash)).is_ok(),
            !is_refused,
            "{line}"
        );
    }
}

#[test]
fn another_line_or_directory_has_another_hash() {
    let place = Place::new();
    let all: std::collections::BTreeSet<_> =
        [("make", ""), ("make ", ""), ("make", "tools"), ("./c.sh", ""), ("./c.sh", "tools"), ("make.", "")]
            .map(|(line, directory)| place.covered(line, directory).hash)
            .into();
    assert_eq!(all.len(), 6);
    assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
}

#[test]
fn the_hint_for_another_hash_names_a_command_that_shows_what_would_run() {
    for (name, command) in
        [("build", "planwatch script show build"), ("agent:x", "planwatch trust"), ("p:1", "planwatch trust")]
    {
        let subject = Subject {
            what: format!("`{name}`"),
            name: name.to_owned(),
            path: PathBuf::new(),
            command: "make".to_owned(),
            directory: ".".to_owned(),
            hash: "1f".to_owned(),
            files: Vec::new(),
            fault: None,
        };
        let hint = other_hash(&subject, "0").hint();
        assert_eq!(hint, Some(format!("read what would run: `{command}`")));
    }
}
