//! `add`: one more step.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use planwatch::engine::add::{self, AddRequest};

use crate::args::write::Add;
use crate::context::Session;
use crate::failure::{self, Failure};
use crate::screens::change;

pub(crate) fn run(session: &Session, args: Add) -> Result<u8, Failure> {
    change::check_fields(session)?;
    let context = session.context()?;
    let body = args.body.as_deref().map(read).transpose()?;
    let request = AddRequest {
        plan: args.plan,
        title: args.title,
        after: args.after,
        at: args.at,
        depends: args.depends,
        phase: args.phase,
        kind: args.kind,
        touches: args.touches,
        verify: args.verify,
        metadata: args.metadata,
        body,
        by: args.by.by,
        is_gated: false,
        keeps_own: false,
        mode: args.dry_run.mode(),
    };
    change::print(session, &add::add(&context, &request)?)
}

/// Reads a text that the user names, whatever it is: a file, a pipe, `-` for standard input.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let done = match path.to_str() {
        Some("-") => io::stdin().read_to_string(&mut text),
        _ => File::open(path).and_then(|mut it| it.read_to_string(&mut text)),
    };
    done.map(|_| text).map_err(|error| {
        let exit = if error.kind() == io::ErrorKind::NotFound { 3 } else { 1 };
        let code = if exit == 3 { "not-found" } else { "unreadable" };
        Failure::failed(code, format!("`{}` cannot be read: {}", path.display(), failure::system(&error)))
            .with_exit(exit)
    })
}
