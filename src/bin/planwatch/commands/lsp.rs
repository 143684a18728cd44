//! `lsp`: plans in an editor, over standard input and output.

use planwatch::serve::daemon::malloc;
use planwatch::serve::lsp;

use crate::context::Session;
use crate::failure::Failure;

pub(crate) fn run(session: &Session) -> Result<u8, Failure> {
    malloc::give_back();
    Ok(lsp::serve(session.contexts_at(), std::io::stdin(), std::io::stdout()))
}
