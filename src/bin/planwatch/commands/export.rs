//! `export`: a plan as one document, or all plans as a directory of pages.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use planwatch::ops::export::{self, ExportForm, ExportRequest, Site};
use planwatch::ops::status::{self, StatusRequest};
use serde_json::json;

use crate::args::import::Export;
use crate::context::Session;
use crate::failure::{self, Failure};
use crate::screens::{count, typed};

pub(crate) fn run(session: &Session, args: Export) -> Result<u8, Failure> {
    let form = args.format.form();
    let Some(plan) = args.plan else { return site(session, form, args.output.as_deref(), args.force) };
    let context = session.context()?;
    let report = session.with_spinner(|| export::export(&context, &ExportRequest { plan, form }))?;
    let output = &session.output;
    if report.n_errors > 0 {
        let id = typed(&report.plan);
        output.warn(&format!(
            "the files of {id} have {}: planwatch check {id}",
            count(report.n_errors, "error")
        ));
    }
    if let Some(path) = &args.output {
        let path = &if path.is_dir() { path.join(name(&report.plan, form)) } else { path.clone() };
        write(path, report.text.as_bytes(), args.force)?;
        if !output.is_json() {
            output.report(&format!("wrote {}\n", crate::output::escaped(&path.display().to_string())))?;
            return Ok(0);
        }
    }
    match (output.is_json(), report.form) {
        (true, _) => drop(output.json("export", report.to_json())?),
        (false, ExportForm::Json) => drop(output.text(&report.text)?),
        (false, _) => drop(output.document(&report.text)?),
    }
    Ok(0)
}

/// The name of the file for a plan.
fn name(plan: &str, form: ExportForm) -> String {
    let ending = match form {
        ExportForm::Json => "json",
        ExportForm::Markdown | ExportForm::Adr => "md",
        ExportForm::Mermaid => "mmd",
        ExportForm::Html => "html",
    };
    format!("{plan}.{ending}")
}

fn site(session: &Session, form: ExportForm, to: Option<&Path>, is_forced: bool) -> Result<u8, Failure> {
    let (ExportForm::Html, Some(to)) = (form, to) else {
        let message = format!("--all makes HTML pages, not {}", form.word());
        return Err(Failure::failed("usage", message).with_hint("add --format html").with_exit(2));
    };
    let context = session.context()?;
    let site = session.with_spinner(|| Site::of(&context))?;
    let files: Vec<String> = site.files().collect();
    let place = |file: &String| -> PathBuf { file.split('/').fold(to.to_owned(), |path, it| path.join(it)) };
    // Without `--force`, nothing is written if one of the files exists.
    if let Some(path) = files.iter().map(place).find(|it| !is_forced && it.symlink_metadata().is_ok()) {
        return Err(exists(&path));
    }
    let directory = to.join("plans");
    fs::create_dir_all(&directory).map_err(|it| unwritten(&directory, &it))?;
    for (file, text) in files.iter().zip(site.pages(&context)) {
        write(&place(file), text?.as_bytes(), is_forced)?;
    }
    let output = &session.output;
    let n_errors = status::with_most(&context, &StatusRequest::default(), 0)?.n_errors;
    if n_errors > 0 {
        output.warn(&format!("the files have {}: planwatch check", count(n_errors, "error")));
    }
    if output.is_json() {
        let object = json!({"form": form.word(), "directory": to.display().to_string(), "files": files});
        output.json("export", object)?;
    } else {
        let shown = crate::output::escaped(&to.join("index.html").display().to_string()).into_owned();
        output.report(&format!("wrote {shown} and {} below it\n", count(files.len() - 1, "page")))?;
    }
    Ok(0)
}

fn exists(path: &Path) -> Failure {
    Failure::failed("file-exists", format!("`{}` already exists", path.display()))
        .with_hint("--force overwrites it")
        .with_exit(4)
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    let why = failure::system(error);
    Failure::failed("io-error", format!("`{}` cannot be written: {why}", path.display()))
}

fn write(path: &Path, bytes: &[u8], is_forced: bool) -> Result<(), Failure> {
    let file = if is_forced { File::create(path) } else { File::create_new(path) };
    file.and_then(|mut it| it.write_all(bytes)).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        _ => unwritten(path, &error),
    })
}
