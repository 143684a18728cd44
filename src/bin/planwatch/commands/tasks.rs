//! `tick`, `split`, `steps-list`.

use planwatch::ops::split::{self, SplitRequest, Task};
use planwatch::ops::steps_list::{self, StepsListRequest};
use planwatch::ops::tick::{self, Boxes, TickRequest};

use crate::args::work::Tick;
use crate::args::write::{Split, StepsList};
use crate::context::Session;
use crate::failure::Failure;
use crate::screens::change;

pub(crate) fn tick(session: &Session, args: Tick) -> Result<u8, Failure> {
    change::check_fields(session)?;
    let Tick { id, tasks, untick, by, dry_run } = args;
    let (boxes, mode) = (Boxes::Numbers(tasks), dry_run.mode());
    let request = TickRequest { id, boxes, ticked: !untick, by: by.by, mode };
    change::print(session, &tick::tick(&session.context()?, &request)?)
}

pub(crate) fn split(session: &Session, args: Split) -> Result<u8, Failure> {
    change::check_fields(session)?;
    let Split { id, task, by, dry_run } = args;
    let request = SplitRequest { id, task: Task::Number(task), by: by.by, mode: dry_run.mode() };
    change::print(session, &split::split(&session.context()?, &request)?)
}

pub(crate) fn steps_list(session: &Session, args: StepsList) -> Result<u8, Failure> {
    change::check_fields(session)?;
    let request = StepsListRequest { plan: args.plan, mode: args.dry_run.mode() };
    change::print(session, &steps_list::insert(&session.context()?, &request)?)
}
