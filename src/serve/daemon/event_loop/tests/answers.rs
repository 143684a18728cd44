//! Tests the daemon's answers and published changes when file changes, their events and requests interleave.

use super::*;

#[test]
fn an_answer_waits_for_all_events_before_it() {
    with_rig(|rig| {
        rig.write("a/step-1.md", "done");
        let (answer, _done) = rig.ask();
        assert!(answer.try_recv().is_err(), "its cookie was not seen yet");
        rig.let_through_all();
        assert!(is_fresh(&answer));
        assert_eq!(rig.indexed("a").as_deref(), Some("completed"));
    });
}

#[test]
fn published_changes_match_the_index_unless_polling() {
    for is_polled in [false, true] {
        let heard = with_rig(|rig| {
            rig.write("a/step-1.md", "wip");
            rig.let_through_all();
            if is_polled {
                rig.poll();
            }
            // The daemon does not receive these events.
            rig.write("a/step-1.md", "pending");
            rig.settle();
        });
        let expected = if is_polled { vec![] } else { vec!["status a:1 in_progress"] };
        assert_eq!(heard.events, expected, "polled: {is_polled}");
    }
}

#[test]
fn a_plan_that_another_process_has_indexed_is_read_again() {
    let heard = with_rig(|rig| {
        rig.write("a/step-1.md", "wip");
        rig.let_through_all();
        rig.write("a/step-1.md", "done");
        // The other process indexes first, so the daemon finds no difference between file and index.
        LoadQuery::all().load(&context(rig.home).unwrap()).unwrap();
        rig.let_through_all();
        rig.settle();
    });
    let expected = ["status a:1 completed", "status a completed"].map(str::to_owned);
    assert!(heard.events.ends_with(&expected), "{:?}", heard.events);
}

/// The command `status` takes all problems from the index if the daemon reports that they are complete.
#[test]
fn the_problems_in_the_index_are_complete_until_one_belongs_to_no_plan() {
    with_rig(|rig| {
        let is_complete = |rig: &mut Rig<'_>| {
            let (answer, _done) = rig.ask();
            rig.let_through_all();
            answer.try_recv().map(Answer::complete_commit).is_ok_and(|it| it.is_some())
        };
        assert!(is_complete(rig));
        rig.write("b/step-1.md", "unknown-word");
        std::fs::remove_file(rig.home.join("plans/a/step-1.md")).unwrap();
        assert!(is_complete(rig), "the index holds the problems of plans, and a plan may go");
        std::os::unix::fs::symlink("nowhere", rig.home.join("plans/c")).unwrap();
        assert!(!is_complete(rig), "a link that leads to nothing");
    });
}

#[test]
fn simultaneous_requests_share_one_cookie() {
    with_rig(|rig| {
        let before = rig.daemon.cookies.n_created;
        let (reply, answers) = sync_channel(2);
        let (_done, is_sent) = sync_channel(0);
        rig.through
            .send(Message::Request(SocketRequest {
                request: Request::Sync,
                reply: reply.clone(),
                is_sent,
                peer: None,
            }))
            .unwrap();
        let (_done, is_sent) = sync_channel(0);
        rig.through
            .send(Message::Request(SocketRequest { request: Request::Sync, reply, is_sent, peer: None }))
            .unwrap();
        rig.turn();
        assert_eq!(rig.daemon.cookies.n_created, before + 1);
        rig.let_through_all();
        assert!(is_fresh(&answers) && is_fresh(&answers));
    });
}

#[test]
fn a_cookie_is_one_file_and_not_behind_a_link() {
    with_rig(|rig| {
        let plans = (rig.daemon.turns.make_context)().unwrap().plans;
        let (cookies, other) = (rig.home.join("plans/.planwatch/cookies"), rig.home.join("other"));
        for n in 0..3 {
            plans.make_cookie(&format!("c{n}"), &format!("c{}", n + 1)).unwrap();
        }
        let names = |dir: &Path| std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().file_name());
        assert_eq!(names(&cookies).filter(|it| it.to_str().unwrap().starts_with('c')).count(), 1);
        std::fs::create_dir(&other).unwrap();
        std::fs::write(other.join("1"), "mine").unwrap();
        std::fs::remove_dir_all(&cookies).unwrap();
        std::os::unix::fs::symlink(&other, &cookies).unwrap();
        assert!(plans.make_cookie("1", "2").is_err());
        assert_eq!(names(&other).collect::<Vec<_>>(), ["1"]);
    });
}

#[test]
fn the_claim_batcher_learns_which_plans_changed() {
    with_rig(|rig| {
        let ask = |rig: &mut Rig<'_>| {
            let (reply, answers) = sync_channel(1);
            rig.through.send(Message::Changed(reply)).unwrap();
            rig.turn();
            answers
        };
        rig.write("b/step-1.md", "pending");
        let answers = ask(rig);
        rig.write("c/step-1.md", "pending");
        assert!(answers.try_recv().is_err(), "its cookie has not arrived");
        rig.let_through_all();
        let changed = answers.try_recv().unwrap().unwrap();
        assert!(changed.contains("b"), "{changed:?}");
        let answers = ask(rig);
        rig.let_through_all();
        assert!(!answers.try_recv().unwrap().unwrap().contains("b"), "it was reported before");
        rig.daemon.indexing.changed.add_all();
        let answers = ask(rig);
        rig.let_through_all();
        assert_eq!(answers.try_recv().unwrap(), None);
        // A polling daemon does not see every change.
        rig.poll();
        assert_eq!(ask(rig).try_recv().unwrap(), None);
    });
}

#[test]
fn a_save_through_a_hard_link_is_indexed_before_the_answer() {
    // The daemon notices a new hard link at the next event of the plan. The event can be about any file of the plan.
    for changed in ["a/step-1.md", "a/step-2.md"] {
        with_rig(|rig| {
            let link = rig.home.join("link.md");
            std::fs::hard_link(rig.home.join("plans/a/step-1.md"), &link).unwrap();
            rig.write(changed, "wip");
            rig.let_through_all();
            std::fs::write(&link, "---\nstatus: done\n---\n# Step\n").unwrap();
            let (answer, _done) = rig.ask();
            rig.let_through_all();
            assert!(is_fresh(&answer), "{changed}");
            assert_eq!(rig.indexed("a").as_deref(), Some("completed"), "{changed}");
        });
    }
}

#[test]
fn hard_links_that_a_scan_of_everything_finds_are_watched() {
    with_rig(|rig| {
        let link = rig.home.join("link.md");
        std::fs::hard_link(rig.home.join("plans/a/step-1.md"), &link).unwrap();
        rig.daemon.mark_everything();
        rig.let_through_all();
        std::fs::write(&link, "---\nstatus: done\n---\n# Step\n").unwrap();
        let (answer, _done) = rig.ask();
        rig.let_through_all();
        assert!(is_fresh(&answer));
        assert_eq!(rig.indexed("a").as_deref(), Some("completed"));
    });
}

#[test]
fn the_cached_answer_of_next_comes_with_the_commit() {
    with_rig(|rig| {
        let long = "x".repeat(NEXT_ANSWER_LIMIT + 1);
        for (cached, expected) in [(None, None), (Some("one"), Some("one")), (Some(long.as_str()), None)] {
            if let Some(cached) = cached {
                let (answer, _done) = rig.ask_for(Request::CacheNext(cached.to_owned()));
                assert!(answer.try_recv().is_err(), "there is no reply");
            }
            rig.write("a/step-1.md", "done");
            let (answer, _done) = rig.ask_for(Request::Next);
            rig.let_through_all();
            let generation = rig.daemon.indexing.index.verified().map(|it| it.to_string());
            assert!(generation.is_some());
            let cached = expected.map(str::to_owned);
            assert_eq!(answer.try_recv(), Ok(Answer::Next { generation, cached }));
        }
        // A polling daemon does not know whether the index is current.
        rig.poll();
        let (answer, _done) = rig.ask_for(Request::Next);
        assert_eq!(
            answer.try_recv(),
            Ok(Answer::Sync { fresh: false, generation: None, is_complete: false })
        );
    });
}
