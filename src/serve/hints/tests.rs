#![expect(clippy::disallowed_methods, reason = "tests read the sources that hints are written in")]

use std::path::{Path, PathBuf};

use super::*;
use crate::serve::mcp::{COMPAT_WORDS, tool_names};

fn sources(below: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(below).unwrap().map(|it| it.unwrap().path());
    let (directories, files): (Vec<_>, Vec<_>) = entries.partition(|it| it.is_dir());
    let files = files.into_iter().filter(|it| it.extension().is_some_and(|it| it == "rs"));
    files.chain(directories.iter().flat_map(|it| sources(it))).collect()
}

/// Returns the string literals of a source file, with continued lines joined.
fn texts(source: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '/']) {
        let is_comment = rest[at..].starts_with("//");
        let is_char = rest[..at].ends_with('\'') && rest[at..].starts_with("\"'");
        let begin = &rest[at + 1..];
        if is_comment {
            rest = begin.split_once('\n').map_or("", |it| it.1);
        } else if is_char || rest[at..].starts_with('/') {
            rest = begin;
        } else {
            let mut end = 0;
            while !begin[end..].starts_with('"') {
                let width = if begin[end..].starts_with('\\') { 2 } else { 1 };
                end = (end + width..).find(|it| begin.is_char_boundary(*it)).unwrap();
            }
            let lines = begin[..end].split("\\\n").enumerate();
            texts.push(lines.map(|(nth, it)| if nth == 0 { it } else { it.trim_start() }).collect());
            rest = &begin[end + 1..];
        }
    }
    texts
}

/// Returns the string literals of the lower layers. They include all hints, which still contain their placeholders.
fn all_texts() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let layers = ["api", "store", "ops", "plan", "disk", "index", "text"].map(|it| sources(&root.join(it)));
    let sources = layers.iter().flatten().map(|it| std::fs::read_to_string(it).unwrap());
    sources.flat_map(|it| texts(it.split("#[cfg(test)]\nmod").next().unwrap())).collect()
}

/// Returns the names of the binary's command files, most of which are named after verbs. Adds some verbs that have no file
/// of their own name.
fn verbs() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin/planwatch/commands");
    let names = sources(&root).into_iter().map(|it| it.file_stem().unwrap().to_string_lossy().into_owned());
    names.chain(["done", "decide", "insight", "recall"].map(str::to_owned)).collect()
}

/// Each verb has recorded commands in a directory of its name.
#[test]
fn the_list_of_verbs_has_all_of_them() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let verbs = std::fs::read_dir(cases).unwrap().map(|it| it.unwrap().path()).filter(|it| it.is_dir());
    let verbs: Vec<_> = verbs.map(|it| it.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert!(verbs.len() > 40, "{verbs:?}");
    let missing: Vec<_> = verbs.iter().filter(|it| !VERBS.contains(&format!(" {it} "))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[track_caller]
fn check(hint: &str, verbs: &[String]) {
    let option = hint.split([' ', '`', '(', '\'']).find(|it| {
        it.strip_prefix("--").is_some_and(|it| it.starts_with(|it: char| it.is_ascii_lowercase()))
    });
    assert_eq!(option, None, "{hint}");
    let command = hint.split("planwatch ").skip(1).find(|it| {
        let word = it.split(|it: char| !it.is_ascii_alphanumeric()).next().unwrap();
        verbs.iter().any(|verb| verb == word)
    });
    assert_eq!(command, None, "{hint}");
}

#[test]
fn no_hint_of_the_layers_below_names_a_command_or_option_on_another_surface() {
    let (texts, verbs) = (all_texts(), verbs());
    let is_hint = |it: &&String| is_of_command_line(it);
    assert!(texts.iter().filter(is_hint).count() > 100, "the hints are found");
    for text in &texts {
        for surface in [Surface::Tools, Surface::Routes] {
            if let Some(hint) = for_surface(text, surface) {
                check(&hint, &verbs);
            }
        }
    }
}

#[test]
fn every_phrase_that_is_translated_occurs_in_a_hint() {
    let texts = all_texts();
    for (phrase, ..) in PHRASES {
        assert!(texts.iter().any(|it| it.contains(phrase)), "{phrase}");
    }
}

#[test]
fn every_phrase_that_the_compat_set_replaces_occurs_in_a_hint() {
    let serve = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/serve");
    let tools = sources(&serve.join("mcp"));
    let is_own = |it: &&PathBuf| !it.ends_with("compat.rs") && !it.ends_with("tests.rs");
    let tables = serve.join("hints.rs");
    let files = tools.iter().filter(is_own).chain([&tables]);
    let translated = all_texts().into_iter().filter_map(|it| for_surface(&it, Surface::Tools));
    let hints: Vec<_> = files.map(|it| std::fs::read_to_string(it).unwrap()).chain(translated).collect();
    for (phrase, _) in COMPAT_WORDS {
        assert!(hints.iter().any(|it| it.contains(phrase)), "{phrase}");
    }
}

#[test]
fn no_hint_names_a_tool_that_the_set_lacks() {
    let all = tool_names(None);
    for set in ["all", "executor", "compat", "read-only"] {
        let own = tool_names(Some(set));
        for text in all_texts() {
            let hint = for_surface(&text, Surface::Tools);
            let hint = hint.and_then(|it| with_tools(&it, &all, |name| own.contains(&name)));
            for word in hint.iter().flat_map(|it| it.split(|c: char| !c.is_alphanumeric() && c != '_')) {
                let is_missing = word.contains('_') && all.contains(&word) && !own.contains(&word);
                assert!(!is_missing, "{set}: {hint:?}");
            }
        }
    }
}

#[test]
fn hints_are_translated_or_left_out() {
    for (hint, tools, routes) in [
        (
            "`planwatch reopen 'unique plan'` makes it active again",
            Some("update_plan `unique plan` with status `active` makes it active again"),
            Some("`POST /api/plans/unique%20plan/reopen` makes it active again"),
        ),
        (
            "finish or skip them, or use --force",
            Some("finish or skip them, or give `force`"),
            Some("finish or skip them, or send `force` to the route of the verb"),
        ),
        (
            "--after 2 inserts it after that step",
            Some("after_step 2 inserts it after that step"),
            Some("`after` 2 inserts it after that step"),
        ),
        ("--from FILE reads the conversation from a file, --from - from standard input", None, None),
        (
            "planwatch next 'a, b; c'",
            Some("claim_next_step `a, b; c`"),
            Some("POST /api/plans/a%2C%20b%3B%20c/claim"),
        ),
        (
            "`planwatch show auth:2` shows the claim; --force takes it over, which is recorded",
            Some("get_step `auth:2` shows the claim"),
            Some("`GET /api/show/auth:2` shows the claim; `force` takes it over, which is recorded"),
        ),
        (
            "read the command, then trust it with `planwatch trust build --trust-hash 1f`",
            Some("read the command, a person has to trust it at a terminal"),
            Some("read the command, a person has to trust it at a terminal"),
        ),
        (
            "a person types `planwatch confirm auth:2`; --force overrides this, which is recorded",
            Some("confirm_gate asks the person"),
            Some("a person has to confirm it at a terminal"),
        ),
        (
            "tags+=ITEM adds one, tags-=ITEM takes one out, --yaml sets all",
            Some("tags is given whole, as a list"),
            Some("tags is sent whole with `yaml`, or changed with `add` and `take`"),
        ),
        (
            "use --yes to remove it; `planwatch remove auth --yes` moves it below _archive/",
            Some("delete_plan asks the person before it removes the plan"),
            Some("send `yes` to remove it"),
        ),
        (
            "the plan's steps are 1, 2, 3",
            Some("the plan's steps are 1, 2, 3"),
            Some("the plan's steps are 1, 2, 3"),
        ),
    ] {
        assert_eq!(for_surface(hint, Surface::Tools).as_deref(), tools, "{hint}");
        assert_eq!(for_surface(hint, Surface::Routes).as_deref(), routes, "{hint}");
    }
}
