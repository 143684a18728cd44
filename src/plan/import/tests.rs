use super::*;

/// Checks the title of each plan and how many steps it has, the files that were not mapped, and the files that could not
/// be read.
#[track_caller]
fn check(files: &[(&str, &[u8])], plans: &[(&str, usize)], left: &[&str], unread: &[(&str, u32, u32)]) {
    let source =
        |(path, bytes): &(&str, &[u8])| SourceFile { path: (*path).to_owned(), bytes: bytes.to_vec() };
    let files: Vec<_> = files.iter().map(source).collect();
    let imported = convert("top", &files, &Words::default()).expect("there is a plan");
    let found: Vec<_> = imported.plans.iter().map(|it| (it.title.as_str(), it.steps.len())).collect();
    assert_eq!(found, plans);
    let found: Vec<_> =
        imported.unmapped.iter().filter(|it| it.line.is_none()).map(|it| it.path.as_str()).collect();
    assert_eq!(found, left);
    let found: Vec<_> = imported.unread.iter().map(|it| (it.path.as_str(), it.line, it.column)).collect();
    assert_eq!(found, unread);
}

#[test]
fn each_document_with_steps_is_a_plan() {
    let (a, b, text): (&[u8], &[u8], &[u8]) = (b"# A\n- [ ] x\n", b"# B\n1. x\n2. y\n", b"# Read me\nText\n");
    check(&[("README.md", text), ("a.md", a), ("b.md", b)], &[("A", 1), ("B", 2)], &["README.md"], &[]);
    check(&[("plan.md", a), ("b.md", b)], &[("A", 1), ("B", 2)], &[], &[]);
    check(
        &[("f/plan.md", text), ("f/tasks.md", a), ("f/spec.md", text)],
        &[("f", 0), ("A", 1)],
        &["f/spec.md"],
        &[],
    );
    check(&[("f/plan.md", a), ("f/step-1.md", text), ("b.md", b)], &[("f", 1), ("B", 2)], &[], &[]);
    check(&[("x.md", text), ("y.md", text)], &[("Read me", 0), ("Read me", 0)], &["x.md", "y.md"], &[]);
}

#[test]
fn a_file_that_is_not_utf8_keeps_no_other_out() {
    check(&[("a.md", b"# A\n- [ ] x\n"), ("b.md", b"# B\n- caf\xe9\n")], &[("A", 1)], &[], &[("b.md", 2, 6)]);
    let broken = [SourceFile { path: "b.md".to_owned(), bytes: vec![0xe9] }];
    let error = convert("b", &broken, &Words::default()).expect_err("there is nothing else");
    assert_eq!(error, Nothing::NotUtf8 { path: "b.md".to_owned() });
}

/// Checks the value of a key of the first step, and the unmapped texts with their lines.
#[track_caller]
fn check_store(path: &str, text: &str, key: &str, value: Option<&str>, listed: &[(&str, u32)]) {
    let file = |path: &str, text: &str| SourceFile { path: path.to_owned(), bytes: text.as_bytes().to_vec() };
    let config = path.ends_with(".md").then(|| file("backlog/config.yml", "project_name: Shop\n"));
    let files: Vec<_> = [file(path, text)].into_iter().chain(config).collect();
    let imported = convert("store", &files, &Words::default()).expect("there is a plan");
    let (_, step) = &imported.plans[0].steps[0];
    let found = step.changes.iter().find(|it| it.key() == key).map(|it| match it {
        Change::Set { value: NewValue::Word(it), .. } => it.as_str(),
        other => panic!("{other:?} sets no word"),
    });
    assert_eq!(found, value, "{text}");
    let found: Vec<_> =
        imported.unmapped.iter().filter_map(|it| Some((it.text.as_str(), it.line?))).collect();
    assert_eq!(found, listed, "{text}");
}

#[test]
fn a_date_of_a_store_is_due_or_listed() {
    for (date, due) in [
        ("2026-11-20", Some("2026-11-20")),
        ("2026-11-20 17:30", Some("2026-11-20")),
        ("2026-11-20T00:30:00+02:00", Some("2026-11-20")),
        ("2026-02-30", None),
        ("20.11.2026", None),
        ("2026-11-201", None),
        ("next week", None),
        ("nächste Woche", None),
    ] {
        let listed = if due.is_none() { vec![(date, 4)] } else { vec![] };
        let task = format!("---\nid: task-1\ntitle: A\ndue_date: {date}\n---\n");
        check_store("backlog/tasks/task-1 - A.md", &task, "due", due, &listed);
        let listed = if due.is_none() { vec![(date, 1)] } else { vec![] };
        let issue = format!(r#"{{"id":"a-1","title":"A","status":"open","due_at":"{date}"}}"#);
        check_store(".beads/issues.jsonl", &issue, "due", due, &listed);
    }
}

#[test]
fn a_store_may_leave_its_date_empty() {
    for none in ["", "''", "null"] {
        let task = format!("---\nid: task-1\ntitle: A\ndue_date: {none}\n---\n");
        check_store("backlog/tasks/task-1 - A.md", &task, "due", None, &[]);
    }
}

#[test]
fn no_status_and_no_dependency_of_an_issue_is_lost() {
    let check = |more: &str, status: &str, listed: &[(&str, u32)]| {
        let issue = format!(r#"{{"id":"a-1","title":"A",{more}}}"#);
        check_store(".beads/issues.jsonl", &issue, "status", Some(status), listed);
    };
    check(r#""status":"open""#, "pending", &[]);
    check(r#""priority":1"#, "pending", &[]);
    check(r#""status":"closed""#, "completed", &[]);
    check(r#""status":"in review""#, "pending", &[("in review", 1)]);
    for (kind, listed) in [("blocks", true), ("waits-for", true), ("parent-child", true), ("related", false)]
    {
        let more = format!(r#""dependencies":[{{"depends_on_id":"a-9","type":"{kind}"}}]"#);
        check(&more, "pending", if listed { &[("a-9", 1)] } else { &[] });
    }
}
