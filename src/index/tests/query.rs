//! Searches and SQL queries of users: what they find, and that they change nothing.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::sample;
use super::texts::put;
use crate::index::{Document, FullText, Index, Kind, MATCH_END, MATCH_START, Place, Query, Scope, snippets};

fn ids(query: &Query) -> Vec<String> {
    sample::ids(&mut sample::index(), &sample::plans(), query)
}

/// Asserts that a query finds these ids, in this order.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(ids(&Query::new(text)), expected, "{text}");
}

#[test]
fn all_words_must_be_there_and_titles_come_first() {
    check("login", &["feature-auth:2", "feature-auth"]);
    check("authentication", &["feature-auth"]);
    check("token", &["billing:1", "billing", "feature-auth", "feature-auth:1"]);
    check("login page", &["feature-auth:2"]);
    check("login fence", &[]);
}

#[test]
fn names_notes_attempts_and_tags_are_searched() {
    check("feature-auth", &["feature-auth"]);
    check("voicemail", &["garden:1"]);
    check("security", &["feature-auth"]);
    check("migrated", &["feature-auth:1"]);
    check("qa", &["feature-auth:2.5"]);
}

#[test]
fn case_accents_and_the_end_of_the_last_word_do_not_matter() {
    check("OAUTH", &["feature-auth:2"]);
    check("cafe", &["garden:1"]);
    check("CAFÉ", &["garden:1"]);
    check("voicem", &["garden:1"]);
    check("voicem jim", &[]);
    check("\"voicem\"", &[]);
}

#[test]
fn phrases_and_exclusions_narrow() {
    check("\"login page\"", &["feature-auth:2"]);
    check("\"page login\"", &[]);
    check("login -oauth", &["feature-auth"]);
    check("token -\"token column\" -billing -sessions", &["billing:1"]);
    check("-login", &[]);
    check("", &[]);
}

#[test]
fn signs_of_the_full_texts_own_language_are_text() {
    for text in [
        "\"", "\"\"\"", "a\"b", "*", "login*)", "(", "title:", "^", "NEAR(", "AND", "a AND", "NOT", "{x}",
        "-",
    ] {
        ids(&Query::new(text));
    }
    check("Jim's", &["garden:1"]);
    check("\"DROP TABLE\"", &["garden"]);
    check("'; DROP TABLE document; --", &[]);
    check("login\0page", &["feature-auth:2"]);
    check("title:login", &[]);
}

#[test]
fn kind_scope_and_limit_are_kept() {
    let login = Query::new("login");
    assert_eq!(ids(&Query { kind: Some(Kind::Plan), ..login.clone() }), ["feature-auth"]);
    assert_eq!(ids(&Query { kind: Some(Kind::Step), ..login.clone() }), ["feature-auth:2"]);
    assert_eq!(ids(&Query { limit: 1, ..login.clone() }), ["feature-auth:2"]);
    assert_eq!(ids(&Query { limit: 0, ..login.clone() }), [""; 0]);
    let mut index = sample::index();
    let all = Query { scope: Scope::All, ..login };
    let all = index.look().expect("it is readable").search(&all).expect("any text is a query");
    let archived: Vec<_> = all.iter().filter(|it| it.key.is_archived).map(|it| it.place).collect();
    assert_eq!((archived, all.len()), (vec![Some(0)], 3));
}

#[test]
fn snippets_are_one_line_with_every_match_marked() {
    let step = sample::plans()[0].steps[1].clone();
    let query = Query::new("password");
    let found =
        snippets(&query, &[Document::of_step(&step), Document::default()]).expect("any text is a query");
    let snippet = found[0].as_ref().expect("it matches").replace(MATCH_START, "[").replace(MATCH_END, "]");
    assert_eq!(snippet, "# Build the login page Users sign in with a [password]; OAuth comes later.");
    assert_eq!(found[1], None);
}

#[test]
fn the_order_is_that_of_ids_where_ranks_are_equal() {
    let mut index = FullText::open(Place::Memory).expect("there is memory").0;
    let twin = |it: &str| crate::plan::model::Plan {
        id: crate::plan::id::PlanId::new(it),
        ..sample::plans().swap_remove(2)
    };
    let twins = ["c", "a", "b"].map(twin);
    sample::fill(&mut index, &twins);
    let query = Query { kind: Some(Kind::Plan), ..Query::new("invoices") };
    assert_eq!(sample::ids(&mut index, &twins, &query), ["a", "b", "c"]);
    assert_eq!(sample::ids(&mut index, &twins, &Query { limit: 2, ..query }), ["a", "b"]);
}

#[test]
fn words_are_found_within_texts_without_spaces() {
    let mut plan = sample::plans().swap_remove(0);
    plan.title = "将用户手册翻译成中文".to_owned();
    plan.steps[0].title = "公開予約ページv2".to_owned();
    let mut index = FullText::open(Place::Memory).expect("there is memory").0;
    sample::fill(&mut index, std::slice::from_ref(&plan));
    let cases: [(&str, &[&str]); 8] = [
        ("翻译", &["feature-auth"]),
        ("用户 翻译", &["feature-auth"]),
        ("将用户手册翻译成中文", &["feature-auth"]),
        ("译翻", &[]),
        ("翻译 -中文", &[]),
        ("予約", &["feature-auth:1"]),
        ("ページ", &["feature-auth:1"]),
        ("v2", &["feature-auth:1"]),
    ];
    for (text, expected) in cases {
        assert_eq!(
            sample::ids(&mut index, std::slice::from_ref(&plan), &Query::new(text)),
            expected,
            "{text}"
        );
    }
    let found = snippets(&Query::new("翻译"), &[Document::of_plan(&plan)]).expect("any text is a query");
    assert_eq!(found, [Some("将用户手册[翻译]成中文".replace('[', "\u{2}").replace(']', "\u{3}"))]);
}

#[test]
fn texts_put_again_or_gone_leave_nothing_behind() {
    let mut index = sample::index();
    let old = Query { scope: Scope::All, ..Query::new("login") };
    let mut plans = sample::plans();
    plans[0].steps[1].title = "Build the door".to_owned();
    plans[0].steps[1].body = "It is of oak".to_owned();
    sample::fill(&mut index, &plans);
    let gone = sample::packed(&plans.remove(3)).head.key;
    let heads: Vec<_> = plans.iter().map(|it| sample::packed(it).head).collect();
    let look = index.look().expect("it is readable");
    let state = look.unsearched(Some(&heads), &[]).expect("it is sound");
    assert_eq!((state.missing, &state.gone), (Vec::new(), &vec![gone]));
    drop(look);
    put(&mut index, Vec::new(), &state.gone).expect("there is room");
    assert_eq!(sample::ids(&mut index, &plans, &old), ["feature-auth"]);
    let mut fresh = FullText::open(Place::Memory).expect("there is memory").0;
    sample::fill(&mut fresh, &plans);
    let all = |index: &mut FullText| {
        let query = Query { limit: 99, ..Query::new("t") };
        index.look().expect("it is readable").search(&query).expect("any text is a query")
    };
    assert_eq!(all(&mut index), all(&mut fresh), "ranks are those of a new index");
}

#[test]
fn any_text_is_a_query() {
    let documents: Vec<_> = sample::plans().iter().map(Document::of_plan).collect();
    let index = std::cell::RefCell::new(sample::index());
    let texts =
        "[a-z\"\\-*():^{}+ \0]{0,20}|.{0,40}".prop_map(|it| Query { scope: Scope::All, ..Query::new(it) });
    let found = TestRunner::new(ProptestConfig::with_cases(512)).run(&texts, |query| {
        let mut index = index.borrow_mut();
        let hits = index.look().and_then(|it| it.search(&query));
        hits.map_err(|it| TestCaseError::fail(it.to_string()))?;
        let found = snippets(&query, &documents).map_err(|it| TestCaseError::fail(it.to_string()))?;
        for snippet in found.into_iter().flatten() {
            let n_marks = |mark: char| snippet.matches(mark).count();
            prop_assert_eq!(n_marks(MATCH_START), n_marks(MATCH_END));
            prop_assert!(!snippet.contains('\n'));
        }
        Ok(())
    });
    found.expect("any text is a query");
}

#[track_caller]
fn check_sql(query: &str, expected: &Value) {
    let table = sample::sql(query).expect("it is a query");
    assert_eq!(&json!(table.rows), expected, "{query}");
}

#[test]
fn views_use_the_words_of_the_file_format() {
    check_sql(
        "SELECT id, status, status_source, steps_total, steps_completed FROM plans WHERE NOT archived ORDER BY id",
        &json!([
            ["billing", "completed", "steps", 1, 0],
            ["feature-auth", "active", "file", 4, 1],
            ["garden", "active", "file", 3, 0]
        ]),
    );
    check_sql(
        "SELECT id, number, step_number, status, claim_by, etag FROM steps WHERE plan = 'feature-auth' AND NOT archived
         ORDER BY step_number",
        &json!([
            ["feature-auth:1", "1", 1.0, "completed", null, "0f"],
            ["feature-auth:2", "2", 2.0, "in_progress", "claude", "0f"],
            ["feature-auth:2.5", "2.5", 2.5, "pending", null, "0f"],
            ["feature-auth:10", "10", 10.0, "pending", null, null]
        ]),
    );
    check_sql(
        "SELECT nth, at, by, outcome, notes, more ->> 'seconds' FROM attempts WHERE step = 'feature-auth:1' AND nth = 2",
        &json!([[2, "2026-11-21T09:14:03Z", "claude", "completed", "42 users migrated", 90]]),
    );
    check_sql(
        "SELECT step, depends_on, depends_on_plan, depends_on_number FROM dependencies WHERE depends_on_plan <> plan",
        &json!([["feature-auth:2.5", "billing:1", "billing", "1"]]),
    );
    check_sql(
        "SELECT plan, step, type, text FROM notes ORDER BY step",
        &json!([
            ["garden", null, "info", "Never use `DROP TABLE` here"],
            ["garden", "garden:1", "warning", "the neighbour's café is closed on Mondays"]
        ]),
    );
    check_sql(
        "SELECT tag, plan, step FROM tags ORDER BY 1, 2",
        &json!([
            ["qa", "feature-auth", "feature-auth:2.5"],
            ["security", "feature-auth", null],
            ["web", "feature-auth", null],
            ["web", "garden", null]
        ]),
    );
    check_sql(
        "SELECT severity, code, path, line, fixable, step FROM problems ORDER BY code",
        &json!([
            ["error", "duplicate-step-number", "garden/step-02.md", 1, 0, "garden:2"],
            ["warning", "missing-step-file", "feature-auth/step-10.md", 1, 1, "feature-auth:10"]
        ]),
    );
    check_sql(
        "SELECT * FROM files WHERE path = 'billing/step-1.md'",
        &json!([["billing/step-1.md", 120, "2026-11-21T09:14:03Z", "0f"]]),
    );
}

#[test]
fn knowledge_is_a_view_too() {
    check_sql(
        "SELECT topic, decision, decided_at, superseded_by IS NOT NULL, tags ->> 0 FROM decisions ORDER BY id",
        &json!([
            ["login", "None.", "2026-11-19T09:14:03Z", 1, null],
            ["login", "Passwords.", "2026-11-21T09:14:03Z", 0, "web"]
        ]),
    );
    check_sql("SELECT title, text, plan FROM insights", &json!([["Cache", "It is cold.", "p"]]));
    check_sql("SELECT id, name, command, directory FROM scripts", &json!([["build", "Build", "make", "."]]));
}

#[test]
fn values_keep_their_kind() {
    check_sql(
        "VALUES (1, 1.5, 'x', x'00ff', NULL, 9e999, 'a' || char(0) || 'b')",
        &json!([[1, 1.5, "x", "00ff", null, "inf", "a\0b"]]),
    );
    let table = sample::sql("SELECT 1 AS a, 2 AS a").expect("it is a query");
    assert_eq!(table.columns, ["a", "a"]);
}

/// Asserts that a query is refused with this code.
#[track_caller]
fn check_refused(query: &str, code: &str) {
    let error = sample::sql(query).expect_err("it is no query");
    assert_eq!(error.code(), code, "{query}: {error}");
}

#[test]
fn statements_that_may_do_more_than_read_are_refused() {
    for query in [
        "",
        "-- only a comment",
        "DELETE FROM file_row",
        "INSERT INTO meta VALUES ('a', x'00')",
        "UPDATE plan_row SET title = ''",
        "REPLACE INTO meta VALUES ('a', x'00')",
        "DROP TABLE meta",
        "CREATE TABLE t (a)",
        "ATTACH 'other.db' AS other",
        "DETACH main",
        "PRAGMA query_only = 0",
        "PRAGMA user_version = 9",
        "VACUUM INTO 'copy.db'",
        "BEGIN IMMEDIATE",
        "COMMIT",
        "SAVEPOINT s",
        "REINDEX",
        "ANALYZE",
        "/* SELECT */ DELETE FROM file_row",
        "WITH a AS (SELECT 1) DELETE FROM file_row",
        "WITH a AS (SELECT 1) INSERT INTO file_row SELECT 'a', 1, 1, 'x'",
        "EXPLAIN DELETE FROM file_row",
        "SELECT 1; DELETE FROM file_row",
        "SELECT 1; SELECT 2",
        "SELECT ?1",
    ] {
        check_refused(query, "sql-refused");
    }
}

#[test]
fn errors_in_queries_have_the_message_of_sqlite() {
    for (query, part) in [
        ("SELECT * FROM plan", "no such table: plan"),
        ("SELECT nam FROM plans", "no such column: nam"),
        ("SELECT FROM", "syntax error"),
        ("SELECT load_extension('x')", "no such function"),
        ("SELECT load_extension('x', 'y')", "no such function"),
        ("SELECT readfile('/etc/passwd')", "no such function"),
        ("SELECT * FROM pragma_query_only(0)", ""),
        ("SELECT json('{')", "malformed JSON"),
        ("SELECT abs(-9223372036854775808)", "integer overflow"),
    ] {
        let error = sample::sql(query).expect_err("it is wrong");
        assert_eq!(error.code(), "sql-error", "{query}");
        assert!(error.to_string().contains(part), "{query}: {error}");
    }
}

#[test]
fn a_connection_reads_only_between_writes() {
    let index = Index::open(Place::Memory).expect("there is memory").0;
    let error = index.store.connection.execute("DELETE FROM plan", []).expect_err("it is read only");
    assert!(error.to_string().contains("readonly"), "{error}");
}

/// The page for users. The tests below check its examples and its lists of columns.
const PAGE: &str = include_str!("../../../docs/index.md");

#[test]
fn every_example_of_the_page_is_a_query() {
    let examples =
        PAGE.split("```sql\n").skip(1).filter_map(|it| it.split_once("```")).map(|(query, _)| query);
    let examples = examples.collect::<Vec<_>>();
    assert!(examples.len() >= 5);
    for query in examples {
        let table = sample::sql(query).expect("examples are right");
        assert!(!table.rows.is_empty(), "{query}");
    }
}

#[test]
fn the_page_names_every_column_of_every_view() {
    let views = sample::sql("SELECT name FROM sqlite_schema WHERE type = 'view' ORDER BY name")
        .expect("it is a query");
    let sections = PAGE.split("\n### `").skip(1).filter_map(|it| it.split_once("`\n"));
    let mut documented = Vec::new();
    for (view, section) in sections {
        let cells = section.lines().filter_map(|it| it.strip_prefix("| `")?.split_once(" |"));
        let columns = cells.flat_map(|(cell, _)| cell.split(", ").map(|it| it.trim_matches('`').to_owned()));
        let table = sample::sql(&format!("SELECT * FROM {view}")).expect("the view exists");
        assert_eq!(columns.collect::<Vec<_>>(), table.columns, "{view}");
        documented.push(vec![json!(view)]);
    }
    documented.sort_by_key(|it| it[0].to_string());
    assert_eq!(documented, views.rows);
}

#[test]
fn an_endless_query_is_stopped() {
    let query = "WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a) SELECT count(*) FROM a";
    let error = sample::sql_within(query, std::time::Duration::ZERO).expect_err("it does not end");
    assert!(error.to_string().contains("took too long"), "{error}");
}
