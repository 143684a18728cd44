//! Finds references to steps and plans in a text: in the front matter, the Steps list, the Dependencies
//! section, and links.

use std::ops::Range;

use super::tree::{PlanFile, Role};
use crate::plan::id::{PlanId, StepId, read_number, read_step_id, read_step_path};
use crate::plan::references as prose;
use crate::plan::steps_list;
use crate::text::front_matter;
use crate::text::markdown;
use crate::text::yaml::{Tree, View};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Step(StepId),
    Plan(PlanId),
}

/// The kind of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// An item of `depends`.
    Depends,
    Program,
    /// The plan or step that a decision, an insight, a script or a prompt is about.
    About,
    /// The file's own `id`.
    Id,
    /// The step's own name in a line of the Steps list.
    Listed,
    /// A dependency in the `(depends: …)` of a line of the Steps list.
    StepsList,
    /// A step's name in the Dependencies section.
    Prose,
    /// A Markdown link, with its brackets.
    Link,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) range: Range<usize>,
    pub(super) target: Target,
    pub(super) form: Form,
}

/// All references in a file, in the order in which they appear.
pub(super) fn all(text: &str, file: &PlanFile) -> Vec<Named> {
    let Some(plan) = file.plan() else { return named_outside_plans(text, file) };
    let mut found = in_header(text, file, &plan);
    let start = front_matter::split(text.as_bytes()).body_start();
    let body = &text[start..];
    let moved = |range: Range<usize>| range.start + start..range.end + start;
    let outline = markdown::outline(body);
    if file.role == Role::Plan {
        for line in steps_list::read(&plan, &outline) {
            let own = || Target::Step(StepId { plan: plan.clone(), number: line.number.clone() });
            let listed = |it| Named { range: moved(whole_name(body, it)), target: own(), form: Form::Listed };
            found.extend(line.own_names().into_iter().map(listed));
            found.extend(line.named().into_iter().map(|(range, step)| Named {
                range: moved(range),
                target: Target::Step(step),
                form: Form::StepsList,
            }));
        }
    }
    if let Some(section) = prose::section(&outline).filter(|_| matches!(file.role, Role::Step(_))) {
        let words = in_prose(&plan, &body[section.clone()]).into_iter();
        let words = words.filter(|(range, _)| !outline.is_code(section.start + range.start));
        found.extend(words.map(|(range, step)| {
            let range = moved(section.start + range.start..section.start + range.end);
            Named { range, target: Target::Step(step), form: Form::Prose }
        }));
    }
    for (range, target) in markdown::links(body) {
        if let Some(target) = link_target(Some(&plan), &target) {
            found.push(Named { range: moved(range), target, form: Form::Link });
        }
    }
    found.sort_by_key(|it| (it.range.start, it.range.end));
    // The text of a link can itself be a reference to the same target, as in the Steps list. Then only the inner
    // reference is used.
    found.dedup_by(|b, a| {
        a.target == b.target && a.range.end >= b.range.end && a.form == Form::Link && {
            std::mem::swap(a, b);
            true
        }
    });
    found
}

/// The references in a decision, an insight, a script or a prompt: the keys `plan` and `step`, and links.
fn named_outside_plans(text: &str, file: &PlanFile) -> Vec<Named> {
    let about = |key: &str| {
        let front_matter::Header::Present { yaml, .. } = front_matter::split(text.as_bytes()).header else {
            return None;
        };
        let tree = Tree::of_file(text.as_bytes())?;
        let value = tree.root().get(key)?;
        Some((range_of(text, yaml.start, value), value.text()?.to_owned()))
    };
    let plan = about("plan");
    let step = about("step").and_then(|(range, said)| {
        let number = || Some((PlanId::new(&plan.as_ref()?.1), read_number(&said)?));
        let own = || number().map(|(plan, number)| StepId { plan, number });
        Some((range, read_step_id(&said).or_else(own)?))
    });
    let named = |range, target| Named { range, target, form: Form::About };
    let mut found: Vec<_> =
        plan.iter().map(|(range, name)| named(range.clone(), Target::Plan(PlanId::new(name)))).collect();
    found.extend(step.map(|(range, step)| named(range, Target::Step(step))));
    // `link_target` expects a file one level below the plans directory. In a deeper directory, a link has another target.
    if file.relative.matches('/').count() == 1 {
        let start = front_matter::split(text.as_bytes()).body_start();
        let links = markdown::links(&text[start..]).into_iter();
        found.extend(links.filter_map(|(range, target)| {
            let range = range.start + start..range.end + start;
            Some(Named { range, target: link_target(None, &target)?, form: Form::Link })
        }));
    }
    found.sort_by_key(|it| it.range.start);
    found
}

/// The range of a step's number, including `step-` or `step ` if one of them precedes the number.
fn whole_name(body: &str, number: Range<usize>) -> Range<usize> {
    let before = &body.as_bytes()[..number.start];
    let is_word =
        before.len() >= 5 && before[before.len() - 5..before.len() - 1].eq_ignore_ascii_case(b"step");
    let is_joined = matches!(before.last(), Some(b'-' | b' '));
    if is_word && is_joined { number.start - 5..number.end } else { number }
}

pub(super) fn at(all: &[Named], at: usize) -> Option<&Named> {
    let holds = |it: &&Named| it.range.start <= at && at <= it.range.end;
    all.iter().filter(holds).min_by_key(|it| it.range.len())
}

fn in_header(text: &str, file: &PlanFile, plan: &PlanId) -> Vec<Named> {
    let front_matter::Header::Present { yaml, .. } = front_matter::split(text.as_bytes()).header else {
        return Vec::new();
    };
    let Some(tree) = Tree::of_file(text.as_bytes()) else { return Vec::new() };
    let range = |it| range_of(text, yaml.start, it);
    let mut found = Vec::new();
    if let Some(list) = tree.root().get("depends") {
        let items: Vec<_> = if list.text().is_some() { vec![list] } else { list.items().collect() };
        for item in items.into_iter().filter(|it| !it.is_alias()) {
            let step = item.text().and_then(|it| prose::read_item(plan, it));
            found.extend(step.map(|it| Named {
                range: range(item),
                target: Target::Step(it),
                form: Form::Depends,
            }));
        }
    }
    if file.role == Role::Plan
        && let Some((item, name)) = tree.root().get("program").and_then(|it| Some((it, it.text()?)))
    {
        found.push(Named {
            range: range(item),
            target: Target::Plan(PlanId::new(name)),
            form: Form::Program,
        });
    }
    if let (Some(step), Some((_, item))) = (file.step(), tree.root().find_entry("id")) {
        found.push(Named { range: range(item), target: Target::Step(step), form: Form::Id });
    }
    found
}

/// The byte range of a value of the front matter, without quotes. The YAML of the front matter begins at `yaml`.
fn range_of(text: &str, yaml: usize, value: View<'_>) -> Range<usize> {
    let span = value.span();
    let (from, to) = (yaml + span.start, yaml + span.end);
    let quotes = usize::from(to - from >= 2 && text[from..to].starts_with(['"', '\'']));
    from + quotes..to - quotes
}

/// The words of a section that name a step: `step-2`, `plan:2`, `plan/step-2`.
fn in_prose(plan: &PlanId, section: &str) -> Vec<(Range<usize>, StepId)> {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/');
    let mut found = Vec::new();
    let mut start = None;
    let ends = section.char_indices().map(|(at, c)| (at, is_word(c))).chain([(section.len(), false)]);
    for (at, is_inside) in ends {
        match (start, is_inside) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                start = None;
                let word = section[from..at].trim_end_matches(['.', ':', '/', '-', '_']);
                let is_name = word.contains("step-") || word.contains(':');
                let step = Some(word)
                    .filter(|it| is_name && !it.contains("://"))
                    .map(|it| it.trim_end_matches(".md"));
                if let Some(step) = step.and_then(|it| prose::read_item(plan, it.trim_start_matches("./"))) {
                    found.push((from..from + word.len(), step));
                }
            }
            _ => {}
        }
    }
    found
}

/// The target of a link such as `step-2.md`, `../other/step-2.md`, `../other/plan.md` or `../other/`. If `plan` is `None`,
/// links within the file's own directory have no target.
fn link_target(plan: Option<&PlanId>, target: &str) -> Option<Target> {
    let path = target.split(['#', '?']).next().unwrap_or_default().trim_start_matches("./");
    if path.contains("://") || path.starts_with('/') {
        return None;
    }
    let own = !path.contains('/');
    let outside = path.strip_prefix("../");
    if !own && outside.is_none_or(|it| it.starts_with("../") || it.split('/').count() > 2) {
        return None;
    }
    if let Some((of, number)) = read_step_path(path) {
        let plan = of.filter(|_| !own).or_else(|| plan.cloned())?;
        return Some(Target::Step(StepId { plan, number }));
    }
    match outside {
        None if path == "plan.md" => plan.cloned().map(Target::Plan),
        None => None,
        Some(outside) => {
            let (name, file) = outside.split_once('/').unwrap_or((outside, ""));
            let is_plan = PlanId::is_plan_name(name) && matches!(file, "" | "plan.md");
            is_plan.then(|| Target::Plan(PlanId::new(name)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Key;
    use crate::plan::step_number::StepNumber;

    fn found(text: &str, role: Role) -> Vec<(String, String)> {
        let key = Some(Key { is_archived: false, name: "p".to_owned() });
        let file = PlanFile { relative: "p/x.md".to_owned(), role, key };
        let shown = |it: Named| {
            let target = match &it.target {
                Target::Step(step) => step.to_string(),
                Target::Plan(plan) => format!("plan {plan}"),
            };
            (text[it.range].to_owned(), target)
        };
        all(text, &file).into_iter().map(shown).collect()
    }

    #[track_caller]
    fn check(text: &str, role: Role, expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        assert_eq!(found(text, role), expected, "{text}");
    }

    #[test]
    fn a_decision_names_what_it_is_about() {
        let names = |relative: &str, text: &str| {
            let file = PlanFile { relative: relative.to_owned(), role: Role::OutsidePlans, key: None };
            let shown = |it: Named| (text[it.range].to_owned(), it.target);
            all(text, &file).into_iter().map(shown).collect::<Vec<_>>()
        };
        let step = |plan: &str, number: u32| {
            Target::Step(StepId { plan: PlanId::new(plan), number: StepNumber::whole(number) })
        };
        let text =
            "---\nplan: \"p\"\nstep: 2\n---\n# x\n\n[a](../q/step-3.md) [b](step-1.md) [c](plan.md) step-4\n";
        assert_eq!(
            names("_decisions/x.md", text),
            [
                ("p".to_owned(), Target::Plan(PlanId::new("p"))),
                ("2".to_owned(), step("p", 2)),
                ("[a](../q/step-3.md)".to_owned(), step("q", 3)),
            ]
        );
        assert_eq!(
            names("_prompts/a/x.md", "---\nstep: q:7\n---\n[a](../q/)\n"),
            [("q:7".to_owned(), step("q", 7))]
        );
        assert!(names("_decisions/x.md", "---\nstep: 7\n---\n").is_empty());
    }

    #[test]
    fn steps_are_named_in_many_places() {
        let step = || Role::Step(StepNumber::whole(5));
        check(
            "---\nid: p:5\ndepends: [1, \"step-2\", q:3, no]\n---\n# é\n",
            step(),
            &[("p:5", "p:5"), ("1", "p:1"), ("step-2", "p:2"), ("q:3", "q:3")],
        );
        check("---\ndepends:\n  - 1.5 # why\n---\n", step(), &[("1.5", "p:1.5")]);
        check(
            "# x\n## Dependencies\n- step-1, q/step-2.\n- see [it](step-3.md) and http://step-4\n",
            step(),
            &[("step-1", "p:1"), ("q/step-2", "q:2"), ("step-3.md", "p:3")],
        );
        check(
            "See [a](../q/step-2.md), [b](../q/), [c](http://x), [d](../../q/plan.md).\n",
            step(),
            &[("[a](../q/step-2.md)", "q:2"), ("[b](../q/)", "plan q")],
        );
        check(
            "---\nprogram: big\n---\n# P\n## Steps\n- step-1: A\n- [step-2](step-2.md): B (depends: step-1, q:1)\n",
            Role::Plan,
            &[
                ("big", "plan big"),
                ("step-1", "p:1"),
                ("step-2", "p:2"),
                ("step-2", "p:2"),
                ("step-1", "p:1"),
                ("q:1", "q:1"),
            ],
        );
        check("---\ndepends: [\n---\nstep-1\n", step(), &[]);
    }
}
