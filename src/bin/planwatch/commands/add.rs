//! `add`: adds a step to a plan.

use planwatch::ops::add::{self, AddRequest};

use crate::args::write::Add;
use crate::context::Session;
use crate::failure::Failure;
use crate::named_text;
use crate::screens::change;

pub(crate) fn run(session: &Session, args: Add) -> Result<u8, Failure> {
    change::check_fields(session)?;
    let context = session.context()?;
    let body = args.body.as_deref().map(|it| named_text::read(session, it)).transpose()?;
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
        may_confirm: true,
        ignores_branches: args.no_branches,
        mode: args.dry_run.mode(),
    };
    change::print(session, &add::add(&context, &request)?)
}
