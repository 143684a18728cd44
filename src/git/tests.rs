use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;

use super::*;

struct Repository {
    _directory: tempfile::TempDir,
    git: Git,
}

impl Repository {
    fn new() -> Self {
        Self::of(&[])
    }

    fn of(options: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        Call::new(&root, &[&["init", "-q", "-b", "main"], options].concat()).run().unwrap();
        for (key, value) in [("user.name", "Ann"), ("user.email", "ann@example.org")] {
            Call::new(&root, &["config", key, value]).run().unwrap();
        }
        Self { git: Git::at(&root).unwrap(), _directory: directory }
    }

    fn write(&self, path: impl AsRef<Path>, text: &str) {
        let path = self.git.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn run(&self, words: &[&str]) {
        self.git.call(words).run().unwrap();
    }

    fn commit(&self, subject: &str) -> Oid {
        self.run(&["add", "-A"]);
        self.run(&["commit", "-q", "--allow-empty", "-m", subject]);
        self.git.head_commit().unwrap().unwrap()
    }

    fn log(&self, query: &LogQuery) -> Vec<LogEntry> {
        self.git.log(query).unwrap().all().unwrap()
    }
}

#[test]
fn a_repository_is_found_from_a_directory_inside() {
    let repository = Repository::new();
    repository.write("a/b/c", "1");
    let below = Git::at(&repository.git.root.join("a/b")).unwrap();
    assert_eq!(below.root, repository.git.root);
    assert_eq!(below.common_dir.canonicalize().unwrap(), repository.git.root.join(".git"));
    assert_eq!(below.relative(&below.root.join("a/b/c")), Some(PathBuf::from("a/b/c")));
    assert_eq!(below.relative(Path::new("/none/x")), None);
    assert_eq!(below.head_commit().unwrap(), None);
    assert_eq!(below.head_branch().unwrap().as_deref(), Some("refs/heads/main"));
    let outside = tempfile::tempdir().unwrap();
    assert_eq!(Git::at(outside.path()).unwrap_err().code(), "not-a-repository");
    // git's own directory is not a working tree.
    assert_eq!(Git::at(&below.git_dir).unwrap_err().code(), "not-a-repository");
    assert!(below.require(2, 30, "").is_ok());
    assert_eq!(below.require(99, 0, " for this").unwrap_err().code(), "git-too-old");
}

#[test]
fn revisions_that_look_like_options_do_not_exist() {
    let repository = Repository::new();
    let first = repository.commit("first");
    repository.run(&["tag", "v1"]);
    let second = repository.commit("second");
    let git = &repository.git;
    for none in ["", "-h", "--all", "--git-dir", "none", "v1\n", "main:none", "a b", "@{x"] {
        assert_eq!(git.find_revision(none).unwrap(), None, "{none}");
        assert_eq!(git.revision(none).unwrap_err().code(), "not-found");
    }
    assert_eq!(git.revision("v1").unwrap(), first);
    let (from, to) = (first.clone(), second.clone());
    assert_eq!(git.range("v1..").unwrap(), Range::Between { from: from.clone(), to: to.clone() });
    assert_eq!(git.range("v1...main").unwrap(), Range::SinceBase { from, to });
    assert_eq!(git.range("HEAD^").unwrap(), Range::One(first.clone()));
    assert_eq!(git.merge_base(&first, &second).unwrap(), Some(first.clone()));
    assert!(git.is_ancestor(&first, &second).unwrap() && !git.is_ancestor(&second, &first).unwrap());
}

#[test]
fn history_has_every_change_with_its_objects() {
    for options in [&[][..], &["--object-format=sha256"]] {
        let repository = Repository::of(options);
        let hostile = "a\nb\t\u{1}:c";
        repository.write("plans/p/plan.md", "# P\n");
        repository.write(format!("plans/{hostile}"), "1");
        let first = repository.commit("first \u{1}:000000 subject");
        repository.write("plans/p/plan.md", "# Q\n");
        repository.write("code", "x");
        let second = repository.commit("second");
        let query = LogQuery { of: vec![second.clone()], paths: vec!["plans".into()], ..LogQuery::default() };
        let log = repository.log(&query);
        let found: Vec<_> =
            log.iter().map(|it| (&it.commit, it.subject.as_str(), it.changes.len())).collect();
        assert_eq!(found, [(&second, "second", 1), (&first, "first \u{1}:000000 subject", 2)]);
        assert_eq!((log[0].author.as_str(), &log[0].parents[..]), ("Ann", &[first.clone()][..]));
        let change = &log[0].changes[0];
        assert_eq!((change.status, &change.path[..]), (b'M', &b"plans/p/plan.md"[..]));
        let mut objects = CatFile::open(&repository.git).unwrap();
        let text = |oid: &Oid, objects: &mut CatFile| objects.read(oid.as_str().as_bytes()).unwrap().blob();
        assert_eq!(text(&change.old, &mut objects).as_deref(), Some(&b"# P\n"[..]));
        assert_eq!(text(&change.new, &mut objects).as_deref(), Some(&b"# Q\n"[..]));
        let created =
            log[1].changes.iter().find(|it| it.path == format!("plans/{hostile}").as_bytes()).unwrap();
        assert!(created.status == b'A' && created.old.is_null() && created.old_mode == 0);
        let query = LogQuery { of: vec![second], not: vec![first], ..LogQuery::default() };
        assert_eq!(repository.log(&query).len(), 1);
    }
}

#[test]
fn objects_are_read_in_order_and_missing_ones_are_reported() {
    let repository = Repository::new();
    let large = "x".repeat(300_000);
    repository.write("a", &large);
    repository.write("b c", "2");
    let head = repository.commit("c");
    let name = |path: &str| format!("{head}:{path}").into_bytes();
    let mut names: Vec<_> = (0..2_000).map(|_| name("b c")).collect();
    names.extend([name("a"), name("none"), name("x\ny"), Vec::new(), name("x blob 5"), name("b c")]);
    let mut found = Vec::new();
    let mut put = |at, it: Found| {
        assert_eq!(at, found.len());
        found.push(it.blob().map(|it| it.len()));
        Ok(())
    };
    repository.git.objects(&names, &mut put).unwrap();
    assert_eq!(found[..2_000], vec![Some(1); 2_000]);
    assert_eq!(found[2_000..], [Some(300_000), None, None, None, None, Some(1)]);
    let infos = repository.git.object_infos(&names).unwrap();
    let sizes: Vec<_> = infos.iter().map(|it| it.as_ref().map(|it| it.size as usize)).collect();
    assert_eq!(sizes, found);
}

#[test]
fn trees_the_index_and_branches_are_listed() {
    let repository = Repository::new();
    repository.write("plans/a", "1\n");
    repository.write("plans/-b", "2\n");
    repository.write("other", "3\n");
    let base = repository.commit("base");
    repository.run(&["checkout", "-q", "-b", "side"]);
    repository.write("plans/a", "theirs\n");
    repository.commit("theirs");
    repository.run(&["checkout", "-q", "main"]);
    repository.run(&["branch", "planwatch-run/x/y", "side"]);
    repository.write("plans/a", "ours\n");
    repository.commit("ours");
    let git = &repository.git;
    let paths = |entries: Vec<TreeEntry>| entries.into_iter().map(|it| it.path).collect::<Vec<_>>();
    assert_eq!(paths(git.tree_entries(&base, &["plans"]).unwrap()), [&b"plans/-b"[..], b"plans/a"]);
    assert_eq!(git.tree_entries(&base, &[""]).unwrap().len(), 3);
    let branches = git.unmerged_branches(git.head_commit().unwrap().as_ref()).unwrap();
    let names: Vec<_> = branches.iter().map(|it| (it.short(), it.author.as_str())).collect();
    assert_eq!(names, [("side", "Ann")]);
    assert_eq!(git.operation().unwrap(), None);
    let merge = git.call(&["merge", "-q", "side"]).output().unwrap();
    assert_eq!((merge.code, git.operation().unwrap()), (1, Some("merge")));
    let stages: Vec<_> = git.unmerged_entries(&["plans"]).unwrap().into_iter().map(|it| it.stage).collect();
    assert_eq!(stages, [1, 2, 3]);
    assert_eq!(git.index_entries(&["plans/-b"]).unwrap().len(), 1);
}

#[test]
fn a_call_ends_at_its_limits() {
    let repository = Repository::new();
    let git = &repository.git;
    // The command waits for input that never comes.
    let limit = Duration::from_millis(100);
    let mut waiting = git.call(&["cat-file", "--batch"]).limit(limit).open().unwrap();
    let error = waiting.read(&mut [0; 10]).unwrap_err();
    assert_eq!(waiting.failed(error).code(), "git-timeout");
    repository.write("a", &"x".repeat(1_000));
    let head = repository.commit("a");
    let error = git.call(&["cat-file", "blob"]).arg(format!("{head}:a")).most(10).run().unwrap_err();
    assert!(matches!(error, GitError::TooMuch { most: 10, .. }), "{error}");
    let error = git.call(&["cat-file", "blob"]).arg("none").run().unwrap_err();
    assert_eq!(error.to_string(), "git cat-file failed: Not a valid object name none");
}

#[test]
fn blobs_are_written_through_the_filters_of_their_path() {
    let repository = Repository::new();
    repository.write(".gitattributes", "*.md text eol=crlf\n");
    let oid = repository.git.write_blob(Path::new("plans/a.md"), b"a\r\n".to_vec()).unwrap();
    let stored = CatFile::open(&repository.git).unwrap().read(oid.as_str().as_bytes()).unwrap();
    assert_eq!(stored.blob().unwrap(), b"a\n");
    let hostile = Path::new(std::ffi::OsStr::from_bytes(b"-x \xff"));
    assert!(repository.git.write_blob(hostile, Vec::new()).is_ok());
    assert_eq!(repository.git.config("user.name").unwrap().as_deref(), Some("Ann"));
    assert_eq!(repository.git.config("user.none").unwrap(), None);
    assert!(!repository.git.config_is_true("commit.gpgsign").unwrap());
}

#[test]
fn a_file_is_checked_out_until_another_program_writes_it() {
    let repository = Repository::new();
    repository.write(".gitattributes", "*.md text eol=crlf\n");
    for (path, text) in [("a.md", "a\r\n"), ("b.md", "b\r\n"), ("empty.md", "")] {
        repository.write(path, text);
    }
    repository.commit("Files");
    repository.write("new.md", "new\r\n");
    let is =
        |path: &str, text: &str| repository.git.is_checked_out(Path::new(path), text.as_bytes()).unwrap();
    assert!(is("a.md", "a\r\n") && is("b.md", "b\r\n"));
    assert!(!is("a.md", "b\r\n"), "another content");
    assert!(!is("empty.md", ""), "empty");
    assert!(!is("new.md", "new\r\n"), "not in the index");
    assert!(!is("none.md", "a\r\n"), "no such file");
    // Another program has written the same content, perhaps as the beginning of a longer one.
    let file = std::fs::File::options().write(true).open(repository.git.root.join("a.md")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1)).unwrap();
    assert!(!is("a.md", "a\r\n") && is("b.md", "b\r\n"));
    repository.run(&["update-index", "--assume-unchanged", "b.md"]);
    assert!(!is("b.md", "b"), "another content of a file that git does not check");
}

fn raw(entry: &LogEntry) -> Vec<u8> {
    let parents: Vec<_> = entry.parents.iter().map(Oid::as_str).collect();
    let (at, made) = (entry.authored_at.to_string(), entry.committed_at.to_string());
    let fields =
        [entry.commit.as_str(), &parents.join(" "), &entry.author, &entry.email, &at, &made, &entry.subject];
    let mut bytes = b"\x01".to_vec();
    fields.iter().for_each(|it| bytes.extend([it.as_bytes(), b"\0"].concat()));
    bytes.extend(if entry.changes.is_empty() { &b""[..] } else { b"\n" });
    for change in &entry.changes {
        let RawChange { old_mode, new_mode, old, new, status, path } = change;
        let line = format!(":{old_mode:06o} {new_mode:06o} {old} {new} {}\0", char::from(*status));
        bytes.extend([line.as_bytes(), path, b"\0"].concat());
    }
    bytes
}

fn oids() -> impl Strategy<Value = Oid> {
    "[0-9a-f]{40}|[0-9a-f]{64}".prop_map(|it| Oid::read(it.as_bytes()).unwrap())
}

fn changes() -> impl Strategy<Value = RawChange> {
    let modes = prop_oneof![Just(0), Just(0o100_644), Just(0o120_000)];
    let path = prop::collection::vec(1_u8.., 1..20);
    (modes.clone(), modes, oids(), oids(), prop::sample::select(b"ADMTU".to_vec()), path).prop_map(
        |(old_mode, new_mode, old, new, status, path)| RawChange {
            old_mode,
            new_mode,
            old,
            new,
            status,
            path,
        },
    )
}

fn entries() -> impl Strategy<Value = LogEntry> {
    let text = "[^\0\n]{0,20}";
    let lists = (prop::collection::vec(oids(), 0..3), prop::collection::vec(changes(), 0..4));
    (oids(), lists, text, text, any::<i64>(), any::<i64>(), text).prop_map(
        |(commit, (parents, changes), author, email, authored_at, committed_at, subject)| LogEntry {
            commit,
            parents,
            author,
            email,
            authored_at,
            committed_at,
            subject,
            changes,
        },
    )
}

proptest! {
    #[test]
    fn what_git_prints_is_read_back(entries in prop::collection::vec(entries(), 0..5)) {
        let bytes: Vec<u8> = entries.iter().flat_map(raw).collect();
        let read: Result<Vec<_>, _> = LogReader::new(&bytes[..]).collect();
        prop_assert_eq!(read.unwrap(), entries);
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        drop(LogReader::new(&bytes[..]).collect::<Vec<_>>());
        drop(LogReader::new(&[b"\x01", &bytes[..]].concat()[..]).collect::<Vec<_>>());
        drop((read_branches(&bytes), read_tree_entries(&bytes), read_index_entries(&bytes), read_info(&bytes)));
        drop(read_status(&bytes));
        prop_assert!(Version::read(&String::from_utf8_lossy(&bytes)).is_none());
    }
}

#[test]
fn an_error_names_the_subcommand_that_printed_the_bytes() {
    let read =
        [read_changes(b"x").map(drop), LogReader::new(&b"x"[..]).collect::<Result<Vec<_>, _>>().map(drop)];
    let said = read.map(|it| it.unwrap_err().to_string());
    assert!(said[0].contains("git diff") && said[1].contains("git log"), "{said:?}");
}
