//! `archive`, and the hidden verb `restore`.

use planwatch::ops::archive::{self, ArchiveRequest};

use crate::args::write::{Archive, Restore};
use crate::context::Session;
use crate::failure::Failure;
use crate::screens::change;

pub(crate) fn run(session: &Session, args: Archive) -> Result<u8, Failure> {
    let Archive { ids: plans, restore: restores, force, dry_run } = args;
    carry(session, &ArchiveRequest { plans, restores, force, mode: dry_run.mode() })
}

pub(crate) fn restore(session: &Session, args: Restore) -> Result<u8, Failure> {
    let Restore { ids: plans, dry_run } = args;
    carry(session, &ArchiveRequest { plans, restores: true, force: false, mode: dry_run.mode() })
}

fn carry(session: &Session, request: &ArchiveRequest) -> Result<u8, Failure> {
    change::check_fields(session)?;
    change::print(session, &archive::archive(&session.context()?, request)?)
}
