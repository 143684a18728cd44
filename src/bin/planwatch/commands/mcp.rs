//! `mcp`: tools for one agent over standard input and output.

use planwatch::api::error::Error;
use planwatch::serve::daemon::malloc;
use planwatch::serve::mcp::{self, Options, Planwatch, Toolset};

use crate::args::setup::{Mcp, Tools};
use crate::context::{self, Session};
use crate::failure::Failure;

pub(crate) fn run(session: &Session, args: &Mcp) -> Result<u8, Failure> {
    malloc::give_back();
    // If a plans directory was named and does not exist, this fails now. If none was named, one may be created later.
    match session.context() {
        Err(failure) if failure.code != Error::NoPlansDir.code() => return Err(failure),
        _ => {}
    }
    let tools = match args.tools {
        Tools::All => Toolset::All,
        Tools::Executor => Toolset::Executor,
        Tools::Compat => Toolset::Compat,
    };
    let options = Options { tools, is_read_only: args.read_only };
    let server = Planwatch::new(session.contexts_found(), options)
        .with_maker(session.contexts_to_make())
        .with_viewer(session.contexts_to_look())
        .with_following(context::socket_dirs());
    mcp::stdio(server)?;
    Ok(0)
}
