//! Which modules may import which: the layers, the verbs, the parts of `serve`, and import cycles.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::support::{read, root};

use super::{LAYERS, files, shown};

/// A path within the crate, as `["store", "load", "all"]`.
type Name = Vec<String>;

/// Verbs that are composed of other verbs. The list may only shrink: an unused entry is an error.
const COMPOSED: &[(&str, &str)] = &[
    ("claim", "next"),
    ("completion", "list"),
    ("completion", "script"),
    ("completion", "set"),
    ("completion", "template"),
    ("create", "template"),
    ("draft", "replace"),
    ("export", "run"),
    ("export", "show"),
    ("git_resolve", "archive"),
    ("hook", "status"),
    ("import", "decide"),
    ("init", "skills"),
    ("run", "claim"),
    ("show", "decide"),
    ("show", "insight"),
    ("template", "create"),
    ("upsert", "add"),
];

/// The number of files in the largest import cycle of each directory. This number may only be lowered. A cycle that is
/// smaller than its entry is an error, too, so that the entry is lowered.
///
/// Paths with `crate::` and `super::` count; `mod` lines do not. The limit of a directory without an entry is 5.
const CYCLES: &[(&str, usize)] = &[("src/serve/daemon", 0)];

/// The largest cycle that needs no entry.
const CYCLE_LIMIT: usize = 5;

/// The path of a file's module: `src/a/b.rs` and `src/a/b/mod.rs` are both `a::b`.
fn module(name: &str) -> Name {
    let inside = name.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
    inside.split('/').filter(|it| *it != "lib").map(str::to_owned).collect()
}

/// The code of a file, and its inline unit tests.
fn parts(source: &str) -> (&str, &str) {
    source.split_at(source.find("\n#[cfg(test)]\nmod ").unwrap_or(source.len()))
}

/// All paths with `crate::` and `super::` in a text, including its documentation. `parent` is the module of `super`.
fn names(text: &str, parent: &[String]) -> Vec<Name> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        group(&text[at + "crate::".len()..], &[], &mut found);
    }
    for (at, word) in text.match_indices("super::") {
        // A sequence of `super::` is read at its first one.
        if text[..at].ends_with("super::") {
            continue;
        }
        let mut rest = &text[at + word.len()..];
        let mut base = parent;
        while let Some(further) = rest.strip_prefix("super::") {
            (rest, base) = (further, &base[..base.len().saturating_sub(1)]);
        }
        group(rest, base, &mut found);
    }
    found
}

/// Reads one path or one group of paths, and returns the text after it.
fn group<'a>(text: &'a str, before: &[String], found: &mut Vec<Name>) -> &'a str {
    let mut path = before.to_vec();
    let mut rest = text;
    loop {
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if word > 0 {
            path.push(rest[..word].to_owned());
            rest = &rest[word..];
        }
        if let Some(further) = rest.strip_prefix("::") {
            rest = further;
            continue;
        }
        let Some(mut inner) = rest.strip_prefix('{').filter(|_| word == 0) else {
            found.push(path);
            return rest;
        };
        loop {
            inner = inner.trim_start_matches([' ', '\n', '\t', ',']);
            if let Some(after) = inner.strip_prefix('}') {
                return after;
            }
            let after = group(inner, &path, found);
            // Skips `as name`, `*` and everything else between two names.
            let skipped = after.find([',', '}']).unwrap_or(after.len());
            if after.is_empty() || skipped == after.len() {
                return "";
            }
            inner = &after[skipped..];
        }
    }
}

/// The paths in a file's code, and those in its inline tests.
fn named(name: &str, source: &str) -> (Vec<Name>, Vec<Name>) {
    let own = module(name);
    let (code, tests) = parts(source);
    (names(code, &own[..own.len().saturating_sub(1)]), names(tests, &own))
}

fn layer(name: &[String]) -> Option<usize> {
    LAYERS.iter().position(|it| name.first().is_some_and(|first| first == it))
}

/// Paths that a file must not use, because they are in a higher layer.
fn upward(name: &str, source: &str) -> Vec<String> {
    let Some(own) = layer(&module(name)) else { return Vec::new() };
    let (code, tests) = named(name, source);
    let higher = code.into_iter().chain(tests).filter(|it| layer(it).is_some_and(|it| it > own));
    higher.map(|it| format!("{name} is in the layer {}, but names {}", LAYERS[own], it.join("::"))).collect()
}

fn begins(name: &[String], with: &[&str]) -> bool {
    name.len() >= with.len() && name.iter().zip(with).all(|(a, b)| a == b)
}

/// The paths in a part of `serve` that lead to a part that it must not use.
fn forbidden_in_serve(name: &str, source: &str) -> Vec<String> {
    let forbidden: [(&[&str], &[&str]); 3] = [
        (&["serve", "ipc"], &["serve", "daemon"]),
        (&["serve", "mcp"], &["serve", "http"]),
        (&["serve", "http"], &["serve", "web"]),
    ];
    let own = module(name);
    let (code, tests) = named(name, source);
    let all: Vec<_> = code.into_iter().chain(tests).collect();
    let forbidden = forbidden.iter().filter(|(part, _)| begins(&own, part));
    let broken = forbidden.flat_map(|(_, never)| all.iter().filter(|it| begins(it, never)));
    broken.map(|it| format!("{name} names {}", it.join("::"))).collect()
}

/// The verb to which a path belongs.
fn verb(name: &[String], verbs: &BTreeSet<String>) -> Option<String> {
    name.get(1).filter(|it| name[0] == "ops" && verbs.contains(*it)).cloned()
}

/// The other verbs that a verb's code imports. Unit tests may use other verbs to prepare data.
fn borrowed(name: &str, source: &str, verbs: &BTreeSet<String>) -> Vec<(String, String)> {
    let is_test = name.contains("/tests");
    let Some(own) = verb(&module(name), verbs).filter(|_| !is_test) else { return Vec::new() };
    let of = named(name, source).0.into_iter().filter_map(|it| verb(&it, verbs));
    of.filter(|it| *it != own).map(|it| (own.clone(), it)).collect()
}

fn verbs() -> BTreeSet<String> {
    let of = files("src/ops", ".rs").into_iter().filter_map(|it| module(&shown(&it)).get(1).cloned());
    of.filter(|it| it != "tests").collect()
}

fn sources() -> Vec<(String, String)> {
    files("src", ".rs")
        .iter()
        .map(|it| (shown(it), read(it)))
        .filter(|it| !it.0.starts_with("src/bin"))
        .collect()
}

#[track_caller]
fn assert_none(broken: &[String]) {
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn imports_only_go_down() {
    let broken: Vec<_> = sources().iter().flat_map(|(name, source)| upward(name, source)).collect();
    assert_none(&broken);
}

#[test]
fn parts_of_serve_do_not_import_forbidden_parts() {
    let broken: Vec<_> =
        sources().iter().flat_map(|(name, source)| forbidden_in_serve(name, source)).collect();
    assert_none(&broken);
}

#[test]
fn verbs_do_not_import_verbs() {
    let verbs = verbs();
    let found: BTreeSet<_> =
        sources().iter().flat_map(|(name, source)| borrowed(name, source, &verbs)).collect();
    let allowed = COMPOSED.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    assert_none(&differences(&found, &allowed));
}

/// The imports without an exception, and the unused exceptions.
fn differences(found: &BTreeSet<(String, String)>, allowed: &BTreeSet<(String, String)>) -> Vec<String> {
    let new = found.difference(allowed).map(|(a, b)| format!("the verb `{a}` imports the verb `{b}`"));
    let old = allowed.difference(found);
    new.chain(old.map(|(a, b)| format!("the exception ({a}, {b}) is no longer needed"))).collect()
}

type Graph = BTreeMap<String, BTreeSet<String>>;

/// The files that each file imports, without tests.
fn graph(sources: &[(String, String)]) -> Graph {
    let is_test = |name: &str| name.contains("/tests") || name.contains("/model/");
    let files: BTreeMap<_, _> = sources.iter().map(|(name, _)| (module(name), name.clone())).collect();
    let file = |mut name: Name| {
        while !name.is_empty() && !files.contains_key(&name) {
            name.pop();
        }
        files.get(&name).filter(|it| *it != "src/lib.rs").cloned()
    };
    let sources = sources.iter().filter(|(name, _)| !is_test(name));
    sources
        .map(|(name, source)| {
            let code: Vec<_> =
                parts(source).0.lines().map(|it| it.split("//").next().unwrap_or_default()).collect();
            let of = named(name, &code.join("\n")).0.into_iter().filter_map(file);
            (name.clone(), of.filter(|it| it != name).collect())
        })
        .collect()
}

/// The files that a file imports directly or indirectly.
fn reached<'a>(graph: &'a Graph, from: &'a str) -> BTreeSet<&'a str> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        for next in graph.get(file).into_iter().flatten() {
            if seen.insert(next.as_str()) {
                open.push(next);
            }
        }
    }
    seen
}

/// The import cycles: sets of files that all import each other, directly or indirectly.
fn cycles(graph: &Graph) -> BTreeSet<Vec<&str>> {
    let all: BTreeMap<_, _> = graph.keys().map(|it| (it.as_str(), reached(graph, it))).collect();
    let cycle = |file: &str| -> Vec<&str> {
        all[file].iter().copied().filter(|it| all.get(it).is_some_and(|back| back.contains(file))).collect()
    };
    graph.keys().map(|it| cycle(it)).filter(|it| it.len() > 1).collect()
}

/// The directory that contains all files of a cycle.
fn folder(cycle: &[&str]) -> String {
    let common = |a: &Path, b: &str| {
        let both = a.components().zip(Path::new(b).components()).take_while(|(a, b)| a == b);
        both.map(|it| it.0).collect::<std::path::PathBuf>()
    };
    let first = Path::new(cycle[0]).parent().unwrap_or(Path::new("")).to_path_buf();
    cycle.iter().fold(first, |it, file| common(&it, file)).display().to_string()
}

/// The cycles that are larger than their limit, and the limits that are too high.
fn grown(cycles: &BTreeSet<Vec<&str>>, limits: &[(&str, usize)]) -> Vec<String> {
    let mut largest: BTreeMap<String, &Vec<&str>> = BTreeMap::new();
    for cycle in cycles {
        let entry = largest.entry(folder(cycle)).or_insert(cycle);
        if cycle.len() > entry.len() {
            *entry = cycle;
        }
    }
    let limit = |of: &str| limits.iter().find(|it| it.0 == of).map_or(CYCLE_LIMIT, |it| it.1);
    let len = |of: &str| largest.get(of).map_or(0, |it| it.len());
    let new = largest.iter().filter(|(of, cycle)| cycle.len() > limit(of));
    let new = new.map(|(of, it)| format!("{} files of {of} import each other: {}", it.len(), it.join(" ")));
    let old = limits.iter().filter(|(of, limit)| len(of) < *limit);
    new.chain(old.map(|(of, limit)| format!("the cycle of {of} has {} files, not {limit}", len(of))))
        .collect()
}

#[test]
fn import_cycles_do_not_grow() {
    assert!(root().join("src/lib.rs").is_file());
    let graph = graph(&sources());
    assert_none(&grown(&cycles(&graph), CYCLES));
}

// The tests below show that each rule finds a violation.

fn paths(text: &str) -> Vec<String> {
    let parent: Name = vec!["ops".to_owned(), "run".to_owned()];
    names(text, &parent).into_iter().map(|it| it.join("::")).collect()
}

#[test]
fn every_form_of_a_path_is_read() {
    assert_eq!(paths("use crate::serve::daemon::api;"), ["serve::daemon::api"]);
    assert_eq!(paths("use crate::{a::{b, c}, d};"), ["a::b", "a::c", "d"]);
    assert_eq!(
        paths("use crate::{\n    a::{self, b::{c as x, *}, e},\n    d::f,\n};\nuse crate::g;"),
        ["a::self", "a::b::c", "a::b", "a::e", "d::f", "g"]
    );
    assert_eq!(paths("fn f() { crate::disk::x(1) }"), ["disk::x"]);
    assert_eq!(
        paths("/// See [`crate::serve::http`] and [`super::claim`]."),
        ["serve::http", "ops::run::claim"]
    );
    assert_eq!(paths("use super::super::list::{read, words};"), ["ops::list::read", "ops::list::words"]);
    assert_eq!(paths("use std::fs; use serde::{a, b};"), [""; 0]);
}

#[test]
fn an_upward_import_is_found() {
    let found = |source: &str| upward("src/store/load/scan.rs", source);
    let expected = |of: &str| [format!("src/store/load/scan.rs is in the layer store, but names {of}")];
    assert_eq!(found("use crate::{disk::{a, b}, ops::list};"), expected("ops::list"));
    assert_eq!(found("/// As [`crate::serve::http`] does."), expected("serve::http"));
    assert_eq!(found("use super::super::super::ops::list;"), expected("ops::list"));
    assert_eq!(found("x\n#[cfg(test)]\nmod tests {\n    use crate::ops::add;\n}"), expected("ops::add"));
    assert_eq!(found("use crate::{disk, api::context};\nuse super::state;"), [""; 0]);
}

#[test]
fn a_forbidden_import_within_serve_is_found() {
    let found =
        forbidden_in_serve("src/serve/ipc/client.rs", "use crate::serve::{ipc::{a, b}, daemon::feed};");
    assert_eq!(found, ["src/serve/ipc/client.rs names serve::daemon::feed"]);
    let found = forbidden_in_serve("src/serve/mcp/mod.rs", "/// As [`crate::serve::http::server`].");
    assert_eq!(found, ["src/serve/mcp/mod.rs names serve::http::server"]);
    let found = forbidden_in_serve("src/serve/http/server.rs", "use crate::serve::web::layout;");
    assert_eq!(found, ["src/serve/http/server.rs names serve::web::layout"]);
    assert_eq!(forbidden_in_serve("src/serve/mcp/mod.rs", "use crate::serve::daemon::feed;"), [""; 0]);
    assert_eq!(forbidden_in_serve("src/serve/http/server.rs", "use crate::serve::daemon::feed;"), [""; 0]);
}

#[test]
fn an_import_between_verbs_is_found() {
    let verbs = ["add", "list"].map(str::to_owned).into();
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    let found = |name: &str, source: &str| borrowed(name, source, &verbs);
    assert_eq!(found("src/ops/add.rs", "use crate::{api, ops::{list::read}};"), [pair("add", "list")]);
    assert_eq!(found("src/ops/add/more.rs", "use super::super::list;"), [pair("add", "list")]);
    assert_eq!(found("src/ops/add.rs", "use super::list;"), [pair("add", "list")]);
    assert_eq!(found("src/ops/add/tests.rs", "use crate::ops::list;"), []);
    assert_eq!(found("src/ops/add.rs", "use crate::ops::add::more;"), []);
    let (found, allowed) = ([pair("a", "b")].into(), [pair("a", "c")].into());
    assert_eq!(
        differences(&found, &allowed),
        ["the verb `a` imports the verb `b`", "the exception (a, c) is no longer needed"]
    );
}

#[test]
fn an_import_cycle_is_found() {
    let source = |name: &str, text: &str| (format!("src/{name}.rs"), text.to_owned());
    let graph = graph(&[
        source("store/a", "use crate::store::{x::{y}, b};"),
        source("store/b", "use super::c::f;"),
        source("store/c", "fn f() { crate::store::a::g() }"),
        source("store/d", "use super::a; // crate::store::e"),
        source("store/e", "use super::d;"),
    ]);
    let found = cycles(&graph);
    let cycle = vec!["src/store/a.rs", "src/store/b.rs", "src/store/c.rs"];
    assert_eq!(found, [cycle].into());
    assert_eq!(
        grown(&found, &[("src/store", 2)]),
        ["3 files of src/store import each other: src/store/a.rs src/store/b.rs src/store/c.rs"]
    );
    assert_eq!(grown(&found, &[("src/store", 4)]), ["the cycle of src/store has 3 files, not 4"]);
    assert_eq!(grown(&found, &[("src/store", 3)]), [""; 0]);
}
