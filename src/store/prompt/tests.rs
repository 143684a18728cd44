use std::collections::BTreeSet;

use super::*;

#[test]
fn built_in_prompts_are_valid() {
    for it in ALL {
        let sample = (it.sample)();
        assert_eq!(placeholders::check(it.text, &sample), Ok(()), "{}", it.name);
        let text =
            placeholders::fill(it.text, &sample).unwrap_or_else(|error| panic!("{}: {error:?}", it.name));
        assert!(!text.contains("{{") && !text.starts_with('\n'), "{}:\n{text}", it.name);
        assert!(placeholders::comment(it.text).is_some(), "{} does not say what it is for", it.name);
        let empty = placeholders::fill(it.text, &with_all(&sample, &json!({})));
        assert!(empty.is_ok(), "{}: {empty:?}", it.name);
        assert!(it.text.lines().all(|line| line.chars().count() <= 200), "{}", it.name);
    }
}

/// The names in the first column of the table below a heading.
fn named_in_table(page: &str, heading: &str) -> BTreeSet<String> {
    let below = page.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("no {heading}"));
    let rows = below.split("\n## ").next().unwrap_or_default().lines();
    let first = rows.filter_map(|it| it.strip_prefix("| `")?.split(" |").next());
    first.flat_map(|it| it.split('`').filter(|it| !matches!(*it, "" | ", "))).map(str::to_owned).collect()
}

#[test]
fn the_page_for_authors_names_exactly_the_variables_that_there_are() {
    let page = include_str!("../../../templates/prompts/README.md");
    for it in ALL {
        let expected: BTreeSet<_> = variables(it).into_iter().collect();
        assert_eq!(named_in_table(page, it.name), expected, "{}", it.name);
    }
    let headings = page.lines().filter_map(|it| it.strip_prefix("## ")).filter(|it| !it.contains(' '));
    assert_eq!(headings.collect::<Vec<_>>(), names().collect::<Vec<_>>());
}

#[test]
fn the_step_prompt_says_how_to_report_and_contains_the_given_values() {
    let step = ALL.iter().find(|it| it.name == "step").unwrap();
    let text = placeholders::fill(step.text, &(step.sample)()).unwrap();
    for word in [
        "planwatch done auth:2 --claim h4f09a21 -m",
        "planwatch fail auth:2 --claim h4f09a21 -m",
        "planwatch block auth:2 --claim h4f09a21 -m",
        "planwatch add auth \"Title\" --after 2",
        "planwatch insight",
        "planwatch decide",
        "The text of the step's file.",
        "make test",
        "db/**",
        "- failed: the table is locked",
    ] {
        assert!(text.contains(word), "{word} is missing:\n{text}");
    }
    let bare = json!({"plan": "a", "step": "a:1", "step_word": "a:1", "plan_word": "a", "body": "{{body}}", "title": "T"});
    let text = placeholders::fill(step.text, &with_all(&(step.sample)(), &bare)).unwrap();
    assert!(text.contains("planwatch done a:1 -m") && text.contains("{{body}}"), "{text}");
    assert!(!text.contains("It was tried before") && !text.contains("these commands are run"), "{text}");
}
