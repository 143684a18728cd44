//! The law of imports, tested on a directory of documents and stores: each word of a source is in the result or reported.
//!
//! `PLANWATCH_IMPORT_CHECK` is the directory; without it, the cases of `import` are used. `scripts/import-check` prints the
//! figures. The test compares the created files, not the command's output about them.
#![expect(clippy::disallowed_methods, reason = "reads a directory given by the environment")]

use std::path::{Path, PathBuf};

use planwatch::ops::import::source_text;
use planwatch::plan::import::{Form, SourceFile};
use planwatch::text::{front_matter, word_loss, yaml};
use serde_json::Value;

use crate::support::{Place, root, tree};

#[derive(Default)]
struct Figures {
    sources: usize,
    refused: usize,
    plans: usize,
    steps: usize,
    without_steps: usize,
    words: usize,
    reported: usize,
    failures: Vec<String>,
}

#[test]
fn each_word_of_a_source_is_in_the_result_or_reported() {
    let own = root().join("tests/cases/import");
    let folder = std::env::var_os("PLANWATCH_IMPORT_CHECK").map_or(own, PathBuf::from);
    let mut figures = Figures::default();
    for source in sources(&folder) {
        figures.try_source(&source);
    }
    println!(
        "sources {} refused {} plans {} steps {} sources without steps {} words {} lines reported {} failures {}",
        figures.sources,
        figures.refused,
        figures.plans,
        figures.steps,
        figures.without_steps,
        figures.words,
        figures.reported,
        figures.failures.len()
    );
    assert!(figures.sources > figures.refused, "nothing to import below {}", folder.display());
    assert!(figures.failures.is_empty(), "{}", figures.failures[..figures.failures.len().min(40)].join("\n"));
}

/// The directories of stores, and all other documents one by one.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut walk = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter();
    while let Some(entry) = walk.next() {
        let Ok(entry) = entry else { continue };
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy());
        if entry.file_type().is_dir() && (name == ".beads" || path.join("config.yml").is_file()) {
            found.push(path.to_path_buf());
            walk.skip_current_dir();
        } else if name == "out" {
            walk.skip_current_dir();
        } else if entry.file_type().is_file()
            && path.extension().is_some_and(|it| it == "md" || it == "markdown")
        {
            found.push(path.to_path_buf());
        }
    }
    found
}

/// The files of a source as the verb reads them.
fn files(source: &Path) -> Vec<SourceFile> {
    let entries = walkdir::WalkDir::new(source).sort_by_file_name().into_iter().filter_map(Result::ok);
    let is_read = |it: &Path| {
        let ends = |end: &str| it.to_string_lossy().ends_with(end);
        [".md", ".markdown", ".jsonl", "config.yml"].iter().any(|it| ends(it))
    };
    let entries = entries.filter(|it| it.file_type().is_file() && (source.is_file() || is_read(it.path())));
    let file = |it: walkdir::DirEntry| SourceFile {
        path: it.path().to_string_lossy().into_owned(),
        bytes: std::fs::read(it.path()).expect("a file of the folder is readable"),
    };
    entries.map(file).collect()
}

impl Figures {
    fn try_source(&mut self, source: &Path) {
        let place = Place::new();
        let shown = source.to_string_lossy().into_owned();
        let ran = place.run_with(&["import", &shown, "--json"]);
        self.sources += 1;
        if ran.code != 0 {
            self.refused += 1;
            if !ran.stderr.contains("nothing-to-import") {
                self.failures.push(format!("{shown}: {}", ran.stderr));
            }
            return;
        }
        let report: Value = serde_json::from_str(&ran.stdout).expect("it prints one object");
        let reported: Vec<&str> = report["unmapped"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|it| it["text"].as_str())
            .collect();
        let form = match report["form"].as_str() {
            Some("beads") => Form::Beads,
            Some("backlog.md") => Form::Backlog,
            _ => Form::Markdown,
        };
        let steps = report["changes"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|it| it["now"]["steps_total"].as_u64());
        let n_steps = steps.sum::<u64>();
        self.steps += usize::try_from(n_steps).expect("it is small");
        self.without_steps += usize::from(n_steps == 0);
        self.plans += report["changes"].as_array().map_or(0, Vec::len);
        self.reported += reported.len();
        let made = tree(&place.file("plans"));
        let result: Vec<String> = made
            .iter()
            .filter(|(path, _)| path.ends_with(".md"))
            .map(|(path, bytes)| kept(form, path, bytes))
            .collect();
        let phases = phases(&made);
        let before = files(source);
        let text: String = before.iter().map(|it| source_text(form, it)).collect::<Vec<_>>().join("\n");
        self.words += word_loss::words(&text).count();
        let kept = result.iter().chain(&phases).map(String::as_str).chain(reported);
        let lost = word_loss::lost(&text, kept);
        if !lost.is_empty() {
            let lost: Vec<_> = lost.iter().take(8).map(|it| it.word.as_str()).collect();
            self.failures.push(format!("{shown}: {lost:?}"));
        }
        let after = files(source);
        let is_same =
            before.iter().zip(&after).all(|(a, b)| a.bytes == b.bytes) && before.len() == after.len();
        assert!(is_same, "{shown} was changed");
    }
}

/// The text of a created file in which words are searched. For steps of a document it is only the number and the body,
/// because the front matter repeats parts of the body.
fn kept(form: Form, path: &str, bytes: &[u8]) -> String {
    let parts = front_matter::split(bytes);
    let yaml = parts.yaml().map(String::from_utf8_lossy).unwrap_or_default();
    let number = path.rsplit_once("/step-").map(|it| it.1.trim_end_matches(".md"));
    match number {
        Some(number) if form == Form::Markdown && !yaml.contains("metadata:") => {
            format!("{number}\n{}", String::from_utf8_lossy(parts.body()))
        }
        _ => word_loss::text_of(bytes),
    }
}

/// The phases of the steps, each once. The plan no longer contains their headings.
fn phases(made: &crate::support::Tree) -> Vec<String> {
    let phase = |bytes: &Vec<u8>| {
        let header = String::from_utf8_lossy(front_matter::split(bytes).yaml()?).into_owned();
        Some(yaml::parse(&header).ok()?.root().get("phase")?.text()?.to_owned())
    };
    let mut phases: Vec<_> = made.values().filter_map(phase).collect();
    phases.sort();
    phases.dedup();
    phases
}
