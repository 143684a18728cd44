//! `lsp`: the language server for editors, over standard input and output.

use planwatch::api::error::Error;
use planwatch::serve::lsp;

use crate::context::Session;
use crate::failure::Failure;

pub(crate) fn run(session: &Session) -> Result<u8, Failure> {
    // If a plans directory was named and does not exist, this fails now. If none was named, the client sends its
    // folders.
    match session.context() {
        Err(failure) if failure.code != Error::NoPlansDir.code() => return Err(failure),
        _ => {}
    }
    Ok(lsp::serve(session.contexts_at(), std::io::stdin(), std::io::stdout()))
}
