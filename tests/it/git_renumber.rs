//! `git resolve --renumber`: references to the step of THEIRS are changed to the step's new number.

use crate::git_merge::{BASE, Driver, LIST, PLAN, Repository, STATUS, STEP, with};
use crate::git_places::{NEW, NEXT, OUR_STEP, THEIR_STEP};

const OTHER: &str = "plans/shop/step-1.md";
const SHOP: &str = "plans/shop/plan.md";
const LAST: &str = "plans/auth/step-20.md";

const CART: &str =
    "---\nid: shop:1\nstatus: pending\ncreated_at: 2026-01-01T00:00:00Z\n---\n# Cart\n\nText.\n\nEnd.\n";
const SHOP_LIST: &str = "# Shop\n\n## Steps\n- step-1: Cart\n";

fn twentieth(more: &str, body: &str) -> String {
    format!(
        "---\nid: auth:20\nstatus: pending\n{more}created_at: 2026-01-05T00:00:00Z\n---\n# Later\n\n{body}\n"
    )
}

/// A merge of two branches that both add step 9, resolved with `--renumber`.
fn renumbered(
    driver: Driver,
    base: &[(&str, &str)],
    ours: &[(&str, &str)],
    theirs: &[(&str, &str)],
) -> (Repository, String) {
    let repository = Repository::new(driver, &[&[(PLAN, LIST), (STEP, BASE)], base].concat());
    let merged =
        repository.merge(&[&[(NEW, OUR_STEP)], ours].concat(), &[&[(NEW, THEIR_STEP)], theirs].concat());
    assert_eq!(merged.code, 1, "{merged:?}");
    let dry = repository.planwatch("git resolve --renumber --dry-run");
    assert_eq!(dry.code, 0, "{dry:?}");
    let ran = repository.planwatch("git resolve --renumber");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(repository.conflicts(), "");
    repository.git("commit -q --no-edit");
    assert_eq!(repository.git("status --porcelain"), "");
    (repository, ran.stdout)
}

#[track_caller]
fn check(repository: &Repository, files: &[(&str, &str)]) {
    for (path, text) in files {
        assert_eq!(repository.place.text(path), *text, "{path}");
    }
}

#[test]
fn references_that_theirs_added_follow_its_step() {
    let base = [(OTHER, CART), (SHOP, SHOP_LIST)];
    let links = "See [it](step-9.md#tasks), [there](../auth/step-9.md) and `step-9.md`.\r";
    let own = twentieth("depends: [\"auth:9\", 1] # both\n", links);
    let step = with(BASE, &[("  - 1\n", "  - 1\n  # first\n  - 'step-9' # why\n")]);
    let cart = with(
        CART,
        &[("status: pending\n", "status: pending\ndepends: [auth:9]\n"), ("Text.", "[x](../auth/step-9.md)")],
    );
    let shop = with(SHOP_LIST, &[("Cart", "Cart (depends: auth/step-9)")]);
    let plan = with(LIST, &[("Notes.", "[new](step-9.md)")]);
    let theirs = [(LAST, own.as_str()), (STEP, &step), (OTHER, &cart), (SHOP, &shop), (PLAN, &plan)];
    for driver in [Driver::None, Driver::Configured] {
        let (repository, _) = renumbered(driver, &base, &[], &theirs);
        let number = |text: &str, from: &str| text.replace(from, &from.replace('9', "14.5"));
        let links = ["(step-9.md", "(../auth/step-9.md", "[step-9", "auth:9", "auth/step-9)", "'step-9'"];
        let moved = |text: &str| links.iter().fold(text.to_owned(), |text, it| number(&text, it));
        for (path, text) in theirs {
            assert_ne!(moved(text), text);
            check(&repository, &[(path, &moved(text))]);
        }
        check(&repository, &[(NEW, OUR_STEP), ("plans/auth/step-14.5.md", &moved(THEIR_STEP))]);
    }
}

#[test]
fn references_of_ours_stay_and_lists_have_both() {
    let base = [(OTHER, CART)];
    let waits = |items: &str| with(BASE, &[("  - 1\n", &format!("  - 1\n{items}"))]);
    let cart = |text: &str, end: &str| with(CART, &[("Text.", text), ("End.", end)]);
    let listed = |items: &str| with(LIST, &[("Two\n", &format!("Two\n{items}"))]);
    let (own, other, both) = (
        "- step-9: Ours\n- step-11: Own (depends: step-9)\n",
        "- step-9: Theirs\n- step-12: Other (depends: step-9)\n",
        "- step-9: Ours\n- step-10: Theirs\n- step-11: Own (depends: step-9)\n- step-12: Other (depends: step-10)\n",
    );
    let (link, linked) = ("[a](../auth/step-9.md)", "[b](../auth/step-9.md)");
    for driver in [Driver::None, Driver::Configured] {
        let (repository, _) = renumbered(
            driver,
            &base,
            &[(STEP, &waits("  - 9\n")), (OTHER, &cart(link, "End.")), (PLAN, &listed(own))],
            &[(STEP, &waits("  - step-9 # why\n")), (OTHER, &cart("Text.", linked)), (PLAN, &listed(other))],
        );
        check(
            &repository,
            &[
                (NEW, OUR_STEP),
                (NEXT, &with(THEIR_STEP, &[("auth:9", "auth:10")])),
                (STEP, &waits("  - 9\n  - step-10 # why\n")),
                (OTHER, &cart(link, "[b](../auth/step-10.md)")),
                (PLAN, &listed(both)),
            ],
        );
    }
    // Only OURS refers to the number.
    let (repository, _) = renumbered(
        Driver::None,
        &base,
        &[(STEP, &waits("  - 9\n")), (OTHER, &cart(link, "End."))],
        &[(OTHER, &cart("Text.", "New end."))],
    );
    check(&repository, &[(STEP, &waits("  - 9\n")), (OTHER, &cart(link, "New end."))]);
}

#[test]
fn a_step_whose_text_names_the_step_of_theirs_gets_a_list_of_dependencies() {
    let text = "## Dependencies\n\nSteps 2 and 9.";
    let theirs = twentieth("", text);
    let (repository, _) = renumbered(Driver::None, &[], &[], &[(LAST, &theirs)]);
    check(&repository, &[(LAST, &twentieth("depends:\n  - 2\n  - 14.5\n", text))]);
}

#[test]
fn the_steps_of_theirs_refer_to_each_other_by_their_new_numbers() {
    let of = |title: &str, number: &str, other: &str| {
        format!(
            "---\nid: auth:{number}\ndepends: [{other}]\ncreated_at: 2026-02-01T00:00:00Z\n---\n# {title}\n\n[it](step-{other}.md) [me](step-{number}.md)\n"
        )
    };
    let ours = of("Own", "11", "9");
    const ELEVENTH: &str = "plans/auth/step-11.md";
    let theirs = of("Other", "11", "9");
    let theirs = theirs.replace("2026-02-01", "2026-02-02");
    let (repository, _) = renumbered(Driver::None, &[], &[(ELEVENTH, &ours)], &[(ELEVENTH, &theirs)]);
    let moved = of("Other", "12", "10").replace("2026-02-01", "2026-02-02");
    check(&repository, &[(ELEVENTH, &ours), ("plans/auth/step-12.md", &moved)]);
}

#[test]
fn a_reference_that_could_mean_either_step_stays_and_is_reported() {
    let planned = with(BASE, &[("  - 1\n", "  - 1\n  - 9\n")]);
    let theirs = with(&planned, &[("Last words.", "Last words, see [it](step-9.md).")]);
    let section = twentieth("", "## Dependencies\n\nStep 9.");
    let base = twentieth("", "Text.");
    let (repository, said) = renumbered(
        Driver::None,
        &[(STEP, &planned), (LAST, &base)],
        &[(LAST, &section)],
        &[(STEP, &theirs), (LAST, &section)],
    );
    check(&repository, &[(STEP, &theirs), (LAST, &section)]);
    for file in [STEP, LAST] {
        let note =
            format!("{file} refers to step 9, which can now mean either step; the reference was not changed");
        assert!(said.contains(&note), "{said}");
    }
}

#[test]
fn a_step_that_ours_moved_follows_too() {
    let theirs = with(BASE, &[("  - 1\n", "  - 1\n  - 9\n")]);
    let repository = Repository::new(Driver::Configured, &[(PLAN, LIST), (STEP, BASE)]);
    repository.git("checkout -q -b theirs");
    repository.commit(&[(NEW, THEIR_STEP), (STEP, &theirs)]);
    repository.git("checkout -q main");
    repository.planwatch("move auth:2 --to 5").ok_code();
    repository.commit(&[(NEW, OUR_STEP)]);
    assert_eq!(repository.try_git("merge -q --no-edit theirs").code, 1);
    let ran = repository.planwatch("git resolve --renumber");
    assert_eq!(ran.code, 0, "{ran:?}");
    let moved = with(&theirs, &[("auth:2", "auth:5"), ("  - 9\n", "  - 10\n")]);
    check(&repository, &[("plans/auth/step-5.md", &moved)]);
    repository.git("commit -q --no-edit");
    assert_eq!(repository.git("status --porcelain"), "");
}

#[test]
fn in_files_with_mixed_line_ends_each_line_keeps_its_own() {
    // The first line ends as in Unix, and most others as in Windows.
    let mixed =
        |text: &str| text.replace('\n', "\r\n").replacen("\r\n", "\n", 1).replace("End.\r\n", "End.\n");
    let cart = |depends: &str, end: &str| {
        mixed(&with(CART, &[("status: pending\n", &format!("status: pending\n{depends}")), ("End.", end)]))
    };
    let (own, other) =
        (cart("tags: [a]\n", "End."), cart("depends: [auth:9]\n", "[b](../auth/step-9.md) End."));
    for driver in [Driver::None, Driver::Configured] {
        let base = [(OTHER, mixed(CART)), (LAST, mixed(&twentieth("", "Text.")))];
        let base = base.each_ref().map(|(path, text)| (*path, text.as_str()));
        let theirs = mixed(&twentieth("depends: [9]\n", "Text."));
        let (repository, _) =
            renumbered(driver, &base, &[(OTHER, &own)], &[(OTHER, &other), (LAST, &theirs)]);
        let both = cart("depends: [auth:14.5]\ntags: [a]\n", "[b](../auth/step-14.5.md) End.");
        check(&repository, &[(OTHER, &both), (LAST, &theirs.replace("[9]", "[14.5]"))]);
    }
}

#[test]
fn a_conflict_in_a_file_with_mixed_line_ends_is_resolved_line_by_line() {
    for first in ["\n", "\r\n"] {
        let mixed = |text: &str| {
            let lines = text.split_inclusive('\n').enumerate();
            let other = if first == "\n" { "\r\n" } else { "\n" };
            let line = |(nth, it): (usize, &str)| it.replace('\n', if nth % 3 == 0 { first } else { other });
            lines.map(line).collect::<String>()
        };
        let edited = |status: &str, words: &str| {
            mixed(&with(BASE, &[(STATUS, &format!("status: {status}")), ("Last words.", words)]))
        };
        let repository = Repository::new(Driver::None, &[(STEP, &mixed(BASE))]);
        let (ours, theirs) = (edited("completed", "Last words."), edited("blocked", "New words."));
        assert_eq!(repository.merge(&[(STEP, &ours)], &[(STEP, &theirs)]).code, 1);
        let ran = repository.planwatch("git resolve");
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(repository.place.text(STEP), edited("completed", "New words."));
        // With a conflict in the text, the file gets the lines of both sides, and nothing else changes.
        let repository = Repository::new(Driver::None, &[(STEP, &mixed(BASE))]);
        let (ours, theirs) = (edited("completed", "Ours."), edited("blocked", "Theirs."));
        assert_eq!(repository.merge(&[(STEP, &ours)], &[(STEP, &theirs)]).code, 1);
        assert_eq!(repository.planwatch("git resolve").code, 1);
        let text = repository.place.text(STEP);
        let picked = planwatch::plan::merge::markers::pick(text.as_bytes(), 7).expect("it has markers");
        let sides = [picked.ours, picked.theirs].map(|it| String::from_utf8(it).expect("it is text"));
        assert_eq!(sides, [ours, edited("completed", "Theirs.")]);
    }
}

#[test]
fn references_that_an_interrupted_command_changed_are_staged_when_it_is_repeated() {
    let waits = |number: &str| with(BASE, &[("  - 1\n", &format!("  - 1\n  - {number}\n"))]);
    let repository = Repository::new(Driver::None, &[(PLAN, LIST), (STEP, BASE), (OTHER, CART)]);
    let cart = |number: &str| with(CART, &[("Text.", &format!("[x](../auth/step-{number}.md)"))]);
    let merged =
        repository.merge(&[(NEW, OUR_STEP)], &[(NEW, THEIR_STEP), (STEP, &waits("9")), (OTHER, &cart("9"))]);
    assert_eq!(merged.code, 1, "{merged:?}");
    // As after a kill before the files were staged. A person has edited one of them since.
    let (renumbered, edited) =
        (with(THEIR_STEP, &[("auth:9", "auth:10")]), with(&cart("10"), &[("End.", "Mine.")]));
    for (path, text) in [(NEW, OUR_STEP), (NEXT, &renumbered), (STEP, &waits("10")), (OTHER, &edited)] {
        repository.place.write(path, text);
    }
    assert_eq!(repository.planwatch("git resolve --renumber").code, 0);
    repository.git("commit -q --no-edit");
    assert_eq!(repository.git("status --porcelain"), format!(" M {OTHER}\n"));
    check(&repository, &[(NEXT, &renumbered), (STEP, &waits("10")), (OTHER, &edited)]);
}
