//! `export`: a plan as one document.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use planwatch::ops::export::{self, ExportForm, ExportRequest};

use crate::args::import::Export;
use crate::context::Session;
use crate::failure::{self, Failure};

pub(crate) fn run(session: &Session, args: Export) -> Result<u8, Failure> {
    let context = session.context()?;
    let request = ExportRequest { plan: args.plan, form: args.format.form() };
    let report = session.patiently(|| export::export(&context, &request))?;
    let output = &session.output;
    if let Some(path) = &args.output {
        write(path, report.text.as_bytes(), args.force)?;
        if !output.is_json() {
            output.told(&format!("wrote {}\n", crate::output::escaped(&path.display().to_string())))?;
            return Ok(0);
        }
    }
    match (output.is_json(), report.form) {
        (true, _) => drop(output.json("export", report.to_json())?),
        // A file of this plan may hold anything; what goes to a file or a pipe stays as it is.
        (false, ExportForm::Json) => drop(output.text(&report.text)?),
        (false, _) => drop(output.long(&crate::output::escaped_lines(&report.text))?),
    }
    Ok(0)
}

fn write(path: &Path, bytes: &[u8], is_forced: bool) -> Result<(), Failure> {
    let file = if is_forced { File::create(path) } else { File::create_new(path) };
    file.and_then(|mut it| it.write_all(bytes)).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::failed("file-exists", format!("`{}` exists", path.display()))
                .with_hint("--force writes over it")
                .with_exit(4)
        }
        _ => {
            let why = failure::system(&error);
            Failure::failed("io-error", format!("`{}` cannot be written: {why}", path.display()))
        }
    })
}
