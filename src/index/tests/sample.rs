//! A few plans that a person could have written.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::texts::put;
use crate::index::{
    FileRow, FullText, IndexError, Key, Knowledge, Match, Packed, Place, Query, Stamp, Table, Texts,
};
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Order, Plan, PlanKind, Step};
use crate::plan::problem::{Code, Problem};
use crate::plan::read::{Content, Source};
use crate::plan::records::{Attempt, Claim, Note, NoteType, Priority};
use crate::plan::time::Time;
use crate::plan::words::{PlanStatus, Stated, StepStatus};
use crate::plan::{decision, insight, script};

/// A full-text index in memory that holds the texts of [`plans`].
pub(super) fn index() -> FullText {
    let mut texts = FullText::open(Place::Memory).expect("there is memory").0;
    fill(&mut texts, &plans());
    texts
}

/// Stores the texts of plans.
pub(super) fn fill(index: &mut FullText, plans: &[Plan]) {
    let texts = plans.iter().map(|plan| Texts::of_head(&packed(plan).head, plan));
    put(index, texts.collect(), &[]).expect("they fit");
}

pub(super) fn packed(plan: &Plan) -> Packed {
    let key = Key { is_archived: plan.is_archived, name: plan.id.as_str().to_owned() };
    Packed::new(key, 1, &files(), plan)
}

pub(super) fn files() -> Vec<FileRow> {
    let stamp = Stamp::new(120, 1_795_252_443_000_000_000, 5, 1, 1);
    ["plan.md", "step-1.md"].map(|it| FileRow::new(it, stamp, "0f", i64::MAX)).to_vec()
}

/// The result of a user's query over [`plans`].
pub(super) fn sql(query: &str) -> Result<Table, IndexError> {
    sql_within(query, Duration::from_secs(600))
}

pub(super) fn sql_within(query: &str, limit: Duration) -> Result<Table, IndexError> {
    let files = files();
    let rows = plans().iter().map(|it| it.id.to_string()).collect::<Vec<_>>();
    let rows = rows.iter().flat_map(|plan| files.iter().map(move |it| (format!("{plan}/{}", it.name), it)));
    let mut seen = std::collections::HashSet::new();
    let rows: Vec<_> = rows.filter(|(path, _)| seen.insert(path.clone())).collect();
    crate::index::sql(query, limit, rows.into_iter(), plans().iter(), knowledge)
}

fn knowledge() -> Knowledge {
    let content = |text: &str| {
        Ok(Content {
            bytes: text.as_bytes().to_vec(),
            etag: String::new(),
            modified: Time::from_nanoseconds(0),
        })
    };
    let source = |path: &str, text: &str| Source { path: path.to_owned(), content: content(text) };
    let old = "20261119T091403.250Z-login";
    let first = source(
        &format!("_decisions/{old}.md"),
        "---\ntopic: login\nby: ann\n---\n# login\n\n## Decision\n\nNone.\n",
    );
    let later = format!("---\ntopic: login\nsupersedes: {old}\ntags: [web]\n---\n# login\n\nPasswords.\n");
    let later = source("_decisions/20261121T091403.250Z-login.md", &later);
    let note =
        source("_insights/20261121T101500.000Z-cache.md", "---\nplan: p\n---\n# Cache\n\nIt is cold.\n");
    let build = source("_scripts/build.md", "---\ncommand: make\n---\n# Build\n");
    Knowledge {
        decisions: vec![decision::read(&first), decision::read(&later)],
        insights: vec![insight::read(&note)],
        scripts: vec![script::read(&build)],
    }
}

/// The ids of the plans and steps that a query finds, best first. `plans` are those in the index.
pub(super) fn ids(index: &mut FullText, plans: &[Plan], query: &Query) -> Vec<String> {
    let found = index.look().expect("it is readable").search(query).expect("any text is a query");
    let id = |it: &Match| {
        let is_it = |plan: &&Plan| plan.id.as_str() == it.key.name && plan.is_archived == it.key.is_archived;
        let plan = plans.iter().find(is_it).expect("it is a plan");
        it.place.map_or(plan.id.to_string(), |at| plan.steps[at].id.to_string())
    };
    found.iter().map(id).collect()
}

pub(super) fn plans() -> Vec<Plan> {
    vec![auth(), garden(), billing(), old()]
}

fn auth() -> Plan {
    let mut schema = step("feature-auth", "1", "Write the schema", StepStatus::Completed);
    schema.attempts = vec![
        attempt("2026-11-20T08:00:00Z", "ann", "failed", "the token column was missing"),
        attempt("2026-11-21T09:14:03.250Z", "claude", "completed", "42 users migrated"),
    ];
    let mut login = step("feature-auth", "2", "Build the login page", StepStatus::InProgress);
    login.body = "# Build the login page\n\nUsers sign in with a password;\nOAuth comes later.\n".to_owned();
    login.claim = Some(Box::new(Claim {
        id: "h4f09a21".to_owned(),
        by: Some("claude".to_owned()),
        at: Some(time("2026-11-21")),
    }));
    login.depends = vec![id("feature-auth", "1")];
    login.metadata = map(&json!({"effort": 5}));
    let mut tests = step("feature-auth", "2.5", "Test sessions", StepStatus::Pending);
    tests.depends = vec![id("feature-auth", "2"), id("billing", "1")];
    tests.priority = Some(Priority::High);
    tests.tags = vec!["qa".to_owned()];
    let mut gone = step("feature-auth", "10", "Ship it", StepStatus::Pending);
    gone.etag = None;
    let message = "`feature-auth/plan.md` lists step 10, but there is no such file";
    gone.problems = vec![
        Problem::of_file(
            &gone.path,
            Code::MissingStepFile,
            message,
            "`planwatch check --fix` creates the file",
        )
        .fixable(),
    ];
    Plan {
        body: "# User authentication\n\nLogin, tokens and sessions.\n".to_owned(),
        description: Some("Login, tokens and sessions.".to_owned()),
        category: Some("feature".to_owned()),
        priority: Priority::High,
        due: "2026-12-24".parse().ok(),
        tags: vec!["security".to_owned(), "web".to_owned()],
        program: Some(PlanId::new("launch")),
        program_at: None,
        steps: vec![schema, login, tests, gone],
        ..plan("feature-auth", "User authentication", PlanStatus::Active)
    }
}

fn garden() -> Plan {
    let mut fence = step("garden", "1", "Order the fence", StepStatus::Failed);
    fence.attempts = vec![attempt("2026-11-19", "ann", "no answer", "left voicemail for Jim's Fencing")];
    fence.notes = vec![Note {
        at: Some(time("2026-11-19")),
        kind: NoteType::Warning,
        by: Some("ann".to_owned()),
        text: "the neighbour's café is closed on Mondays".to_owned(),
    }];
    let mut fruit = step("garden", "2", "Plant fruit", StepStatus::Pending);
    fruit.status = Stated::Unknown("someday".to_owned());
    let mut duplicate = step("garden", "2", "Plant apple trees", StepStatus::Pending);
    duplicate.path = "garden/step-02.md".to_owned();
    duplicate.problems =
        vec![Problem::of_file(&duplicate.path, Code::DuplicateStepNumber, "the same number", "rename one")];
    let notes = vec![Note { text: "Never use `DROP TABLE` here".to_owned(), ..Note::default() }];
    Plan {
        notes,
        tags: vec!["web".to_owned()],
        steps: vec![fence, duplicate, fruit],
        ..plan("garden", "The garden in spring", PlanStatus::Active)
    }
}

fn billing() -> Plan {
    let invoices = step("billing", "1", "Send invoices for tokens", StepStatus::Skipped);
    let body = "# Billing\n\nInvoices; nothing about users but their token counts. Token, token, token.\n";
    Plan { body: body.to_owned(), steps: vec![invoices], ..plan("billing", "Billing", PlanStatus::Active) }
}

fn old() -> Plan {
    let mut first = step("feature-auth", "1", "The first login", StepStatus::Completed);
    first.path = "_archive/feature-auth/step-1.md".to_owned();
    Plan {
        is_archived: true,
        path: "_archive/feature-auth/plan.md".to_owned(),
        steps: vec![first],
        ..plan("feature-auth", "Authentication, first try", PlanStatus::Abandoned)
    }
}

fn plan(name: &str, title: &str, status: PlanStatus) -> Plan {
    Plan {
        id: PlanId::new(name),
        is_archived: false,
        path: format!("{name}/plan.md"),
        etag: Some("0f".to_owned()),
        modified: Some(time("2026-11-21T09:14:03.5Z")),
        status: Stated::Known(status),
        title: title.to_owned(),
        description: None,
        kind: PlanKind::Plan,
        program: None,
        program_at: None,
        category: None,
        priority: Priority::Medium,
        due: None,
        tags: Vec::new(),
        files: Vec::new(),
        goals: Vec::new(),
        success_criteria: Vec::new(),
        order: Order::Dependencies,
        confirm_phases: Vec::new(),
        confirmations: Vec::new(),
        draft: Value::Null,
        created_at: Some(time("2026-11-01")),
        metadata: Map::new(),
        notes: Vec::new(),
        custom: Map::new(),
        body: String::new(),
        steps: Vec::new(),
        problems: Vec::new(),
        waits_inside: false,
    }
}

fn step(plan: &str, number: &str, title: &str, status: StepStatus) -> Step {
    Step {
        id: id(plan, number),
        path: format!("{plan}/step-{number}.md"),
        etag: Some("0f".to_owned()),
        modified: Some(time("2026-11-21T09:14:03Z")),
        title: title.to_owned(),
        status: Stated::Known(status),
        claim: None,
        depends: Vec::new(),
        phase: None,
        kind: None,
        assignee: None,
        priority: None,
        due: None,
        tags: Vec::new(),
        created_at: None,
        created_by: "user".to_owned(),
        needs_confirmation: false,
        confirmed: None,
        verify: Vec::new(),
        touches: None,
        result: None,
        notes: Vec::new(),
        attempts: Vec::new(),
        metadata: Map::new(),
        custom: Map::new(),
        tasks_done: 0,
        tasks_total: 0,
        ranges: Vec::new(),
        depends_at: Vec::new(),
        body: String::new(),
        problems: Vec::new(),
        run: None,
    }
}

fn attempt(at: &str, by: &str, outcome: &str, notes: &str) -> Attempt {
    let text = |it: &str| Some(it.to_owned());
    let more = map(&json!({"seconds": 90}));
    Attempt { at: Some(time(at)), by: text(by), outcome: text(outcome), notes: text(notes), more }
}

fn id(plan: &str, number: &str) -> StepId {
    StepId { plan: PlanId::new(plan), number: number.parse().expect("it is a number") }
}

fn time(text: &str) -> Time {
    text.parse().expect("it is a time")
}

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}
