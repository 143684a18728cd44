#![expect(clippy::disallowed_methods, reason = "tests make and read their own files")]

use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;
use crate::api::config::Config;
use crate::disk::RealDisk;

struct Place {
    top: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        // Hundreds of small files are written and synced, which is fast in memory.
        let top = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        std::fs::create_dir_all(top.path().join("shop/.git")).unwrap();
        Self { top }
    }

    fn root(&self) -> PathBuf {
        self.top.path().canonicalize().unwrap().join("shop")
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        make_older(&path);
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.root().join(path)).unwrap()
    }

    fn init(&self, agents: &[Agent], is_undo: bool) -> Result<InitReport, Error> {
        self.run(&InitRequest { agents: agents.to_vec(), is_undo, ..InitRequest::default() })
    }

    fn run(&self, request: &InitRequest) -> Result<InitReport, Error> {
        let root = self.root();
        let files = self.tree().into_iter().filter(|it| it.1.as_ref().is_some_and(Vec::is_empty));
        files.for_each(|it| make_older(&it.0));
        let plans = root.join("plans");
        let workspace = Workspace {
            plans_dir: plans.is_dir().then(|| plans.clone()),
            would_be: plans,
            repository: Some(root.clone()),
            config: Config::default(),
            problems: Vec::new(),
        };
        let state_home = Some(self.top.path().join("state"));
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let disk = Arc::new(RealDisk);
        init(&Around { disk, workspace: &workspace, root, state_home, now, on_notice: &|_| {} }, request)
    }

    /// Everything in the project except displaced versions: files with their bytes, directories and links.
    fn tree(&self) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        let entries = walkdir::WalkDir::new(self.root()).sort_by_file_name().into_iter();
        let entries = entries.filter_entry(|it| it.file_name() != ".planwatch-init").map(Result::unwrap);
        let bytes =
            |it: &walkdir::DirEntry| it.file_type().is_file().then(|| std::fs::read(it.path()).unwrap());
        entries.map(|it| (it.path().to_path_buf(), bytes(&it))).collect()
    }
}

/// Gives a file an old modification time. An empty file that was just modified counts as half saved, even if it was `--undo`
/// that emptied it.
fn make_older(path: &Path) {
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    std::fs::File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
}

#[track_caller]
fn said(report: &InitReport) -> Vec<(&str, Did)> {
    report.files.iter().map(|it| (it.path.as_str(), it.did)).collect()
}

#[test]
fn each_agent_gets_its_files_and_loses_them_again() {
    for agent in AGENTS {
        let place = Place::new();
        let before = place.tree();
        let report = place.init(&[agent], false).unwrap();
        assert!(report.files.len() >= 4 && report.files.iter().all(|it| it.did == Did::Made), "{report:?}");
        let made = place.tree();
        let again = place.init(&[agent], false).unwrap();
        assert!(again.files.iter().all(|it| it.did == Did::Nothing) && !again.is_change(), "{again:?}");
        assert_eq!((place.tree(), again.diff), (made, String::new()));
        let undone = place.init(&[agent], true).unwrap();
        assert!(undone.files.iter().all(|it| it.did == Did::Removed), "{undone:?}");
        assert_eq!(place.tree(), before, "{}", agent.word());
    }
}

#[test]
fn each_editor_gets_its_settings_and_loses_them_again() {
    for (editor, own) in EDITORS.into_iter().flat_map(|it| [(it, None), (it, Some(()))]) {
        let place = Place::new();
        if own.is_some() {
            // The user's own settings, in the format of the file.
            let text =
                if editor.path().ends_with(".json") { "{\r\n  \"a\": 1\r\n}" } else { "# own\r\nx = 1" };
            place.write(editor.path(), text);
        }
        let before = place.tree();
        let ask = |is_undo: bool| {
            place.run(&InitRequest { editors: vec![editor], is_undo, ..InitRequest::default() }).unwrap()
        };
        let report = ask(false);
        assert_eq!(report.files.len(), 1, "{report:?}");
        assert!(report.plans.is_none() && report.is_change() && report.begin.len() == 1, "{report:?}");
        assert!(place.text(editor.path()).contains("planwatch"), "{}", editor.word());
        assert!(!ask(false).is_change(), "{}", editor.word());
        let undone = ask(true);
        assert!(undone.is_change());
        assert_eq!(place.tree(), before, "{}", editor.word());
        ask(false);
        place.init(&[], true).unwrap();
        assert_eq!(place.tree(), before, "{}: undone with everything", editor.word());
    }
}

#[test]
fn directories_that_were_there_stay() {
    let place = Place::new();
    for directory in [".claude", ".gemini/commands", ".cursor"] {
        std::fs::create_dir_all(place.root().join(directory)).unwrap();
    }
    let before = place.tree();
    place.init(&AGENTS, false).unwrap();
    place.init(&[Agent::Gemini], true).unwrap();
    place.init(&[], true).unwrap();
    assert_eq!(place.tree(), before);
}

#[test]
fn the_plans_directory_is_removed_only_if_init_made_it_and_it_is_empty() {
    let place = Place::new();
    let before = place.tree();
    assert_eq!(place.init(&[], false).unwrap().plans.unwrap().did, Did::Made);
    assert_eq!(place.init(&[], false).unwrap().plans.unwrap().did, Did::Nothing);
    assert_eq!(place.init(&[], true).unwrap().plans.unwrap().did, Did::Removed);
    assert_eq!(place.tree(), before);
    place.init(&[], false).unwrap();
    place.write("plans/auth/plan.md", "# Auth\n");
    assert_eq!(place.init(&[], true).unwrap().plans.unwrap().did, Did::Kept);
    assert_eq!(place.text("plans/auth/plan.md"), "# Auth\n");
    let place = Place::new();
    std::fs::create_dir(place.root().join("plans")).unwrap();
    place.init(&[], false).unwrap();
    assert!(place.init(&[], true).unwrap().plans.is_none() && place.root().join("plans").is_dir());
}

#[test]
fn two_agents_share_a_file_until_the_last_one_goes() {
    let place = Place::new();
    place.write("AGENTS.md", "# Shop\n");
    place.init(&[Agent::Codex], false).unwrap();
    place.init(&[Agent::Cursor], false).unwrap();
    assert!(place.text("AGENTS.md").contains("<!-- planwatch:begin codex cursor "));
    place.init(&[Agent::Codex], true).unwrap();
    assert!(place.text("AGENTS.md").contains("<!-- planwatch:begin cursor "));
    place.init(&[Agent::Cursor], true).unwrap();
    assert_eq!(place.text("AGENTS.md"), "# Shop\n");
    symlink("AGENTS.md", place.root().join("CLAUDE.md")).unwrap();
    let before = place.tree();
    let report = place.init(&AGENTS, false).unwrap();
    assert_eq!(
        report.files.iter().filter(|it| it.path.ends_with(".md") && !it.path.contains('/')).count(),
        2
    );
    assert_eq!(place.text("AGENTS.md").matches("planwatch:begin claude codex cursor ").count(), 1);
    place.init(&[], true).unwrap();
    assert_eq!(place.tree(), before);
}

#[test]
fn a_link_that_an_editor_replaces_after_the_file_was_read_is_not_followed() {
    let place = Place::new();
    place.write("AGENTS.md", "# Shop\n");
    symlink("AGENTS.md", place.root().join("CLAUDE.md")).unwrap();
    let state = place.top.path().join("state");
    let project = Project::open(Arc::new(RealDisk), &place.root(), Some(&state), None).unwrap();
    let mut files = Files::new(&project);
    files.write_block("CLAUDE.md", Agent::Claude).unwrap();
    let ops = files.into_all().iter().filter_map(operation).collect();
    place.write("new", "# Shop\n");
    std::fs::rename(place.root().join("new"), place.root().join("CLAUDE.md")).unwrap();
    project.write(("init", "now"), ops, &mut || {}, &mut ProjectReport::default()).unwrap();
    assert_eq!(place.text("AGENTS.md"), "# Shop\n");
    assert!(place.text("CLAUDE.md").starts_with("# Shop\n\n<!-- planwatch:begin claude "));
}

#[test]
fn files_that_a_user_changed_are_kept_and_reported() {
    let place = Place::new();
    place.init(&[Agent::Claude], false).unwrap();
    let skill = ".claude/skills/ps-plan/SKILL.md";
    place.write(skill, place.text(skill) + "Mine.\n");
    place.write("CLAUDE.md", place.text("CLAUDE.md").replace("Claim", "Always claim"));
    place.write(".mcp.json", "{\"mcpServers\": {\"planwatch\": {\"command\": \"/opt/planwatch\"}}}");
    let before = place.tree();
    for is_undo in [false, true] {
        let report = place.init(&[Agent::Claude], is_undo).unwrap();
        let kept: Vec<_> =
            report.files.iter().filter(|it| it.did == Did::Kept).map(|it| it.path.as_str()).collect();
        assert_eq!(kept, [skill, "CLAUDE.md", ".mcp.json"], "{is_undo}");
        assert!(report.files.iter().all(|it| (it.did == Did::Kept) == it.why.is_some()));
        if !is_undo {
            assert_eq!(place.tree(), before);
        }
    }
    assert!(!place.root().join(".claude/skills/ps-plans").exists());
}

#[test]
fn an_older_release_s_files_are_brought_up_to_date() {
    let place = Place::new();
    place.init(&[Agent::Claude], false).unwrap();
    let skill = ".claude/skills/ps-plan/SKILL.md";
    let old = place.text(skill);
    let seal =
        crate::text::seal::sealed("---\nname: ps-plan\nmetadata:\n  seal: \"\"\n---\nAs it was once.\n");
    place.write(skill, seal);
    place.write("CLAUDE.md", crate::text::marked_block::put(Some("a\n"), &["claude"], "As it was once.\n"));
    let report = place.init(&[Agent::Claude], false).unwrap();
    assert_eq!(said(&report).iter().filter(|(_, did)| *did == Did::Changed).count(), 2);
    assert!(place.text(skill) == old && place.text("CLAUDE.md").contains(BLOCK));
    place.init(&[], true).unwrap();
    assert_eq!(place.text("CLAUDE.md"), "a\n");
}

#[test]
fn nothing_is_written_if_one_file_is_refused() {
    let table: [(&str, &[u8], u32, u32); 3] = [
        (".mcp.json", b"{\n  // ours\n}\n", 2, 3),
        ("CLAUDE.md", b"a\n<!-- planwatch:begin claude x -->\n", 2, 1),
        ("CLAUDE.md", b"a\n b\xff", 2, 3),
    ];
    for (refused, bytes, expected_line, expected_column) in table {
        let place = Place::new();
        place.write(refused, bytes);
        let before = place.tree();
        let error = place.init(&[Agent::Claude], false).unwrap_err();
        let Error::Edit { path, line, column, .. } = &error else { panic!("{error:?}") };
        assert_eq!((path.as_str(), *line, *column), (refused, expected_line, expected_column));
        assert_eq!((place.tree(), error.exit_code()), (before, 6));
    }
    let place = Place::new();
    std::fs::write(place.top.path().join("elsewhere"), "x").unwrap();
    symlink("../elsewhere", place.root().join("CLAUDE.md")).unwrap();
    let before = place.tree();
    assert_eq!(place.init(&[Agent::Claude], false).unwrap_err().code(), "not-a-file");
    assert_eq!(place.tree(), before);
}

#[test]
fn a_dry_run_writes_nothing_and_shows_the_same() {
    let place = Place::new();
    place.write("CLAUDE.md", "# Shop\n");
    let before = place.tree();
    let request = InitRequest { agents: vec![Agent::Claude], mode: Mode::DryRun, ..InitRequest::default() };
    let dry = place.run(&request).unwrap();
    assert_eq!(place.tree(), before);
    let real = place.init(&[Agent::Claude], false).unwrap();
    assert_eq!((said(&dry), &dry.diff), (said(&real), &real.diff));
    assert!(dry.diff.contains("+++ b/.mcp.json") && dry.diff.contains(" # Shop\n"), "{}", dry.diff);
}

/// The text of any file of instructions, or `None` for a missing file.
fn any_text() -> impl Strategy<Value = Option<String>> {
    prop::option::of("\u{feff}?([a-z#<>!` -]{0,6}(\r\n|\n)){0,4}[a-z]{0,3}")
}

/// The text of a settings file with other servers, in various layouts, or `None` for a missing file.
fn any_settings() -> impl Strategy<Value = Option<String>> {
    let server = "[a-o]{1,3}".prop_map(|it| format!("\"{it}\": {{\"command\": \"{it}\"}}"));
    let servers = (prop::collection::vec(server, 0..2), "(\r?\n)? {0,4}", any::<bool>());
    prop::option::of(servers.prop_map(|(servers, blank, is_named)| {
        let servers: String = servers.iter().map(|it| format!("{blank}{it}")).collect::<Vec<_>>().join(",");
        let named = format!("{blank}\"mcpServers\":{blank}{{{servers}{blank}}}{blank}");
        format!("{{{}}}{blank}", if is_named { named } else { format!("{blank}\"theme\": 1{blank}") })
    }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// `init` and then `init --undo`, for agents in any order, leave a project as it was. This must hold for any files that
    /// the project has.
    #[test]
    fn init_and_undo_is_nothing(
        texts in [any_text(), any_text(), any_text()],
        settings in [any_settings(), any_settings(), any_settings()],
        order in Just(AGENTS.to_vec()).prop_shuffle(),
        undone in Just(AGENTS.to_vec()).prop_shuffle(),
        n in 1_usize..5,
    ) {
        let place = Place::new();
        let named = ["CLAUDE.md", "AGENTS.md", "GEMINI.md", ".mcp.json", ".cursor/mcp.json", ".gemini/settings.json"];
        for (path, text) in named.iter().zip(texts.iter().chain(&settings)) {
            if let Some(text) = text {
                place.write(path, text);
            }
        }
        let before = place.tree();
        for agent in &order[..n] {
            place.init(&[*agent], false).unwrap();
        }
        let made = place.tree();
        prop_assert!(made != before);
        place.init(&order[..n], false).unwrap();
        prop_assert_eq!(place.tree(), made);
        for agent in &undone {
            place.init(&[*agent], true).unwrap();
        }
        prop_assert_eq!(place.tree(), before);
    }
}
