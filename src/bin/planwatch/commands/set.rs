//! `set`, `unset`, `move`, `squash`, `replace`, `remove`.

use planwatch::ops::remove::{self, RemoveRequest};
use planwatch::ops::rename::{self, RenameRequest};
use planwatch::ops::renumber::{self, RenumberRequest};
use planwatch::ops::replace::{self, ReplaceRequest};
use planwatch::ops::set::{self, SetOp, SetRequest};
use planwatch::ops::squash::{self, SquashRequest};

use planwatch::plan::read::{PLAN_KEYS, STEP_KEYS};
use planwatch::plan::words::nearest;

use crate::args::write::{Move, Remove, Replace, Set, SetOptions, Squash, Unset};
use crate::context::Session;
use crate::failure::Failure;
use crate::named_text;
use crate::screens::change;

pub(crate) fn run(session: &Session, args: Set) -> Result<u8, Failure> {
    let Set { id, key, value, unset, yaml, of } = args;
    let (key, op) = operation(&key, value, unset, yaml)?;
    print(session, id, key, op, of)
}

pub(crate) fn unset(session: &Session, args: Unset) -> Result<u8, Failure> {
    print(session, args.id, args.key, SetOp::Unset, args.of)
}

fn print(session: &Session, id: String, key: String, op: SetOp, of: SetOptions) -> Result<u8, Failure> {
    change::check_fields(session)?;
    let SetOptions { by, claim, force, dry_run } = of;
    let request = SetRequest { id, key, op, by: by.by, claim, force, mode: dry_run.mode() };
    let code = change::print(session, &set::set(&session.context()?, &request)?)?;
    if let Some(near) = meant(&request.key).filter(|_| request.op != SetOp::Unset) {
        let key = &request.key;
        session.output.hint(&format!(
            "planwatch does not know the field `{key}`: it stores the value but does not use it; did you mean `{near}`?"
        ));
    }
    Ok(code)
}

/// Names that other programs use for fields of plans and steps, each with planwatch's name of the field.
const OTHER_NAMES: [(&str, &str); 16] = [
    ("after", "depends"),
    ("blocked_by", "depends"),
    ("dependencies", "depends"),
    ("dependson", "depends"),
    ("deps", "depends"),
    ("needs", "depends"),
    ("requires", "depends"),
    ("waits_for", "depends"),
    ("assigned_to", "assignee"),
    ("owner", "assignee"),
    ("deadline", "due"),
    ("due_date", "due"),
    ("labels", "tags"),
    ("name", "title"),
    ("state", "status"),
    ("epic", "program"),
];

/// The known field that an unknown key probably means: the field for which other programs use this name, or else a field
/// with a similar spelling. `None` if the key is known, or if no field is similar.
fn meant(key: &str) -> Option<String> {
    let known = || STEP_KEYS.iter().chain(PLAN_KEYS).copied();
    if known().any(|it| it == key) {
        return None;
    }
    let folded = key.to_lowercase().replace(['-', ' '], "_");
    let other = OTHER_NAMES.iter().find(|(name, _)| *name == folded).map(|(_, field)| (*field).to_owned());
    other.or_else(|| nearest(&folded, known()))
}

/// Makes the operation from the value after `+=` or `-=`.
type Op = fn(String) -> SetOp;

/// Returns the key and the operation. They depend on the first argument (`KEY`, `KEY+=V` or `KEY-=V`), the value and the
/// options.
fn operation(key: &str, value: Option<String>, unset: bool, yaml: bool) -> Result<(String, SetOp), Failure> {
    let add = if yaml { SetOp::AddYaml } else { SetOp::Add as Op };
    let take = if yaml { SetOp::TakeYaml } else { SetOp::Take as Op };
    let joined = [("+=", add), ("-=", take)];
    let joined = joined.into_iter().filter_map(|(sign, op)| {
        let (key, behind) = key.split_once(sign)?;
        Some((key.to_owned(), behind.to_owned(), op))
    });
    let joined = joined.min_by_key(|(key, _, _)| key.len());
    match (joined, value) {
        (Some(_), _) if unset => {
            Err(Failure::usage("--unset cannot be used with += or -=", "leave one of them out"))
        }
        (Some((key, behind, op)), None) => Ok((key, op(behind))),
        // `tags+= web`, with a space by mistake, arrives as two arguments.
        (Some((key, behind, op)), Some(value)) if behind.is_empty() => Ok((key, op(value))),
        (Some((_, _, _)), Some(value)) => Err(Failure::usage(
            format!("`{value}` is one value too many"),
            "put a value of several words in quotes",
        )),
        (None, _) if unset => Ok((key.to_owned(), SetOp::Unset)),
        (None, Some(value)) => {
            Ok((key.to_owned(), if yaml { SetOp::Yaml(value) } else { SetOp::Text(value) }))
        }
        (None, None) => {
            let hint = match key.split_once('=') {
                Some((key, value)) if set::LISTS.contains(&key) => format!("write it as `{key}+={value}`"),
                Some((key, value)) => format!("write it as `{key} {value}`; `{key}+={value}` adds to a list"),
                None => "--unset removes the field; '' is the empty text".to_owned(),
            };
            Err(Failure::usage(format!("`{key}` needs a value"), hint))
        }
    }
}

pub(crate) fn renumber(session: &Session, args: Move) -> Result<u8, Failure> {
    change::check_fields(session)?;
    let Move { id, after, before, to, no_branches, of: SetOptions { by, claim, force, dry_run } } = args;
    let context = session.context()?;
    if let Some(to) = &to
        && rename::is_plan(&context, &id)?
    {
        let request = RenameRequest { id, to: to.clone(), force, mode: dry_run.mode() };
        return change::print(session, &rename::rename(&context, &request)?);
    }
    let after = after.unwrap_or_default();
    let request = RenumberRequest {
        id,
        after,
        before,
        to,
        by: by.by,
        claim,
        force,
        ignores_branches: no_branches,
        mode: dry_run.mode(),
    };
    change::print(session, &renumber::renumber(&context, &request)?)
}

pub(crate) fn remove(session: &Session, args: Remove) -> Result<u8, Failure> {
    change::check_fields(session)?;
    let Remove { ids, yes, force, by, claim, dry_run } = args;
    let request = RemoveRequest { ids, is_confirmed: yes, by: by.by, claim, force, mode: dry_run.mode() };
    let report = remove::remove(&session.context()?, &request)?;
    let code = change::print(session, &report)?;
    if !report.is_dry_run && !report.changes.is_empty() {
        session.output.hint("`planwatch undo` undoes it");
    }
    Ok(code)
}

pub(crate) fn squash(session: &Session, args: Squash) -> Result<u8, Failure> {
    change::check_fields(session)?;
    let Squash { plan, steps, title, by, force, dry_run } = args;
    let request = SquashRequest { plan, steps, title, by: by.by, force, mode: dry_run.mode() };
    change::print(session, &squash::squash(&session.context()?, &request)?)
}

pub(crate) fn replace(session: &Session, args: Replace) -> Result<u8, Failure> {
    change::check_fields(session)?;
    let Replace { plan, file, by, force, no_branches: ignores_branches, dry_run } = args;
    let list = named_text::read(session, &file)?;
    let shown = file.display().to_string();
    let (by, mode) = (by.by, dry_run.mode());
    let request =
        ReplaceRequest { plan, list, shown, by, force, ignores_branches, mode, ..ReplaceRequest::default() };
    let report = replace::replace(&session.context()?, &request)?;
    let code = change::print(session, &report)?;
    if !report.is_dry_run && report.changes.iter().any(|it| it.was_written) {
        session.output.hint("`planwatch undo` undoes it");
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(key: &str, value: Option<&str>, expected: (&str, &SetOp)) {
        let (key, op) = operation(key, value.map(str::to_owned), false, false).unwrap();
        assert_eq!((key.as_str(), &op), expected);
    }

    #[test]
    fn keys_say_what_is_done_with_a_value() {
        check("title", Some("A = B"), ("title", &SetOp::Text("A = B".to_owned())));
        check("title", Some(""), ("title", &SetOp::Text(String::new())));
        check("tags+=web", None, ("tags", &SetOp::Add("web".to_owned())));
        check("tags-=a+=b", None, ("tags", &SetOp::Take("a+=b".to_owned())));
        check("tags+=", Some("web"), ("tags", &SetOp::Add("web".to_owned())));
    }

    #[test]
    fn an_unknown_field_leads_to_the_one_that_is_meant() {
        for (key, expected) in [
            ("depends_on", Some("depends")),
            ("Depends-On", Some("depends")),
            ("blocked_by", Some("depends")),
            ("dependencies", Some("depends")),
            ("owner", Some("assignee")),
            ("prioritiy", Some("priority")),
            ("budget", None),
            ("depends", None),
        ] {
            assert_eq!(meant(key).as_deref(), expected, "{key}");
        }
    }

    #[test]
    fn a_key_alone_says_what_is_missing() {
        let failure = operation("priority=high", None, false, false).unwrap_err();
        assert_eq!(failure.hint.unwrap(), "write it as `priority high`; `priority+=high` adds to a list");
        let failure = operation("depends=1", None, false, false).unwrap_err();
        assert_eq!(failure.hint.unwrap(), "write it as `depends+=1`");
        assert!(operation("tags+=a", Some("b".to_owned()), false, false).is_err());
        assert!(operation("tags+=a", None, true, false).is_err());
        assert_eq!(operation("tags", None, true, false).unwrap().1, SetOp::Unset);
        let yaml = |key| operation(key, None, false, true).unwrap().1;
        assert_eq!(yaml("verify+={run: a}"), SetOp::AddYaml("{run: a}".to_owned()));
        assert_eq!(yaml("verify-={run: a}"), SetOp::TakeYaml("{run: a}".to_owned()));
    }
}
