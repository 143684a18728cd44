#![expect(clippy::disallowed_methods, reason = "tests edit files as editors do")]

mod answers;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, sync_channel};
use std::time::Duration;

use super::*;
use crate::api::context::{Here, Reading};
use crate::api::daemon::Freshness;
use crate::disk::{PlansDir, RealDisk};
use crate::index::{Change, Index, Place};
use crate::serve::daemon::context_factory::ContextFactory;
use crate::serve::daemon::feed::Feed;
use crate::serve::daemon::indexing::NEXT_ANSWER_LIMIT;
use crate::serve::daemon::publish::PendingPlan;
use crate::serve::daemon::watcher::system::{Raw, write_kind};
use crate::serve::ipc::event::{Event, Notification};
use crate::store::load::LoadQuery;

/// Far longer than any operation takes.
const DEADLINE: Duration = Duration::from_secs(60);

fn context(home: &Path) -> Result<Context, Error> {
    let plans = PlansDir::open(Arc::new(RealDisk), &home.join("plans"), Some(&home.join("state")))?;
    Ok(Context { reading: Reading::Index, ..Context::of(plans) })
}

/// Records the published events, the beginnings and ends of polling, and the changed plans.
#[derive(Default)]
struct Heard {
    events: Vec<String>,
    polling: Vec<bool>,
    changed: Vec<String>,
}

impl Observer for Heard {
    fn ready(&mut self, _status: &Status) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn event(&mut self, event: &Event) -> ControlFlow<()> {
        let new = serde_json::to_value(&event.what).unwrap();
        self.events.push(format!("{} {} {}", event.what.word(), event.id, new["new"].as_str().unwrap_or("")));
        ControlFlow::Continue(())
    }

    fn changed(&mut self, plan: Option<&PlanId>) {
        self.changed.extend(plan.map(|it| it.as_str().to_owned()));
    }

    fn polling(&mut self, why: Option<&str>) {
        self.polling.push(why.is_some());
    }
}

/// A daemon that receives only the events that the test passes on.
struct Rig<'a> {
    daemon: Daemon<'a>,
    home: &'a Path,
    seen: Receiver<Message>,
    through: Sender<Message>,
}

/// Runs a test with a daemon that watches the plan `a`, which has one pending step.
fn with_rig(test: impl FnOnce(&mut Rig<'_>)) -> Heard {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    write(&home, "a/step-1.md", "pending");
    let socket_dirs = SocketDirs { runtime: None, temporary: home.join("sockets") };
    let make_context = || context(&home);
    let mut heard = Heard::default();
    let ((sender, seen), (through, receiver)) = (mpsc::channel(), mpsc::channel());
    let inbox = Inbox { sender, receiver, ..Inbox::default() };
    let daemon = Daemon::begin(&make_context, &socket_dirs, inbox, &mut heard).unwrap();
    let mut rig = Rig { daemon, home: &home, seen, through };
    // The daemon must receive the event of the probe that it made at the start.
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
    fn turn(&mut self) {
        self.daemon.turn().unwrap();
    }

    fn poll(&mut self) {
        self.daemon.watching.poll("a test", self.daemon.subscribers.observer);
    }

    fn write(&self, path: &str, status: &str) {
        write(self.home, path, status);
    }

    /// Returns the events so far, up to a cookie that is created for this purpose.
    fn events_so_far(&mut self) -> Vec<Raw> {
        let plans = (self.daemon.turns.make_context)().unwrap().plans;
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
        self.turn();
    }

    fn let_through_all(&mut self) {
        let events = self.events_so_far();
        self.let_through(events);
    }

    fn let_through_cookie(&mut self) {
        self.let_through_all();
        assert!(self.daemon.cookies.waiting.is_empty(), "the first cookie came");
    }

    /// Passes on one batch after the other until a condition holds.
    fn let_through_seen(&mut self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            let message = self.seen.recv_timeout(DEADLINE).unwrap();
            self.through.send(message).unwrap();
            self.turn();
            while self.daemon.runtime_files.restore_at.is_some() && !is_so(self) {
                self.turn();
            }
        }
    }

    /// Asks whether the index is current.
    fn ask(&mut self) -> (Receiver<Answer>, mpsc::SyncSender<()>) {
        self.ask_for(Request::Sync)
    }

    fn ask_for(&mut self, request: Request) -> (Receiver<Answer>, mpsc::SyncSender<()>) {
        let (reply, answers) = sync_channel(1);
        let (done, is_sent) = sync_channel(0);
        self.through.send(Message::Request(SocketRequest { request, reply, is_sent, peer: None })).unwrap();
        self.turn();
        (answers, done)
    }

    /// The status of a plan's first step in the index.
    fn indexed(&self, plan: &str) -> Option<String> {
        let directory = (self.daemon.turns.make_context)().unwrap().plans.runtime_dir().unwrap();
        let (mut index, _) = Index::open(Place::Directory(&directory)).unwrap();
        let plan = index.snapshot().unwrap().load_plan(&PlanId::new(plan)).unwrap()?;
        plan.steps.first().map(|it| it.status.word().to_owned())
    }

    /// Runs turns until no change is pending.
    fn settle(&mut self) {
        while !self.daemon.publisher.pending.is_empty() {
            self.turn();
        }
    }
}

fn is_fresh(answer: &Receiver<Answer>) -> bool {
    matches!(answer.try_recv(), Ok(Answer::Sync { fresh: true, generation: Some(_), .. }))
}

/// Writes as a planwatch command does.
fn write_own(rig: &Rig<'_>, status: &str) {
    let plans = (rig.daemon.turns.make_context)().unwrap().plans;
    let text = format!("---\nstatus: {status}\n---\n# Step\n");
    let mut edit = |_: &[u8], _: &[Vec<u8>]| Some(text.clone().into_bytes());
    plans.lock(&mut || {}).unwrap().change(Path::new("a/step-1.md"), &mut edit).unwrap();
}

#[test]
fn an_answer_includes_the_write_just_before_it() {
    with_rig(|rig| {
        write_own(rig, "done");
        let (answer, _done) = rig.ask();
        rig.let_through_all();
        assert!(is_fresh(&answer));
        assert_eq!(rig.indexed("a").as_deref(), Some("completed"));
        // A request does not wait for the delay after planwatch's own writes.
        write_own(rig, "pending");
        let later = Instant::now() + DEADLINE;
        rig.daemon.indexing.dirty.plans.insert("a".to_owned());
        rig.daemon.indexing.dirty.own = Some((later, later));
        drop(rig.events_so_far());
        let (answer, _done) = rig.ask();
        assert_eq!(rig.indexed("a").as_deref(), Some("completed"));
        rig.let_through_all();
        assert!(is_fresh(&answer));
        assert_eq!(rig.indexed("a").as_deref(), Some("pending"));
    });
}

#[test]
fn planwatchs_own_writes_are_distinguished_from_editors_saves() {
    with_rig(|rig| {
        let signs = |events: &[Raw]| {
            let of_step = (0..events.len()).filter(|at| events[*at].is_of("step-1.md"));
            of_step.map(|at| write_kind(events, at)).collect::<Vec<_>>()
        };
        write_own(rig, "done");
        assert_eq!(
            signs(&rig.events_so_far()),
            [WriteKind::Exchanged, WriteKind::Exchanged, WriteKind::Closed]
        );
        rig.write("a/step-1.md", "wip");
        let (new, step) = (rig.home.join("plans/a/new"), rig.home.join("plans/a/step-1.md"));
        std::fs::copy(&step, &new).unwrap();
        std::fs::rename(&step, rig.home.join("plans/a/old")).unwrap();
        std::fs::rename(&new, &step).unwrap();
        let signs = signs(&rig.events_so_far());
        assert!(signs.len() > 3 && !signs.contains(&WriteKind::Exchanged), "{signs:?}");
    });
}

#[test]
fn missing_events_lead_to_polling() {
    let heard = with_rig(|rig| {
        let (answer, _done) = rig.ask();
        while rig.daemon.watching.polling_reason().is_none() {
            rig.turn();
        }
        assert_eq!(answer.recv(), Ok(Answer::Sync { fresh: false, generation: None, is_complete: false }));
        // Polling finds changes. It ends when events arrive again.
        rig.write("a/step-1.md", "done");
        while rig.indexed("a").as_deref() != Some("completed") {
            rig.turn();
        }
        rig.let_through_all();
        assert!(rig.daemon.watching.polling_reason().is_none());
    });
    assert_eq!(heard.polling, [true, false]);
}

#[test]
fn files_created_before_the_watch_of_their_directory_are_found() {
    let heard = with_rig(|rig| {
        rig.write("b/step-1.md", "pending");
        rig.write("b/deep/notes.md", "pending");
        let events = rig.events_so_far();
        assert_eq!(
            events.iter().filter(|it| it.is_of("step-1.md")).count(),
            0,
            "there is no event for the file"
        );
        rig.let_through(events);
        assert_eq!(rig.indexed("b").as_deref(), Some("pending"));
        rig.settle();
        // From now on, there are events for the files in the directory, too.
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
fn lost_events_lead_to_a_full_scan() {
    let heard = with_rig(|rig| {
        rig.write("a/step-1.md", "wip");
        rig.write("b/step-1.md", "pending");
        drop(rig.events_so_far());
        rig.let_through(vec![Raw::overflow()]);
        assert_eq!(rig.indexed("a").as_deref(), Some("in_progress"));
        assert_eq!(rig.indexed("b").as_deref(), Some("pending"));
        // The directory whose events were lost is watched now.
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
        // A new directory takes the old name before the daemon sees the events.
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
    let mut published = heard.events;
    published.sort_unstable();
    let mut expected = expected.map(str::to_owned).to_vec();
    expected.sort_unstable();
    assert_eq!(published, expected);
}

#[test]
fn stale_rows_written_by_others_are_replaced() {
    with_rig(|rig| {
        rig.write("b/step-1.md", "pending");
        rig.let_through_all();
        let directory = (rig.daemon.turns.make_context)().unwrap().plans.runtime_dir().unwrap();
        let (mut index, _) = Index::open(Place::Directory(&directory)).unwrap();
        // Simulates a slow thread or command that writes older data.
        let key = index.snapshot().unwrap().heads().unwrap()[0].key.clone();
        index.write(&mut [Change::Remove(key)].into_iter()).unwrap();
        // This file causes an irrelevant event.
        std::fs::write(rig.home.join("plans/b/notes.txt"), "nothing").unwrap();
        let (answer, _done) = rig.ask();
        rig.let_through_all();
        assert!(is_fresh(&answer));
        assert_eq!(rig.indexed("a").as_deref(), Some("pending"));
    });
}

#[test]
fn runtime_files_are_recreated() {
    with_rig(|rig| {
        let own = rig.home.join("plans/.planwatch");
        std::fs::remove_dir_all(&own).unwrap();
        rig.write("a/step-1.md", "done");
        rig.let_through_seen(|rig| rig.daemon.runtime_files.restore_at.is_some());
        let restore = |rig: &mut Rig<'_>| {
            while rig.daemon.runtime_files.restore_at.is_some() {
                rig.turn();
            }
        };
        restore(rig);
        rig.write("b/step-1.md", "wip");
        rig.let_through_seen(|rig| rig.daemon.publisher.pending.contains_key(&PlanId::new("b")));
        assert!(!own.exists(), "the plans directory may be about to be deleted, too");
        rig.settle();
        // Any command creates the directory.
        assert!(context(rig.home).unwrap().plans.runtime_dir().is_some());
        rig.let_through_seen(|rig| rig.daemon.runtime_files.restore_at.is_some());
        restore(rig);
        assert!(own.join("daemon.sock").exists());
        let (answer, _done) = rig.ask();
        rig.let_through_all();
        assert!(is_fresh(&answer));
        assert_eq!(rig.indexed("a").as_deref(), Some("completed"));
    });
}

#[test]
fn nothing_is_created_during_a_deletion() {
    with_rig(|rig| {
        let own = rig.home.join("plans/.planwatch");
        rig.write("b/step-1.md", "wip");
        rig.let_through_all();
        let names = || own.read_dir().unwrap().flatten().map(|it| it.file_name()).collect::<Vec<_>>();
        // The state of `rm -rf` half-way.
        std::fs::remove_dir_all(rig.home.join("plans/a")).unwrap();
        let events = rig.events_so_far();
        for name in names().iter().filter(|it| it.to_string_lossy().starts_with("index")) {
            std::fs::remove_file(own.join(name)).unwrap();
        }
        let before = names();
        rig.let_through(events);
        assert_eq!(names(), before, "nothing is created until the deletion ends");
        while rig.daemon.runtime_files.deletion.is_some() {
            rig.turn();
        }
        let is_index = |it: &std::ffi::OsString| it.to_string_lossy() == crate::index::Index::file_name();
        assert!(names().iter().any(is_index));
    });
}

#[test]
fn an_attested_commit_replaces_the_scan() {
    with_rig(|rig| {
        let verified = rig.daemon.indexing.index.verified();
        assert!(verified.is_some());
        // The files changed, but the daemon did not see it.
        rig.write("a/step-1.md", "done");
        let mut context = (rig.daemon.turns.make_context)().unwrap();
        let status = |it: &Context| {
            LoadQuery::all().load(it).unwrap().plans.iter().next().unwrap().steps[0].status.word().to_owned()
        };
        context.freshness = Freshness::Attested(Box::new(move || verified));
        assert_eq!(status(&context), "pending");
        let is_late = AtomicBool::new(true);
        let late = move || if is_late.swap(false, Ordering::Relaxed) { "71".parse().ok() } else { verified };
        context.freshness = Freshness::Attested(Box::new(late));
        assert_eq!(status(&context), "pending", "the daemon is asked again if the index has moved on");
        context.freshness = Freshness::Attested(Box::new(|| "71".parse().ok()));
        assert_eq!(status(&context), "completed", "another commit attests nothing");
        context.freshness = Freshness::Attested(Box::new(|| None));
        assert_eq!(status(&context), "completed");
    });
}

impl Rig<'_> {
    /// Checks the plans that relate to a plan according to the daemon.
    #[track_caller]
    fn check_dependents(&mut self, plan: &str, spellings: &[&str], odd: &[&str], waiting: &[&str]) {
        let (answer, _done) = self.ask_for(Request::Around(plan.to_owned()));
        self.let_through_all();
        let Ok(Answer::Around { around: Some(found) }) = answer.try_recv() else { panic!("no answer") };
        let paths = |of: Vec<(bool, String)>| {
            let path = |(is_archived, name)| if is_archived { format!("_archive/{name}") } else { name };
            of.into_iter().map(path).collect::<Vec<_>>()
        };
        assert_eq!(paths(found.spellings), spellings);
        assert_eq!(paths(found.odd), odd);
        assert_eq!(paths(found.waiting), waiting);
    }
}

#[test]
fn dependents_follow_the_files() {
    with_rig(|rig| {
        rig.check_dependents("a", &["a"], &[], &[]);
        rig.write("A/step-1.md", "pending\ndepends: [a:1, b:1]");
        rig.write("é/step-1.md", "pending");
        rig.write("_archive/a/step-1.md", "pending\ndepends: [b:1]");
        rig.check_dependents("a", &["A", "a", "_archive/a"], &["é"], &["A"]);
        rig.check_dependents("b", &[], &["é"], &["A"]);
        rig.write("A/step-1.md", "pending\ndepends: [b:1]");
        std::fs::remove_dir_all(rig.home.join("plans/é")).unwrap();
        rig.check_dependents("a", &["A", "a", "_archive/a"], &[], &[]);
        rig.daemon.indexing.dirty.is_everything = true;
        rig.check_dependents("a", &["A", "a", "_archive/a"], &[], &[]);
        rig.check_dependents("b", &[], &[], &["A"]);
    });
}

/// Runs turns until a change is held back.
fn hold(rig: &mut Rig<'_>) {
    let a = PlanId::new("a");
    while rig.daemon.publisher.pending.get(&a).is_none_or(|it| it.held.is_empty()) {
        rig.turn();
    }
}

#[test]
fn a_save_in_place_is_not_reported_as_a_lost_status() {
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
        // A file that stays empty is reported.
        std::fs::write(&step, "").unwrap();
        rig.let_through_all();
        hold(rig);
        rig.settle();
    });
    let published = ["status a:1 completed", "status a completed", "status a:1 pending", "status a active"];
    assert_eq!(heard.events, published);
}

#[test]
fn a_change_is_published_after_the_writers_lock_is_released() {
    let heard = with_rig(|rig| {
        let (plans, a) = ((rig.daemon.turns.make_context)().unwrap().plans, PlanId::new("a"));
        // Simulates a command that has written and still holds the lock.
        let locked = plans.lock(&mut || {}).unwrap();
        rig.write("a/step-1.md", "done");
        rig.let_through_all();
        rig.daemon.publisher.pending.insert(a.clone(), PendingPlan::default());
        rig.daemon.publish().unwrap();
        assert!(rig.daemon.publisher.pending.contains_key(&a), "it is published later");
        assert_eq!(rig.daemon.publisher.baseline[&a].steps[0].status.word(), "pending");
        drop(locked);
        rig.settle();
    });
    assert_eq!(heard.events, ["status a:1 completed", "status a completed"]);
}

#[test]
fn holding_back_one_file_does_not_delay_another() {
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
        // The first file becomes overdue, so its second check comes together with the first check of the second file.
        let held = &mut rig.daemon.publisher.pending.get_mut(&PlanId::new("a")).unwrap().held;
        held.values_mut().for_each(|since| *since -= DEADLINE);
        std::fs::write(&second, "").unwrap();
        rig.write("a/step-3.md", "done");
        rig.let_through_all();
        hold(rig);
        rig.write("a/step-2.md", "wip");
        rig.let_through_all();
        rig.settle();
    });
    let published: Vec<_> = heard.events.iter().filter(|it| it.starts_with("status")).collect();
    assert_eq!(published, ["status a:1 in_progress", "status a:1 pending", "status a:3 completed"]);
}

#[test]
fn a_feed_reports_a_change_before_and_after_it_settles() {
    with_rig(|rig| {
        let feed = Feed::beginning(rig.daemon.turns.now().unwrap().now);
        let mut published = feed.subscribe();
        rig.daemon.subscribers.feed = Some(feed);
        rig.write("a/step-1.md", "done");
        rig.let_through_all();
        assert!(
            matches!(published.try_recv(), Ok((_, Notification::Changed { plan: Some(plan) })) if plan.as_str() == "a")
        );
        rig.settle();
        let later = std::iter::from_fn(|| published.try_recv().ok());
        let events: Vec<_> = later.filter(|(_, it)| matches!(it, Notification::Event(_))).collect();
        assert_eq!(events.len(), 2, "the step and its plan: {events:?}");
    });
}

#[test]
fn the_observer_is_notified_of_a_changed_text_without_an_event() {
    let heard = with_rig(|rig| {
        let file = rig.home.join("plans/a/step-1.md");
        std::fs::write(file, "---\nstatus: pending\n---\n# Step\n\nMore text.\n").unwrap();
        rig.let_through_all();
        rig.settle();
    });
    assert_eq!((heard.changed.first().map(String::as_str), heard.events), (Some("a"), Vec::new()));
}

#[test]
fn a_request_in_the_daemons_own_process_needs_no_socket() {
    with_rig(|rig| {
        let home = rig.home.to_path_buf();
        let outer: ContextFactory = Arc::new(move || {
            let here = Here { step: Some("a:1".to_owned()), ..Here::default() };
            Ok(Context { here, ..context(&home)? })
        });
        let (sender, receiver) = mpsc::channel();
        let contexts = Inbox { sender, receiver, ..Inbox::default() }.contexts(outer);
        // No event loop reads this queue.
        let now = contexts().unwrap();
        assert_eq!(now.here.step, None);
        let Freshness::Attested(client) = now.freshness else { panic!("not attested") };
        assert!(client.commit().is_none());
        let (sender, receiver) = (rig.through.clone(), mpsc::channel().1);
        let home = rig.home.to_path_buf();
        let inbox = Inbox { sender, receiver, ..Inbox::default() };
        let contexts = inbox.contexts(Arc::new(move || context(&home)));
        let Freshness::Attested(client) = contexts().unwrap().freshness else { panic!("not attested") };
        rig.write("a/step-1.md", "done");
        let new_requests = std::thread::spawn(move || client.commit());
        // First the request arrives, then its cookie.
        rig.turn();
        rig.let_through_all();
        assert_eq!(new_requests.join().unwrap(), rig.daemon.indexing.index.verified());
        assert_eq!(rig.indexed("a").as_deref(), Some("completed"));
    });
}
