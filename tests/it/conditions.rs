//! Changes with an expected etag: a verb on a plan or a step checks the etag of its file, and the other verbs refuse the
//! condition.

use std::sync::Arc;

use planwatch::api::config::Config;
use planwatch::api::context::{Context, Here, KeptSaves, Reading};
use planwatch::api::daemon::Freshness;
use planwatch::api::error::Error;
use planwatch::api::precondition::Expected;
use planwatch::disk::{PlansDir, RealDisk};
use planwatch::ops::add::{self, AddRequest};
use planwatch::ops::archive::{self, ArchiveRequest};
use planwatch::ops::claim::{self, ClaimRequest};
use planwatch::ops::decide::{self, DecideRequest};
use planwatch::ops::note::{self, NoteRequest};
use planwatch::ops::remove::{self, RemoveRequest};
use planwatch::ops::renumber::{self, RenumberRequest};
use planwatch::ops::replace::{self, ReplaceRequest};
use planwatch::ops::set::{self, SetOp, SetRequest};
use planwatch::ops::squash::{self, SquashRequest};
use planwatch::ops::upsert;
use planwatch::store::transaction::Mode;

use crate::support::{NOW, Place, tree};

fn context(place: &Place, etag: Option<&str>) -> Context {
    let root = place.file("plans");
    Context {
        plans: PlansDir::open(Arc::new(RealDisk), &root, Some(&place.top().join("state")))
            .expect("it is there"),
        now: NOW.parse().expect("it is a time"),
        by: "ann".to_owned(),
        config: Config::default(),
        reading: Reading::Files,
        here: Here { directory: root, ..Here::default() },
        freshness: Freshness::Unknown,
        expected: etag.map(|it| Expected::new(vec![it.to_owned()])),
        key: None,
        on_notice: Box::new(|_| {}),
        kept: KeptSaves::default(),
        planned: None,
    }
}

/// A verb on the plan `p` or on its second step.
type Verb = fn(&Context) -> Result<(), Error>;

fn set(context: &Context, id: &str) -> Result<(), Error> {
    let (id, key, op) = (id.to_owned(), "priority".to_owned(), SetOp::Text("high".to_owned()));
    let request = SetRequest { id, key, op, by: None, claim: None, force: false, mode: Mode::Write };
    set::set(context, &request).map(drop)
}

fn remove(context: &Context, id: &str) -> Result<(), Error> {
    let request = RemoveRequest { ids: vec![id.to_owned()], is_confirmed: true, ..RemoveRequest::default() };
    remove::remove(context, &request).map(drop)
}

fn note(context: &Context, id: &str) -> Result<(), Error> {
    let request = NoteRequest { id: id.to_owned(), text: "a word".to_owned(), ..NoteRequest::default() };
    note::note(context, &request).map(drop)
}

const VERBS: [(&str, &str, Verb); 11] = [
    ("set", "p:2", |it| set(it, "p:2")),
    ("set", "p", |it| set(it, "p")),
    ("note", "p:2", |it| note(it, "p:2")),
    ("note", "p", |it| note(it, "p")),
    ("claim", "p:2", |it| {
        claim::claim(it, &ClaimRequest { target: Some("p:2".to_owned()), ..ClaimRequest::default() })
            .map(drop)
    }),
    ("add", "p", |it| {
        let (plan, title) = ("p".to_owned(), "Four".to_owned());
        add::add(it, &AddRequest { plan, title, ..AddRequest::default() }).map(drop)
    }),
    ("squash", "p", |it| {
        let (steps, title) = (vec!["2".to_owned(), "3".to_owned()], "Both".to_owned());
        squash::squash(it, &SquashRequest { plan: "p".to_owned(), steps, title, ..SquashRequest::default() })
            .map(drop)
    }),
    ("move", "p:2", |it| {
        let (id, after) = ("p:2".to_owned(), "3".to_owned());
        let request = RenumberRequest {
            id,
            after,
            to: None,
            before: None,
            by: None,
            claim: None,
            force: false,
            ignores_branches: false,
            mode: Mode::Write,
        };
        renumber::renumber(it, &request).map(drop)
    }),
    ("replace", "p", |it| {
        let (list, shown) = ("- [ ] Only one\n".to_owned(), "-".to_owned());
        replace::replace(
            it,
            &ReplaceRequest {
                plan: "p".to_owned(),
                list,
                shown,
                by: None,
                created_by: None,
                force: false,
                ignores_branches: false,
                mode: Mode::Write,
            },
        )
        .map(drop)
    }),
    ("archive", "p", |it| {
        archive::archive(it, &ArchiveRequest { plans: vec!["p".to_owned()], ..ArchiveRequest::default() })
            .map(drop)
    }),
    ("remove", "p:2", |it| remove(it, "p:2")),
];

fn place() -> Place {
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n");
    for step in 1..=3 {
        place.write(&format!("plans/p/step-{step}.md"), format!("# Step {step}\n"));
    }
    place
}

fn etag(place: &Place, id: &str) -> String {
    let context = context(place, None);
    let etag = match id {
        "p" => upsert::plan(&context, "p").expect("it is there").0.etag,
        step => upsert::step(&context, step).expect("it is there").0.etag,
    };
    etag.expect("it has a file")
}

#[test]
fn every_verb_on_one_file_checks_the_expected_etag() {
    for (verb, id, run) in VERBS {
        let place = place();
        let before = tree(&place.file("plans"));
        let refused = run(&context(&place, Some("0123"))).expect_err(verb);
        assert_eq!((refused.code(), refused.exit_code()), ("file-changed", 4), "{verb} {id}");
        let details = refused.details();
        assert_eq!((&details["id"], &details["now"]["id"]), (&id.into(), &id.into()), "{verb}");
        assert_eq!(details["etag"], etag(&place, id), "{verb}");
        assert_eq!(tree(&place.file("plans")), before, "{verb} {id}");
        let right = etag(&place, id);
        run(&context(&place, Some(&right))).unwrap_or_else(|error| panic!("{verb} {id}: {error}"));
        assert_ne!(tree(&place.file("plans")), before, "{verb} {id}");
    }
    let place = place();
    let before = tree(&place.file("plans"));
    let refused = remove(&context(&place, Some("0123")), "p").expect_err("it is another one");
    assert_eq!(refused.code(), "file-changed");
    assert_eq!(tree(&place.file("plans")), before);
}

#[test]
fn a_verb_without_one_file_refuses_the_condition() {
    let place = place();
    let request =
        DecideRequest { topic: "auth".to_owned(), text: "tokens".to_owned(), ..DecideRequest::default() };
    let right = etag(&place, "p");
    let refused =
        decide::decide(&context(&place, Some(&right)), &request).expect_err("it cannot check the etag");
    assert_eq!(refused.code(), "usage");
    assert!(!place.file("plans/_decisions").exists());
    decide::decide(&context(&place, None), &request).expect("it works without a condition");
}
