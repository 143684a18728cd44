use std::io;

use super::*;
use crate::disk::Trouble;
use crate::disk::model::Machine;
use crate::plan::read::Bodies;
use crate::plan::words::Words;

fn unreadable(relative: &str) -> Trouble {
    let (path, source) = (PathBuf::from(relative), io::ErrorKind::PermissionDenied.into());
    Trouble { relative: relative.into(), error: DiskError::Unreadable { path, source } }
}

fn gone(relative: &str) -> Trouble {
    Trouble { relative: relative.into(), error: DiskError::NotFound { path: relative.into() } }
}

/// The error is constructed by hand, because the tests may run as root, who can list every directory.
#[test]
fn a_directory_that_cannot_be_listed_is_a_plan_with_a_problem() {
    let machine = Machine::with(&[("/plans/p/plan.md", "# P\n")]);
    let context = Context::on_model(&machine);
    for (trouble, expected) in [
        (unreadable("shut"), Some("shut/plan.md")),
        (unreadable("_archive/shut"), Some("_archive/shut/plan.md")),
        (unreadable("shut/notes"), None),
        (unreadable("_archive"), None),
        (unreadable(""), None),
        (gone("shut"), None),
    ] {
        let mut scan = disk::Scan { entries: Vec::new(), trouble: vec![trouble] };
        let found = found_in(&context, &mut scan);
        assert_eq!(found.first().map(|it| it.path.as_str()), expected, "{:?}", scan.trouble);
        // A problem that belongs to no plan is reported separately.
        assert_eq!(scan_problems(&context, scan.trouble).is_empty(), expected.is_some());
        let mut sources = PlanSources::default();
        found.iter().for_each(|it| drop(take(&context, it, &mut sources)));
        let plan = read::read_plan(&PlanId::new("shut"), false, &sources, &Words::default(), Bodies::Drop);
        let codes: Vec<_> = plan.problems.iter().map(|it| it.code.text()).collect();
        assert_eq!(codes.contains(&"unreadable"), expected.is_some(), "{codes:?}");
    }
}
