use super::*;

/// The titles of the plans with their numbers of steps, and the paths that were left or could not be read.
#[track_caller]
fn check(files: &[(&str, &[u8])], plans: &[(&str, usize)], left: &[&str], unread: &[(&str, u32, u32)]) {
    let source =
        |(path, bytes): &(&str, &[u8])| SourceFile { path: (*path).to_owned(), bytes: bytes.to_vec() };
    let files: Vec<_> = files.iter().map(source).collect();
    let brought = bring("top", &files, &Words::default()).expect("there is a plan");
    let found: Vec<_> = brought.plans.iter().map(|it| (it.title.as_str(), it.steps.len())).collect();
    assert_eq!(found, plans);
    let found: Vec<_> =
        brought.unmapped.iter().filter(|it| it.line.is_none()).map(|it| it.path.as_str()).collect();
    assert_eq!(found, left);
    let found: Vec<_> = brought.unread.iter().map(|it| (it.path.as_str(), it.line, it.column)).collect();
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
    let error = bring("b", &broken, &Words::default()).expect_err("there is nothing else");
    assert_eq!(error, Nothing::NotUtf8 { path: "b.md".to_owned() });
}
