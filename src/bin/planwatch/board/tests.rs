//! Tests what keys do to the model, and compares screens of several sizes with recorded ones. `PLANWATCH_BLESS=1`
//! records the screens again.
#![expect(clippy::disallowed_methods, reason = "with `PLANWATCH_BLESS`, the tests write the screens")]

use planwatch::api::context::{Context, Here, KeptSaves, Reading};
use planwatch::api::daemon::Freshness;
use planwatch::api::views::{PlanShape, Reason};
use planwatch::disk::{PlansDir, RealDisk};
use planwatch::ops::list::{self, ListReport, ListRequest};
use planwatch::ops::show::{self, ShowReport, ShowRequest, ShownPlan};
use planwatch::plan::model::PlanKind;
use planwatch::plan::transitions::Verb;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::engine::{Action, Loaded, Reply, Request, outcome_and_notes};
use super::keys::{self, Effect};
use super::model::{Column, Focus, Hit, Model, Severity, View};
use super::terminal::named_colours;
use super::view;

fn context() -> Context {
    let plans = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("plans-example");
    Context {
        plans: PlansDir::open(std::sync::Arc::new(RealDisk), &plans, None).unwrap(),
        now: "2026-11-25T12:00:00Z".parse().unwrap(),
        by: "ann".to_owned(),
        config: planwatch::api::config::Config::default(),
        reading: Reading::Files,
        freshness: Freshness::Unknown,
        here: Here::default(),
        expected: None,
        key: None,
        on_notice: Box::new(|_| {}),
        kept: KeptSaves::default(),
        planned: None,
    }
}

/// Reads the plans, the selected plan and the selected step, as the threads of the board do.
fn load(model: &mut Model) {
    let context = context();
    for is_first in [true, false] {
        let plans = is_first.then(|| match list::list(&context, &ListRequest::default()).unwrap() {
            ListReport::Plans { plans, .. } => plans,
            ListReport::Steps { .. } => panic!("plans were asked for"),
        });
        let show = |id: &String| {
            show::show(&context, &ShowRequest { id: id.clone(), ..ShowRequest::default() }).unwrap()
        };
        let plan = model.plan_id.as_ref().map(show).and_then(|it| match it {
            ShowReport::Plan(it) => Some(it),
            _ => None,
        });
        let step = model.step_id.as_ref().map(show).and_then(|it| match it {
            ShowReport::Step(it) => Some(it),
            _ => None,
        });
        // The times of the files differ between working trees.
        let plan = plan.map(|mut it| {
            it.plan.last_activity = None;
            it.steps.iter_mut().for_each(|it| it.last_activity = None);
            it
        });
        model.apply_loaded(Loaded {
            now: context.now,
            plans,
            plan_asked: model.plan_id.clone(),
            plan,
            step,
            output: None,
            error: None,
        });
    }
}

fn opened() -> Model {
    // The user is codex, who has claimed the step that is selected at the beginning.
    let mut model = Model::new(Some("ledger-migration".to_owned()), "codex".to_owned(), context().now);
    load(&mut model);
    load(&mut model);
    model
}

fn press(model: &mut Model, key: char) -> Option<Effect> {
    let code = match key {
        '\n' => KeyCode::Enter,
        '\t' => KeyCode::Tab,
        '\u{1b}' => KeyCode::Esc,
        c => KeyCode::Char(c),
    };
    keys::press(model, KeyEvent::new(code, KeyModifiers::NONE))
}

/// Presses these keys. Returns the effect of the last one.
fn type_in(model: &mut Model, keys: &str) -> Option<Effect> {
    keys.chars().map(|it| press(model, it)).last().flatten()
}

#[test]
fn each_key_asks_for_its_verb_on_the_selected_step() {
    let of = |action, text: Option<&str>| {
        let model = opened();
        let step = model.selected().unwrap();
        let (id, etag) = (step.id.clone(), step.etag.clone());
        Some(Effect::Request(Request { action, id, text: text.map(str::to_owned), etag }))
    };
    for (typed, action, text) in [
        ("c", Action::Claim, None),
        ("s", Action::Move(Verb::Start), None),
        ("d", Action::Move(Verb::Done), None),
        ("x", Action::Move(Verb::Skip), None),
        ("r", Action::Move(Verb::Reopen), None),
        ("y", Action::Confirm, None),
        ("f\n", Action::Move(Verb::Fail), None),
        ("fno disk\n", Action::Move(Verb::Fail), Some("no disk")),
        ("bq d\n", Action::Move(Verb::Block), Some("q d")),
        ("nask first\n", Action::Note, Some("ask first")),
        ("apartly: slow\n", Action::Attempt, Some("partly: slow")),
        ("+Measure\n", Action::Add, Some("Measure")),
    ] {
        assert_eq!(type_in(&mut opened(), typed), of(action, text), "{typed}");
    }
    let mut model = opened();
    assert_eq!(type_in(&mut model, "n\n"), None, "an empty note is asked for again");
    assert!(model.prompt.is_some());
    assert_eq!(type_in(&mut model, "\u{1b}"), None);
    assert!(model.prompt.is_none());
    assert_eq!(press(&mut model, 'q'), Some(Effect::Quit));
    assert_eq!(
        type_in(&mut model, ":add a 'b c'\n"),
        Some(Effect::Command(["add", "a", "b c"].map(str::to_owned).to_vec()))
    );
    assert_eq!(type_in(&mut model, ":add 'b\n"), None);
    assert_eq!(model.message.as_ref().map(|it| it.0), Some(Severity::Error));
    assert_eq!(outcome_and_notes("partly: slow: x"), ("partly".to_owned(), Some("slow: x".to_owned())));
}

#[test]
fn the_selection_moves_through_columns_and_stays_when_something_changes() {
    let mut model = opened();
    let before = model.step_id.clone();
    let own = Column::of(model.selected().unwrap());
    press(&mut model, 'l');
    assert_ne!(Column::of(model.selected().unwrap()), own);
    press(&mut model, 'h');
    assert_eq!(Column::of(model.selected().unwrap()), own);
    press(&mut model, '\t');
    assert_eq!(model.view, View::List);
    press(&mut model, 'G');
    let last = model.step_id.clone();
    assert_eq!(last.as_deref(), Some("ledger-migration:8"));
    type_in(&mut model, "nhalf");
    load(&mut model);
    assert_eq!((model.step_id.clone(), model.prompt.as_ref().unwrap().text()), (last, "half"));
    type_in(&mut model, "\u{1b}g");
    assert_eq!(model.step_id.as_deref(), Some("ledger-migration:1"));
    model.select_step(before);
    type_in(&mut model, "/rehears");
    assert!(model.shown().len() < model.steps().len());
    type_in(&mut model, "\u{1b}");
    assert_eq!(model.shown().len(), model.steps().len());
}

#[test]
fn a_search_selects_a_step_that_it_finds_so_that_no_hidden_step_is_changed() {
    let mut model = opened();
    type_in(&mut model, "/reconcile tot\n");
    assert_eq!(model.step_id.as_deref(), Some("ledger-migration:5"));
    type_in(&mut model, "/no such words\n");
    assert_eq!((model.shown().len(), press(&mut model, 'd')), (0, None));
    type_in(&mut model, "\u{1b}\u{1b}");
    assert_eq!(model.focus, Focus::Plans);
    type_in(&mut model, "/fence\n");
    assert_eq!((model.plan_id.as_deref(), model.plan_rows().len()), (Some("fence-repair"), 1));
    load(&mut model);
    press(&mut model, '\n');
    assert_eq!(model.shown().len(), model.steps().len(), "a search for plans leaves all steps");
}

#[test]
fn words_of_a_refused_request_can_be_sent_again() {
    let mut model = opened();
    let Some(Effect::Request(request)) = type_in(&mut model, "nask first\n") else { panic!("no request") };
    let text = "changed".to_owned();
    model.apply_reply(Reply::Refused { text, step: None, again: Some(request.clone()) });
    assert_eq!(model.message.as_ref().map(|it| it.0), Some(Severity::Error));
    assert_eq!(type_in(&mut model, "!\n"), {
        let text = Some("ask first!".to_owned());
        Some(Effect::Request(Request { text, ..request }))
    });
}

#[test]
fn a_line_is_edited_at_its_cursor() {
    let control = |c| (KeyCode::Char(c), KeyModifiers::CONTROL);
    let plain = |code| (code, KeyModifiers::NONE);
    let keys = [
        (plain(KeyCode::Left), "ab c|é"),
        (plain(KeyCode::Backspace), "ab |é"),
        (plain(KeyCode::Delete), "ab |"),
        (plain(KeyCode::Delete), "ab |"),
        (control('w'), "|"),
        (plain(KeyCode::Char('x')), "x|"),
        (plain(KeyCode::Home), "|x"),
        (plain(KeyCode::Left), "|x"),
        (plain(KeyCode::Char('y')), "y|x"),
        (control('e'), "yx|"),
        (control('a'), "|yx"),
        (plain(KeyCode::Right), "y|x"),
        (control('k'), "y|"),
        (control('u'), "|"),
    ];
    let mut model = opened();
    type_in(&mut model, "nab cé");
    for ((code, modifiers), expected) in keys {
        keys::press(&mut model, KeyEvent::new(code, modifiers));
        let (before, after) = model.prompt.as_ref().unwrap().parts();
        assert_eq!(format!("{before}|{after}"), expected, "{code:?}");
    }
    type_in(&mut model, "\u{1b}");
    keys::press(&mut model, KeyEvent::new(KeyCode::Char('d'), KeyModifiers::ALT));
    assert_eq!((model.prompt.is_none(), model.message), (true, None), "a key with Alt has no effect");
}

#[test]
fn a_program_within_a_program_hides_no_plan() {
    let mut model = opened();
    let mut plans = vec![model.plans[0].clone(); 4];
    for (plan, (id, kind, program)) in plans.iter_mut().zip([
        ("child", PlanKind::Plan, Some("outer")),
        ("outer", PlanKind::Program, None),
        ("inner", PlanKind::Program, Some("outer")),
        ("lost", PlanKind::Plan, Some("inner")),
    ]) {
        (plan.id, plan.kind, plan.program) = (id.to_owned(), kind, program.map(str::to_owned));
    }
    let (plan_asked, plan, step, output, error) = (None, None, None, None, None);
    model.apply_loaded(Loaded { now: model.now, plans: Some(plans), plan_asked, plan, step, output, error });
    let rows: Vec<_> = model.plan_rows().iter().map(|(it, is_child)| (it.id.clone(), *is_child)).collect();
    let expected = [("outer", false), ("child", true), ("inner", true), ("lost", false)];
    assert_eq!(rows, expected.map(|(id, is_child)| (id.to_owned(), is_child)));
}

/// Applies a read of the list of plans and of the open plan.
fn reread(model: &mut Model, plans: Vec<PlanShape>, plan: Option<Box<ShownPlan>>) {
    let (plan_asked, step, output, error) = (model.plan_id.clone(), None, None, None);
    model.apply_loaded(Loaded { now: model.now, plans: Some(plans), plan_asked, plan, step, output, error });
}

#[test]
fn a_whole_plan_is_changed_only_after_a_question() {
    let question = |model: &Model| model.prompt.as_ref().map(|it| format!("{} {}", it.label, it.keys));
    let mut model = opened();
    type_in(&mut model, "hhh");
    assert_eq!((model.focus, press(&mut model, 'x')), (Focus::Plans, None));
    let asked = "abandon the plan ledger-migration, 7 open steps? Enter abandons it, Esc cancels";
    assert_eq!(question(&model).as_deref(), Some(asked));
    for size in [(80, 24), (60, 20)] {
        let shown = screen(&mut model, size);
        assert!(
            shown.contains("ledger-migration, 7 open steps?") && shown.contains("Enter abandons it, Esc"),
            "{shown}"
        );
    }
    assert_eq!((type_in(&mut model, "\u{1b}"), question(&model)), (None, None));
    let abandoned = type_in(&mut model, "x\n");
    assert!(
        matches!(&abandoned, Some(Effect::Request(it)) if it.action == Action::Move(Verb::Skip) && it.id == "ledger-migration"),
        "{abandoned:?}"
    );
    // What the engine would refuse is refused without a question.
    for (key, expected) in [
        ('d', "`ledger-migration` has open steps: ledger-migration:2.75 (in_progress)"),
        ('s', "already active"),
        ('f', "`ledger-migration` is a plan; plans are started"),
    ] {
        press(&mut model, key);
        let said = model.message.clone().map(|it| it.1).or(question(&model)).unwrap_or_default();
        assert!(key == 's' || said.starts_with(expected) && question(&model).is_none(), "{key}: {said}");
        type_in(&mut model, "\u{1b}");
    }
}

#[test]
fn the_keys_of_the_focused_part_are_shown() {
    let mut model = opened();
    assert!(screen(&mut model, (80, 24)).contains("d done"));
    type_in(&mut model, "hhh");
    let foot = screen(&mut model, (80, 24));
    assert!(foot.contains("d complete plan  x abandon plan"), "{foot}");
    press(&mut model, '?');
    let keys = screen(&mut model, (140, 40));
    assert!(keys.contains("keys for a plan") && keys.contains("x  abandon it, after a question"), "{keys}");
}

#[test]
fn a_plan_that_is_closed_stays_selected_and_in_the_list_until_another_is_selected() {
    let mut model = opened();
    let (mut plans, mut plan) = (model.plans.clone(), model.plan.clone());
    plans.retain(|it| it.id != "ledger-migration");
    plan.as_mut().unwrap().plan.status = "abandoned".to_owned();
    reread(&mut model, plans.clone(), plan);
    let ids = |model: &Model| model.plan_rows().iter().map(|(it, _)| it.id.clone()).collect::<Vec<_>>();
    assert!(ids(&model).contains(&"ledger-migration".to_owned()), "{:?}", ids(&model));
    let other = plans[0].id.clone();
    model.select_plan(Some(other));
    assert!(!ids(&model).contains(&"ledger-migration".to_owned()), "{:?}", ids(&model));
    // If the selected plan disappears, the plan that is now in its row is selected, and the list of plans gets the focus.
    let mut model = opened();
    assert_eq!((model.focus, ids(&model)[0].as_str()), (Focus::Steps, "ledger-migration"));
    reread(&mut model, plans, None);
    assert_eq!((model.focus, model.plan_id.as_ref()), (Focus::Plans, ids(&model).first()));
}

#[test]
fn keys_that_follow_one_that_opens_a_plan_wait_for_its_steps() {
    let mut model = opened();
    type_in(&mut model, "hhhj\n");
    assert_eq!((model.focus, model.plan.is_none()), (Focus::Steps, true), "Enter counts once");
    assert!(model.is_reading());
    load(&mut model);
    assert!(!model.is_reading() && model.selected().is_some());
    let plans = model.plans.clone();
    type_in(&mut model, "hhhj\n");
    reread(&mut model, plans, None);
    assert!(!model.is_reading(), "a plan that cannot be read blocks no keys");
}

#[test]
fn a_move_that_cannot_be_made_asks_for_no_reason() {
    let mut model = opened();
    model.by = "ann".to_owned();
    for (step, is_unverified, why, end) in [
        ("1", false, "is completed;", "r reopens it"),
        ("2.75", false, "is claimed by codex", "which is recorded"),
        // The run of this claim died before it verified the step. So the claim no longer counts, and the step counts as
        // completed.
        ("2.75", true, "is completed;", "r reopens it"),
    ] {
        let steps = model.plan.iter_mut().flat_map(|it| &mut it.steps);
        steps.filter(|it| it.number == step).for_each(|it| it.unverified = is_unverified);
        model.select_step(Some(format!("ledger-migration:{step}")));
        for key in ['f', 'b'] {
            assert_eq!((press(&mut model, key), model.prompt.is_none()), (None, true), "{step} {key}");
            let (_, said) = model.message.clone().unwrap();
            assert!(said.contains(why) && said.ends_with(end), "{said}");
        }
    }
}

#[test]
fn plans_that_need_attention_come_first_and_have_their_sign() {
    let mut model = opened();
    let example = model.plans.iter().find(|it| it.id == "feature-auth").unwrap().clone();
    let with = |(id, attention): (&str, Option<Reason>)| PlanShape {
        id: id.to_owned(),
        attention,
        kind: PlanKind::Plan,
        ..example.clone()
    };
    let plans = [
        ("healthy", None),
        ("old", Some(Reason::Stale)),
        ("broken", Some(Reason::Faulty)),
        ("gate", Some(Reason::ToConfirm)),
        ("red", Some(Reason::Failed)),
    ];
    model.select_plan(None);
    reread(&mut model, plans.map(with).to_vec(), None);
    let shown = screen(&mut model, (80, 24));
    let lines = ["✗ red", "◇ gate", "! broken", "○ old", "○ healthy"];
    let rows: Vec<_> =
        lines.iter().map(|it| shown.find(it).unwrap_or_else(|| panic!("{it}: {shown}"))).collect();
    assert!(rows.is_sorted(), "{shown}");
}

#[test]
fn the_example_plans_have_their_attention_and_counts() {
    let model = opened();
    let of = |id: &str| model.plans.iter().find(|it| it.id == id).unwrap();
    assert_eq!(of("docs-onboarding").attention, Some(Reason::ToConfirm));
    let ledger = [(1, "ready"), (1, "lapsed"), (1, "failed")];
    assert_eq!(of("ledger-migration").counts(), ledger, "a lapsed step counts once");
}

#[test]
fn columns_without_steps_have_no_width_and_ready_is_preferred() {
    let mut model = opened();
    let plan = model.plan.as_mut().unwrap();
    for (nth, step) in plan.steps.iter_mut().enumerate() {
        (step.status, step.ready, step.lapsed) = ("pending".to_owned(), nth == 3, false);
        if nth > 5 {
            step.status = "completed".to_owned();
        }
    }
    plan.steps[0].status = "?".to_owned();
    model.select_step(Some("ledger-migration:8".to_owned()));
    let shown = screen(&mut model, (60, 24));
    assert!(shown.contains("││Ready 1 ") && shown.contains("Done 5 "), "{shown}");
    assert!(shown.contains("also: Waiting 4  In progress 0  Bloc"), "{shown}");
    let shown = screen(&mut model, (80, 24));
    assert!(shown.contains("││Ready 1            Blocked/Failed 1   Done 5"), "{shown}");
    assert!(shown.contains("file has an"), "{shown}");
}

#[test]
fn a_search_finds_who_works_on_what() {
    let mut model = opened();
    type_in(&mut model, "/wen zh\n");
    let found: Vec<_> = model.shown().iter().map(|it| it.id.clone()).collect();
    assert_eq!(found, ["ledger-migration:6"]);
    type_in(&mut model, "/codex\n");
    assert_eq!(model.step_id.as_deref(), Some("ledger-migration:2.75"));
    type_in(&mut model, "/no such words\n");
    assert!(screen(&mut model, (80, 24)).contains("no match"));
    type_in(&mut model, "\u{1b}\u{1b}/wen zh\n");
    assert_eq!((model.focus, model.plan_id.as_deref()), (Focus::Plans, Some("ledger-migration")));
    assert!(model.plan_rows().len() < model.plans.len());
}

#[test]
fn counts_have_their_own_colours() {
    let mut model = opened();
    type_in(&mut model, "hhh");
    let size = (200, 60);
    let shown = screen(&mut model, size);
    let line = shown
        .lines()
        .find(|it| it.contains("1 ready, 1 lapsed, 1 failed"))
        .unwrap_or_else(|| panic!("{shown}"));
    let y = shown.lines().position(|it| it == line).unwrap();
    let x = line[..line.find("1 ready").unwrap()].chars().count();
    let terminal = drawn(&mut model, size, true);
    let cell = &terminal.backend().buffer().content[y * usize::from(size.0) + x];
    assert_eq!(cell.fg, ratatui::style::Color::Cyan);
}

#[test]
fn a_step_that_changed_meanwhile_is_shown() {
    let mut model = opened();
    let mut step = model.selected().unwrap().clone();
    step.title = "Another title".to_owned();
    model.apply_reply(Reply::Refused { text: "changed".to_owned(), step: Some(Box::new(step)), again: None });
    assert_eq!(model.selected().unwrap().title, "Another title");
    assert_eq!(model.message, Some((Severity::Error, "changed".to_owned())));
}

#[test]
fn the_graph_of_a_sequential_plan_shows_the_step_before_each() {
    let mut model = opened();
    model.view = View::Graph;
    let plan = model.plan.as_mut().unwrap();
    plan.plan.order = planwatch::plan::model::Order::Sequential;
    plan.steps.iter_mut().for_each(|it| it.depends.clear());
    assert!(screen(&mut model, (120, 40)).contains("← 2.75"));
}

fn drawn(model: &mut Model, (width, height): (u16, u16), is_coloured: bool) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view::draw(model, frame, is_coloured)).unwrap();
    terminal
}

/// The screen's cells as lines without the spaces at their ends.
fn screen(model: &mut Model, size: (u16, u16)) -> String {
    let terminal = drawn(model, size, true);
    let buffer = terminal.backend().buffer();
    let rows = buffer.content.chunks(size.0.into());
    rows.map(|row| {
        let mut line = String::new();
        let mut skipped = 0;
        for cell in row {
            if skipped == 0 {
                line.push_str(cell.symbol());
                skipped = unicode_width::UnicodeWidthStr::width(cell.symbol()).max(1);
            }
            skipped -= 1;
        }
        line.trim_end().to_owned() + "\n"
    })
    .collect()
}

#[test]
fn every_key_is_shown_on_any_screen() {
    for size in [(80, 24), (80, 10), (60, 12), (30, 8), (20, 5), (140, 40)] {
        let mut model = opened();
        press(&mut model, '?');
        let mut seen = screen(&mut model, size);
        for _ in 0..keys::keys(false).len() {
            press(&mut model, 'j');
            seen += &screen(&mut model, size);
        }
        assert!(model.help.is_some(), "the keys that move scroll it");
        let width = usize::from(size.0);
        for (key, what) in keys::keys(false) {
            // On a narrow screen, the description of a key is cut at the edge.
            let what: String =
                what.chars().take(width.saturating_sub(key.chars().count() + 4).min(30)).collect();
            assert!(seen.contains(&format!("{key}  {what}")), "{key} {what} on {size:?}:\n{seen}");
        }
        let before = model.step_id.clone();
        press(&mut model, 'd');
        assert!(
            model.help.is_none() && model.step_id == before,
            "another key closes it and does nothing else"
        );
    }
}

#[test]
fn screens_look_as_in_their_files() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/board");
    let is_blessing = std::env::var_os("PLANWATCH_BLESS").is_some();
    let mut wrong = Vec::new();
    let views = [("", "board"), ("\t", "list"), ("\t\t", "graph"), ("\t\t\t", "timeline"), ("?", "help")];
    for (size, name, views) in [
        ((80, 24), "80x24", &views[..]),
        ((140, 40), "140x40", &views[..]),
        ((20, 5), "20x5", &views[..]),
        ((60, 20), "60x20", &views[..1]),
        ((200, 60), "200x60", &views[..1]),
    ] {
        for (keys, view) in views {
            let mut model = opened();
            type_in(&mut model, keys);
            let seen = screen(&mut model, size);
            let file = dir.join(format!("{view}-{name}.txt"));
            let disk: std::sync::Arc<dyn planwatch::disk::Disk> = std::sync::Arc::new(RealDisk);
            let expected = planwatch::disk::read_file(&*disk, &file).unwrap_or_default();
            if is_blessing {
                std::fs::write(&file, &seen).unwrap();
            } else if String::from_utf8_lossy(&expected) != seen {
                wrong.push(format!("{} is another screen now:\n{seen}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn without_colours_no_cell_has_one_and_the_selection_still_shows() {
    let terminal = drawn(&mut opened(), (80, 24), false);
    let cells = &terminal.backend().buffer().content;
    let reset = ratatui::style::Color::Reset;
    assert!(cells.iter().all(|it| it.fg == reset && it.bg == reset));
    assert!(cells.iter().any(|it| it.modifier.contains(ratatui::style::Modifier::REVERSED)));
}

#[test]
fn the_sixteen_colours_are_written_by_name() {
    let with = |codes: &str| format!("a38;5;6m\u{1b}[{codes}b");
    for (written, expected) in [
        ("38;5;6m", "36m"),
        ("38;5;9;48;5;0m", "91;40m"),
        ("1;38;5;15m", "1;97m"),
        ("38;5;200m", "38;5;200m"),
        ("38;5;6H", "38;5;6H"),
        ("0m", "0m"),
        ("m", "m"),
    ] {
        assert_eq!(named_colours(&with(written)), with(expected));
    }
}

#[test]
fn a_card_is_selected_by_a_click_and_moved_by_a_drag() {
    let mut model = opened();
    drop(drawn(&mut model, (240, 40), true));
    let place = |model: &Model, wanted: &dyn Fn(&Hit) -> bool| {
        model.hits.iter().find(|(_, it)| wanted(it)).map(|(area, _)| (area.x + 1, area.y + 1)).unwrap()
    };
    let id = model.column(Column::Ready).first().unwrap().id.clone();
    let (x, y) = place(&model, &|it| *it == Hit::Step(id.clone()));
    let mouse = |model: &mut Model, kind, (column, row)| {
        keys::mouse(model, MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
    };
    let down = MouseEventKind::Down(MouseButton::Left);
    assert_eq!(mouse(&mut model, down, (x, y - 1)), None);
    assert_eq!((model.step_id.clone(), model.focus), (Some(id.clone()), Focus::Steps));
    let to = place(&model, &|it| *it == Hit::Column(Column::Done));
    let effect = mouse(&mut model, MouseEventKind::Up(MouseButton::Left), to);
    assert!(
        matches!(effect, Some(Effect::Request(Request { action: Action::Move(Verb::Done), id: of, .. })) if of == id)
    );
    drop(drawn(&mut model, (240, 40), true));
    let id = model.column(Column::Doing).first().unwrap().id.clone();
    let (x, y) = place(&model, &|it| *it == Hit::Step(id.clone()));
    mouse(&mut model, down, (x, y - 1));
    let to = place(&model, &|it| *it == Hit::Column(Column::Ready));
    let effect = mouse(&mut model, MouseEventKind::Up(MouseButton::Left), to);
    assert!(
        matches!(effect, Some(Effect::Request(Request { action: Action::Release, id: of, .. })) if of == id)
    );
}
