#![expect(clippy::disallowed_methods, reason = "tests edit files as editors do")]

mod answers;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, sync_channel};

use super::*;
use crate::api::context::{Here, Reading};
use crate::api::daemon::Freshness;
use crate::disk::{PlansDir, RealDisk};
use crate::index::{Change, Index, Place};
use crate::serve::daemon::context_factory::{self, Contexts};
use crate::serve::daemon::watcher::system::Raw;
use crate::serve::ipc::event::Event;
use crate::serve::ipc::event::Told;
use crate::store::load;

/// Far longer than anything takes.
const DEADLINE: Duration = Duration::from_secs(60);

fn context(home: &Path) -> Result<Context, Error> {
    let plans = PlansDir::open(Arc::new(RealDisk), &home.join("plans"), Some(&home.join("state")))?;
    Ok(Context { reading: Reading::Index, ..Context::of(plans) })
}

/// Remembers what was told.
#[derive(Default)]
struct Heard {
    events: Vec<String>,
    polling: Vec<bool>,
}

impl Listener for Heard {
    fn ready(&mut self, _status: &Status) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn event(&mut self, event: &Event) -> ControlFlow<()> {
        let new = serde_json::to_value(&event.what).unwrap();
        self.events.push(format!("{} {} {}", event.what.word(), event.id, new["new"].as_str().unwrap_or("")));
        ControlFlow::Continue(())
    }

    fn polling(&mut self, why: Option<&str>) {
        self.polling.push(why.is_some());
    }
}

/// A daemon that hears of the file system only what a test lets through.
struct Rig<'a> {
    daemon: Daemon<'a>,
    home: &'a Path,
    seen: Receiver<Message>,
    through: Sender<Message>,
}

/// Runs a test with a daemon on `plans/a/step-1.md`, pending.
fn with_rig(test: impl FnOnce(&mut Rig<'_>)) -> Heard {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    write(&home, "a/step-1.md", "pending");
    let homes = Homes { runtime: None, temporary: home.join("sockets") };
    let look = || context(&home);
    let mut heard = Heard::default();
    let ((sender, seen), (through, receiver)) = (mpsc::channel(), mpsc::channel());
    let inbox = Inbox { sender, receiver, ..Inbox::default() };
    let daemon = Daemon::begin(&look, &homes, inbox, &mut heard).unwrap().unwrap();
    let mut rig = Rig { daemon, home: &home, seen, through };
    // The trial of the start, of which the daemon is to hear.
    rig.let_through_cookie();
    test(&mut rig);
    rig.daemon.leave("the test is over");
    heard
}

fn write(home: &Path, path: &str, status: &str) {
    let path = home.join("plans").join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("---\nstatus: {status}\n---\n# Step\n")).unwrap();
}

impl Rig<'_> {
    fn write(&self, path: &str, status: &str) {
        write(self.home, path, status);
    }

    /// Takes what the system told so far, up to a cookie that is made for that.
    fn events_so_far(&mut self) -> Vec<Raw> {
        let plans = (self.daemon.context)().unwrap().plans;
        plans.make_cookie("none", "test").unwrap();
        let mut all = Vec::new();
        loop {
            let Ok(Message::Seen(batch)) = self.seen.recv_timeout(DEADLINE) else { panic!("no events") };
            let is_last = batch.iter().any(|it| it.is_of("test"));
            all.extend(batch);
            if is_last {
                std::fs::remove_file(self.home.join("plans/.planwatch/cookies/test")).unwrap();
                return all;
            }
        }
    }

    fn let_through(&mut self, events: Vec<Raw>) {
        self.through.send(Message::Seen(events)).unwrap();
        assert!(self.daemon.turn().unwrap().is_continue());
    }

    fn let_through_all(&mut self) {
        let events = self.events_so_far();
        self.let_through(events);
    }

    fn let_through_cookie(&mut self) {
        self.let_through_all();
        assert!(self.daemon.waiting.is_empty(), "the first cookie came");
    }

    /// Lets through one batch after the other, until something is so.
    fn let_through_seen(&mut self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            let message = self.seen.recv_timeout(DEADLINE).unwrap();
            self.through.send(message).unwrap();
            assert!(self.daemon.turn().unwrap().is_continue());
            while self.daemon.mending.is_some() && !is_so(self) {
                assert!(self.daemon.turn().unwrap().is_continue());
            }
        }
    }

    /// Asks whether the index is right.
    fn ask(&mut self) -> (Receiver<Answer>, mpsc::SyncSender<()>) {
        self.ask_for(Ask::Sync)
    }

    fn ask_for(&mut self, ask: Ask) -> (Receiver<Answer>, mpsc::SyncSender<()>) {
        let (reply, answers) = sync_channel(1);
        let (done, is_sent) = sync_channel(0);
        self.through.send(Message::Asked(Asked { ask, reply, is_sent, peer: None })).unwrap();
        assert!(self.daemon.turn().unwrap().is_continue());
        (answers, done)
    }

    /// The status in the index, of which the daemon says that it is right.
    fn indexed(&self, plan: &str) -> Option<String> {
        let directory = (self.daemon.context)().unwrap().plans.runtime_dir().unwrap();
        let (index, _) = Index::open(Place::Directory(&directory)).unwrap();
        let plan = index.load_plan(&PlanId::new(plan)).unwrap()?;
        plan.steps.first().map(|it| it.status.word().to_owned())
    }

    /// Lets time pass until nothing is left to tell.
    fn settle(&mut self) {
        while !self.daemon.untold.is_empty() {
            assert!(self.daemon.turn().unwrap().is_continue());
        }
    }
}

fn is_fresh(answer: &Receiver<Answer>) -> bool {
    matches!(answer.try_recv(), Ok(Answer::Sync { fresh: true, generation: Some(_) }))
}

/// Writes as planwatch does.
fn write_own(rig: &Rig<'_>, status: &str) {
    let plans = (rig.daemon.context)().unwrap().plans;
    let text = format!("---\nstatus: {status}\n---\n# Step\n");
    let mut edit = |_: &[u8]| Ok::<_, std::convert::Infallible>(text.clone().into_bytes());
    plans.lock(&mut || {}).unwrap().change(Path::new("a/step-1.md"), &mut edit).unwrap();
}

#[test]
fn who_asks_is_told_of_what_planwatch_has_just_written() {
    with_rig(|rig| {
        write_own(rig, "done");
        let (answer, _done) = rig.ask();
        rig.let_through_all();
        assert!(is_fresh(&answer));
        assert_eq!(rig.indexed("a").as_deref(), Some("completed"));
        // Also if it was to be left alone for long.
        write_own(rig, "pending");
        let later = Instant::now() + DEADLINE;
        rig.daemon.dirty.plans.insert("a".to_owned());
        rig.daemon.dirty.own = Some((later, later));
        drop(rig.events_so_far());
        let (answer, _done) = rig.ask();
        assert_eq!(rig.indexed("a").as_deref(), Some("completed"));
        rig.let_through_all();
        assert!(is_fresh(&answer));
        assert_eq!(rig.indexed("a").as_deref(), Some("pending"));
    });
}

#[test]
fn only_what_planwatch_wrote_is_left_alone_for_a_moment() {
    let mut dirty = Dirty::default();
    assert_eq!(dirty.due(), None);
    dirty.add("a".to_owned(), Sign::Exchanged);
    let (first, last) = dirty.own.unwrap();
    assert_eq!((first, dirty.due()), (last, Some(last + OWN_SETTLE)));
    dirty.add("b".to_owned(), Sign::Exchanged);
    dirty.add("b".to_owned(), Sign::Closed);
    assert_eq!(dirty.own.map(|it| it.0), Some(first));
    dirty.own = Some((first, first + LONGEST_OWN_SETTLE));
    assert_eq!(dirty.due(), Some(first + LONGEST_OWN_SETTLE));
    // A save of somebody else takes them along, and what planwatch writes then changes nothing.
    for (name, sign) in [("c", Sign::Closed), ("d", Sign::Exchanged), ("e", Sign::Other)] {
        dirty.add(name.to_owned(), sign);
        assert!(dirty.due().is_some_and(|it| it <= Instant::now()));
    }
    assert_eq!(dirty.plans.len(), 5);
}

#[test]
fn planwatchs_own_writes_are_told_from_editors_saves() {
    with_rig(|rig| {
        let signs = |events: &[Raw]| {
            let of_step = (0..events.len()).filter(|at| events[*at].is_of("step-1.md"));
            of_step.map(|at| sign(events, at)).collect::<Vec<_>>()
        };
        write_own(rig, "done");
        assert_eq!(signs(&rig.events_so_far()), [Sign::Exchanged, Sign::Exchanged, Sign::Closed]);
        rig.write("a/step-1.md", "wip");
        let (new, step) = (rig.home.join("plans/a/new"), rig.home.join("plans/a/step-1.md"));
        std::fs::copy(&step, &new).unwrap();
        std::fs::rename(&step, rig.home.join("plans/a/old")).unwrap();
        std::fs::rename(&new, &step).unwrap();
        let signs = signs(&rig.events_so_far());
        assert!(signs.len() > 3 && !signs.contains(&Sign::Exchanged), "{signs:?}");
    });
}

#[test]
fn events_that_do_not_come_are_no_answer() {
    let heard = with_rig(|rig| {
        let (answer, _done) = rig.ask();
        while rig.daemon.polling.is_none() {
            assert!(rig.daemon.turn().unwrap().is_continue());
        }
        assert_eq!(answer.recv(), Ok(Answer::Sync { fresh: false, generation: None }));
        // It is looked for changes all the same, and events that come again end that.
        rig.write("a/step-1.md", "done");
        while rig.indexed("a").as_deref() != Some("completed") {
            assert!(rig.daemon.turn().unwrap().is_continue());
        }
        rig.let_through_all();
        assert!(rig.daemon.polling.is_none());
    });
    assert_eq!(heard.polling, [true, false]);
}

#[test]
fn what_was_in_a_directory_before_its_watch_is_found() {
    let heard = with_rig(|rig| {
        rig.write("b/step-1.md", "pending");
        rig.write("b/deep/notes.md", "pending");
        let events = rig.events_so_far();
        assert_eq!(events.iter().filter(|it| it.is_of("step-1.md")).count(), 0, "nothing tells of the file");
        rig.let_through(events);
        assert_eq!(rig.indexed("b").as_deref(), Some("pending"));
        rig.settle();
        // From here on there are events, also in what was inside.
        rig.write("b/step-1.md", "done");
        rig.write("b/deep/notes.md", "done");
        let events = rig.events_so_far();
        assert!(events.iter().any(|it| it.is_of("step-1.md")));
        assert!(events.iter().any(|it| it.is_of("notes.md")));
        rig.let_through(events);
        rig.settle();
    });
    let expected = ["added b active", "added b:1 pending", "status b:1 completed", "status b completed"];
    assert_eq!(heard.events, expected);
}

#[test]
fn lost_events_mean_a_look_at_everything() {
    let heard = with_rig(|rig| {
        rig.write("a/step-1.md", "wip");
        rig.write("b/step-1.md", "pending");
        drop(rig.events_so_far());
        rig.let_through(vec![Raw::overflow()]);
        assert_eq!(rig.indexed("a").as_deref(), Some("in_progress"));
        assert_eq!(rig.indexed("b").as_deref(), Some("pending"));
        // The directory that nothing told of is watched now.
        rig.write("b/step-1.md", "done");
        assert!(rig.events_so_far().iter().any(|it| it.is_of("step-1.md")));
        rig.let_through(vec![Raw::overflow()]);
        rig.settle();
    });
    let expected = ["status a:1 in_progress", "added b completed", "added b:1 completed"];
    assert_eq!(heard.events, expected);
}

#[test]
fn a_moved_directory_is_known_by_its_new_name() {
    let heard = with_rig(|rig| {
        let plans = rig.home.join("plans");
        std::fs::rename(plans.join("a"), plans.join("b")).unwrap();
        std::fs::rename(plans.join("b"), plans.join("c")).unwrap();
        // Before the daemon has heard of it: there is a new directory of the old name.
        rig.write("a/step-2.md", "pending");
        rig.let_through_all();
        rig.settle();
        rig.write("c/step-1.md", "wip");
        rig.write("a/step-2.md", "wip");
        rig.let_through_all();
        rig.settle();
        assert_eq!(rig.indexed("b"), None);
        assert_eq!(rig.indexed("c").as_deref(), Some("in_progress"));
    });
    let expected = [
        "removed a:1 ",
        "added a:2 pending",
        "added c active",
        "added c:1 pending",
        "status a:2 in_progress",
        "status c:1 in_progress",
    ];
    let mut told = heard.events;
    told.sort();
    let mut expected = expected.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(told, expected);
}

#[test]
fn what_others_put_into_the_index_is_not_believed() {
    with_rig(|rig| {
        rig.write("b/step-1.md", "pending");
        rig.let_through_all();
        let directory = (rig.daemon.context)().unwrap().plans.runtime_dir().unwrap();
        let (mut index, _) = Index::open(Place::Directory(&directory)).unwrap();
        // As a thread of this process, or a command, that looked long ago and was slow.
        let key = index.snapshot().unwrap().heads().unwrap()[0].key.clone();
        index.write(&mut [Change::Remove(key)].into_iter()).unwrap();
        // Nothing comes of what happens meanwhile.
        std::fs::write(rig.home.join("plans/b/notes.txt"), "nothing").unwrap();
        let (answer, _done) = rig.ask();
        rig.let_through_all();
        assert!(is_fresh(&answer));
        assert_eq!(rig.indexed("a").as_deref(), Some("pending"));
    });
}

#[test]
fn its_own_things_are_made_again() {
    with_rig(|rig| {
        let own = rig.home.join("plans/.planwatch");
        std::fs::remove_dir_all(&own).unwrap();
        rig.write("a/step-1.md", "done");
        rig.let_through_seen(|rig| rig.daemon.mending.is_some());
        let mend = |rig: &mut Rig<'_>| {
            while rig.daemon.mending.is_some() {
                assert!(rig.daemon.turn().unwrap().is_continue());
            }
        };
        mend(rig);
        rig.write("b/step-1.md", "wip");
        rig.let_through_seen(|rig| rig.daemon.untold.contains_key(&PlanId::new("b")));
        assert!(!own.exists(), "whoever deletes it may be deleting the plans as well");
        rig.settle();
        // Any command makes it.
        assert!(context(rig.home).unwrap().plans.runtime_dir().is_some());
        rig.let_through_seen(|rig| rig.daemon.mending.is_some());
        mend(rig);
        assert!(own.join("daemon.sock").exists());
        let (answer, _done) = rig.ask();
        rig.let_through_all();
        assert!(is_fresh(&answer));
        assert_eq!(rig.indexed("a").as_deref(), Some("completed"));
    });
}

#[test]
fn nothing_is_put_into_what_is_being_deleted() {
    with_rig(|rig| {
        let own = rig.home.join("plans/.planwatch");
        rig.write("b/step-1.md", "wip");
        rig.let_through_all();
        let names = || own.read_dir().unwrap().flatten().map(|it| it.file_name()).collect::<Vec<_>>();
        // What `rm -rf` has done when it has come half-way.
        std::fs::remove_dir_all(rig.home.join("plans/a")).unwrap();
        let events = rig.events_so_far();
        for name in names().iter().filter(|it| it.to_string_lossy().starts_with("index")) {
            std::fs::remove_file(own.join(name)).unwrap();
        }
        let before = names();
        rig.let_through(events);
        assert_eq!(names(), before, "it is let come to an end");
        while rig.daemon.deleting.is_some() {
            assert!(rig.daemon.turn().unwrap().is_continue());
        }
        let is_index = |it: &std::ffi::OsString| it.to_string_lossy() == crate::index::Index::file_name();
        assert!(names().iter().any(is_index));
    });
}

#[test]
fn a_commit_that_is_known_saves_the_walk() {
    with_rig(|rig| {
        let sure = rig.daemon.sure;
        assert!(sure.is_some());
        // The files say something else, of which the one who is believed knows nothing.
        rig.write("a/step-1.md", "done");
        let mut context = (rig.daemon.context)().unwrap();
        let status =
            |it: &Context| load::all(it).unwrap().iter().next().unwrap().steps[0].status.word().to_owned();
        context.freshness = Freshness::Attested(Box::new(move || sure));
        assert_eq!(status(&context), "pending");
        let is_late = AtomicBool::new(true);
        let late = move || if is_late.swap(false, Ordering::Relaxed) { "71".parse().ok() } else { sure };
        context.freshness = Freshness::Attested(Box::new(late));
        assert_eq!(status(&context), "pending", "where the index has gone on it is asked again");
        context.freshness = Freshness::Attested(Box::new(|| "71".parse().ok()));
        assert_eq!(status(&context), "completed", "another commit is no answer");
        context.freshness = Freshness::Attested(Box::new(|| None));
        assert_eq!(status(&context), "completed");
    });
}

impl Rig<'_> {
    /// What the daemon says of what lies around a plan, as texts.
    #[track_caller]
    fn check_around(&mut self, plan: &str, spellings: &[&str], odd: &[&str], waiting: &[&str]) {
        let (answer, _done) = self.ask_for(Ask::Around(plan.to_owned()));
        self.let_through_all();
        let Ok(Answer::Around { around: Some(told) }) = answer.try_recv() else { panic!("it does not know") };
        let paths = |of: Vec<(bool, String)>| {
            let path = |(is_archived, name)| if is_archived { format!("_archive/{name}") } else { name };
            of.into_iter().map(path).collect::<Vec<_>>()
        };
        assert_eq!(paths(told.spellings), spellings);
        assert_eq!(paths(told.odd), odd);
        assert_eq!(paths(told.waiting), waiting);
    }
}

#[test]
fn what_lies_around_a_plan_follows_the_files() {
    with_rig(|rig| {
        rig.check_around("a", &["a"], &[], &[]);
        rig.write("A/step-1.md", "pending\ndepends: [a:1, b:1]");
        rig.write("é/step-1.md", "pending");
        rig.write("_archive/a/step-1.md", "pending\ndepends: [b:1]");
        rig.check_around("a", &["A", "a", "_archive/a"], &["é"], &["A"]);
        rig.check_around("b", &[], &["é"], &["A"]);
        rig.write("A/step-1.md", "pending\ndepends: [b:1]");
        std::fs::remove_dir_all(rig.home.join("plans/é")).unwrap();
        rig.check_around("a", &["A", "a", "_archive/a"], &[], &[]);
        rig.daemon.dirty.is_everything = true;
        rig.check_around("a", &["A", "a", "_archive/a"], &[], &[]);
        rig.check_around("b", &[], &[], &["A"]);
    });
}

/// Lets time pass until something is held back.
fn hold(rig: &mut Rig<'_>) {
    let a = PlanId::new("a");
    while rig.daemon.untold.get(&a).is_none_or(|it| it.held.is_empty()) {
        assert!(rig.daemon.turn().unwrap().is_continue());
    }
}

#[test]
fn a_save_in_place_is_not_told_as_a_step_that_lost_its_status() {
    let heard = with_rig(|rig| {
        rig.write("a/step-1.md", "done");
        rig.let_through_all();
        rig.settle();
        let step = rig.home.join("plans/a/step-1.md");
        std::fs::write(&step, "").unwrap();
        rig.let_through_all();
        hold(rig);
        rig.write("a/step-1.md", "done\ntitle: Saved in place");
        rig.let_through_all();
        rig.settle();
        // What stays empty is told.
        std::fs::write(&step, "").unwrap();
        rig.let_through_all();
        hold(rig);
        rig.settle();
    });
    let told = ["status a:1 completed", "status a completed", "status a:1 pending", "status a active"];
    assert_eq!(heard.events, told);
}

#[test]
fn whose_change_it_is_is_told_when_no_command_can_be_about_to_say_so() {
    let heard = with_rig(|rig| {
        let (plans, a) = ((rig.daemon.context)().unwrap().plans, PlanId::new("a"));
        // A command has written, and holds the lock until it has said so.
        let locked = plans.lock(&mut || {}).unwrap();
        rig.write("a/step-1.md", "done");
        rig.let_through_all();
        rig.daemon.untold.insert(a.clone(), Untold::default());
        assert!(rig.daemon.tell().unwrap().is_continue());
        assert!(rig.daemon.untold.contains_key(&a), "it is told later");
        assert_eq!(rig.daemon.known[&a].steps[0].status.word(), "pending");
        drop(locked);
        rig.settle();
    });
    assert_eq!(heard.events, ["status a:1 completed", "status a completed"]);
}

#[test]
fn what_is_held_back_says_nothing_of_another_file() {
    let heard = with_rig(|rig| {
        for step in ["a/step-1.md", "a/step-2.md", "a/step-3.md"] {
            rig.write(step, "wip");
        }
        rig.let_through_all();
        rig.settle();
        let path = |name: &str| rig.home.join("plans/a").join(name);
        let (first, second) = (path("step-1.md"), path("step-2.md"));
        std::fs::write(&first, "").unwrap();
        rig.let_through_all();
        hold(rig);
        // The moment of the first one's second look is the second one's first.
        let held = &mut rig.daemon.untold.get_mut(&PlanId::new("a")).unwrap().held;
        held.values_mut().for_each(|since| *since -= DEADLINE);
        std::fs::write(&second, "").unwrap();
        rig.write("a/step-3.md", "done");
        rig.let_through_all();
        hold(rig);
        rig.write("a/step-2.md", "wip");
        rig.let_through_all();
        rig.settle();
    });
    let told: Vec<_> = heard.events.iter().filter(|it| it.starts_with("status")).collect();
    assert_eq!(told, ["status a:1 in_progress", "status a:1 pending", "status a:3 completed"]);
}

#[test]
fn a_feed_is_told_of_a_change_before_it_has_settled_and_after() {
    with_rig(|rig| {
        let feed = Feed::beginning(rig.daemon.since);
        let mut told = feed.subscribe();
        rig.daemon.feed = Some(feed);
        rig.write("a/step-1.md", "done");
        rig.let_through_all();
        assert!(
            matches!(told.try_recv(), Ok((_, Told::Changed { plan: Some(plan) })) if plan.as_str() == "a")
        );
        rig.settle();
        let later = std::iter::from_fn(|| told.try_recv().ok());
        let events: Vec<_> = later.filter(|(_, it)| matches!(it, Told::Event(_))).collect();
        assert_eq!(events.len(), 2, "the step and its plan: {events:?}");
    });
}

#[test]
fn a_request_in_the_daemons_own_process_asks_without_a_socket() {
    with_rig(|rig| {
        let home = rig.home.to_path_buf();
        let outer: Contexts = Arc::new(move || {
            let here = Here { step: Some("a:1".to_owned()), ..Here::default() };
            Ok(Context { here, ..context(&home)? })
        });
        let (sender, receiver) = mpsc::channel();
        let contexts = context_factory::within(outer, &Inbox { sender, receiver, ..Inbox::default() });
        // Nobody answers there, so nobody knows.
        let now = contexts().unwrap();
        assert_eq!(now.here.step, None);
        let Freshness::Attested(nobody) = now.freshness else { panic!("somebody is asked") };
        assert!(nobody.commit().is_none());
        let (sender, receiver) = (rig.through.clone(), mpsc::channel().1);
        let home = rig.home.to_path_buf();
        let inbox = Inbox { sender, receiver, ..Inbox::default() };
        let contexts = context_factory::within(Arc::new(move || context(&home)), &inbox);
        let Freshness::Attested(witness) = contexts().unwrap().freshness else { panic!("somebody is asked") };
        rig.write("a/step-1.md", "done");
        let asking = std::thread::spawn(move || witness.commit());
        // Its question comes, then its cookie.
        assert!(rig.daemon.turn().unwrap().is_continue());
        rig.let_through_all();
        assert_eq!(asking.join().unwrap(), rig.daemon.sure);
        assert_eq!(rig.indexed("a").as_deref(), Some("completed"));
    });
}
