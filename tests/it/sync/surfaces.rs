//! Claims over HTTP and MCP use the shared registry, as claims of commands do.

use serde_json::{Value, json};

use super::team::{Clone, Team, refused};
use crate::http::client::Server;
use crate::mcp::Client;

fn http(clone: &Clone<'_>) -> Server {
    Server::of(clone.command(), &["--http", "0", "--no-token"], "")
}

fn mcp(clone: &Clone<'_>, arguments: &[&str]) -> Client {
    Client::of_command(clone.command(), &[&["mcp"], arguments].concat(), &json!({}))
}

/// The plan's list of steps with the first one completed.
const LIST: &str = "- [x] Step 1\n- Step 2\n- Step 3\n";

#[track_caller]
fn call(client: &mut Client, tool: &str, arguments: &Value) -> Value {
    client.call(tool, arguments, &json!({}));
    client.receive()["result"].clone()
}

#[track_caller]
fn called(client: &mut Client, tool: &str, arguments: &Value) -> Value {
    let result = call(client, tool, arguments);
    assert_ne!(result["isError"], true, "{result}");
    result["structuredContent"].clone()
}

#[test]
fn claims_and_results_over_http_are_shared_with_all_machines() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    let (one, other) = (http(&a), http(&b));
    let claimed = one.json("POST", "/api/claim", &json!({}));
    assert_eq!(claimed["step"]["id"], "p:1", "{claimed}");
    // The server renews the claim while it runs, so the claim is short: after the server dies, it does not hold for
    // hours.
    assert_eq!(claimed["claim"]["until_elsewhere"], claimed["claim"]["until"], "{claimed}");
    assert_eq!(team.records(), ["p/1 claimed ann"]);
    let before = b.step(1);
    let answer = other.json_with("POST", "/api/steps/p:1/claim", "", &json!({}));
    assert_eq!(answer.problem(), (409, "claimed".to_owned()));
    assert_eq!(b.step(1), before);
    assert_eq!(other.json("POST", "/api/plans/p/claim", &json!({}))["step"]["id"], "p:2");
    let script = other.json_with("GET", "/api/plans/p/next-step", "", &Value::Null);
    assert_eq!(script.json()["step_id"], "p:3", "{script:?}");
    refused(&a.run("claim p:3"), "claimed");
    assert_eq!(team.records(), ["p/1 claimed ann", "p/2 claimed bob", "p/3 claimed bob"]);
    one.json("POST", "/api/steps/p:1/done", &json!({"message": "made"}));
    other.json("POST", "/api/steps/p:2/release", &json!({}));
    let update = other.json_with("PATCH", "/api/steps/p:3", "", &json!({"status": "failed", "result": "no"}));
    assert_eq!(update.status, 200, "{update:?}");
    assert_eq!(team.records(), ["p/1 completed ann", "p/3 failed bob"]);
    let answer = other.json_with("POST", "/api/steps/p:1/claim", "", &json!({}));
    assert_eq!(answer.problem(), (409, "claimed".to_owned()));
    other.json("PATCH", "/api/steps/p:3", &json!({"status": "pending"}));
    assert_eq!(team.records(), ["p/1 completed ann"]);
}

#[test]
fn a_refused_result_with_a_key_restores_the_claim() {
    let team = Team::new();
    let a = team.clone_of("a");
    let server = http(&a);
    server.json("POST", "/api/steps/p:1/claim", &json!({}));
    let broken = a.step(1).replace("# Step 1", "# Step 1\n<<<<<<< ours\n=======\n>>>>>>> theirs");
    a.write("plans/p/step-1.md", &broken);
    team.calls();
    let key = "Idempotency-Key: one\r\n";
    let answer = server.json_with("POST", "/api/steps/p:1/done", key, &json!({"message": "made"}));
    assert!(answer.status >= 400, "{answer:?}");
    // There is no dry run before a request with a key, so the result was pushed before the write was refused.
    assert_eq!(team.calls().len(), 2, "the result, and then the claim again");
    assert_eq!((team.records(), a.step(1)), (vec!["p/1 claimed ann".to_owned()], broken));
}

#[test]
fn claims_and_results_over_mcp_are_shared_with_all_machines() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    let (mut one, mut other) = (mcp(&a, &[]), mcp(&b, &[]));
    let claimed = called(&mut one, "claim_next_step", &json!({"worker": "ann"}));
    assert_eq!(claimed["step"]["id"], "p:1", "{claimed}");
    // The server renews the claim while it runs, so the claim is short: after the server dies, it does not hold for
    // hours.
    assert!(claimed["claim"]["until"].is_string(), "{claimed}");
    assert_eq!(claimed["claim"]["until_elsewhere"], claimed["claim"]["until"], "{claimed}");
    let before = b.step(1);
    let answer = call(&mut other, "claim_next_step", &json!({"plan": "p:1", "worker": "bob"}));
    assert!(answer["isError"] == true && answer.to_string().contains("claimed"), "{answer}");
    assert_eq!(b.step(1), before);
    let next = called(&mut other, "claim_next_step", &json!({"plan": "p", "worker": "bob"}));
    assert_eq!(next["step"]["id"], "p:2", "{next}");
    assert_eq!(team.records(), ["p/1 claimed ann", "p/2 claimed bob"]);
    let done =
        json!({"step": "p:1", "status": "completed", "result": "made", "claim": claimed["claim"]["id"]});
    called(&mut one, "update_step", &done);
    let back = json!({"step": "p:2", "status": "pending", "claim": next["claim"]["id"]});
    called(&mut other, "update_step", &back);
    assert_eq!(team.records(), ["p/1 completed ann"]);
    refused(&b.run("claim p:1"), "claimed");
    assert_eq!((one.end(), other.end()), (0, 0));
}

#[test]
fn every_way_to_close_a_step_checks_that_the_claim_still_holds() {
    let ends: [fn(&Clone<'_>, &str) -> String; 7] = [
        |a, claim| format!("{:?}", a.run(&format!("set p:1 status completed --claim {claim}"))),
        |a, claim| format!("{:?}", a.run(&format!("attempt p:1 made --status completed --claim {claim}"))),
        |a, claim| {
            let body = json!({"status": "completed", "result": "late", "claim": claim});
            format!("{:?}", http(a).json_with("PATCH", "/api/steps/p:1", "", &body))
        },
        |a, claim| {
            let asked = json!({"step": "p:1", "status": "completed", "result": "late", "claim": claim});
            call(&mut mcp(a, &[]), "update_step", &asked).to_string()
        },
        |a, _| {
            a.write("list.md", LIST);
            format!("{:?}", a.run("replace p --file list.md"))
        },
        |a, _| {
            let body = json!({"steps": LIST, "by": "ann"});
            format!("{:?}", http(a).json_with("POST", "/api/plans/p/replace", "", &body))
        },
        |a, _| {
            let steps =
                json!([{"title": "Step 1", "status": "completed"}, {"title": "Step 2"}, {"title": "Step 3"}]);
            let asked = json!({"plan": "p", "op": "replace", "steps": steps});
            // The name of this client is that of the claim's owner.
            let mut client = Client::named("ann", a.command(), &["mcp"], &json!({}));
            call(&mut client, "restructure_plan", &asked).to_string()
        },
    ];
    for (nth, end) in ends.iter().enumerate() {
        let team = Team::new();
        let (a, b) = (team.clone_of("a"), team.clone_of("b"));
        let (_, claim) = a.claim("p:1");
        b.run("sync").ok_code();
        b.mark_as_lapsed();
        b.claim("p:1");
        let answer = end(&a, &claim);
        assert!(answer.contains("claim-lost"), "{nth}: {answer}");
        assert!(a.step(1).contains("status: in_progress"), "{nth}: {}", a.step(1));
        assert_eq!(team.records(), ["p/1 claimed bob"], "{nth}");
    }
}

#[test]
fn statuses_in_a_list_are_shared_with_all_machines() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.claim("p:1");
    a.claim("p:2");
    // A list that is refused closes no step.
    a.write("list.md", "- [x] Step 1\n- Step 2 (depends: 9)\n- Step 3\n");
    team.calls();
    assert_ne!(a.run("replace p --file list.md").code, 0);
    assert_eq!(team.records(), ["p/1 claimed ann", "p/2 claimed ann"]);
    a.write("list.md", LIST);
    a.run("replace p --file list.md").ok_code();
    assert_eq!(team.records(), ["p/1 completed ann", "p/2 claimed ann"]);
    // If one of two results is refused, the accepted one is undone, too.
    b.run("sync").ok_code();
    b.mark_as_lapsed();
    b.claim("p:2");
    a.write(
        "list.md",
        r#"[{"title": "Step 1", "status": "pending"}, {"title": "Step 2", "status": "failed"}, "Step 3"]"#,
    );
    let before = [a.step(1), a.step(2)];
    refused(&a.run("replace p --file list.md"), "claim-lost");
    assert_eq!([a.step(1), a.step(2)], before);
    assert_eq!(team.records(), ["p/1 completed ann", "p/2 claimed bob"]);
    // A step that is pending again can be claimed by everyone.
    a.write("list.md", r#"[{"title": "Step 1", "status": "pending"}, "Step 2", "Step 3"]"#);
    a.run("replace p --file list.md").ok_code();
    assert_eq!(team.records(), ["p/2 claimed bob"]);
}

#[test]
fn records_follow_the_steps_of_a_list_to_their_new_numbers() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    for n in [1, 2] {
        a.claim(&format!("p:{n}"));
        a.run(&format!("done p:{n} -m {n}")).ok();
    }
    let claims = |clone: &Clone<'_>| {
        let listed = clone.run("sync status --json").json()["claims"].clone();
        let all = listed.as_array().expect("there are claims").iter();
        all.map(|it| (it["step"].clone(), it["claim"].clone())).collect::<Vec<_>>()
    };
    let before = claims(&a);
    a.write("list.md", "- Step 2\n- Step 1\n- Step 3\n");
    team.calls();
    a.run("replace p --file list.md").ok_code();
    assert_eq!(team.calls().len(), 2, "a fetch and a push");
    let listed = a.run("list p --json").json()["steps"].clone();
    let id_of = |title: &str| {
        let mut steps = listed.as_array().expect("there are steps").iter();
        steps.find(|it| it["title"] == title).map(|it| it["id"].clone()).expect("it is there")
    };
    let mut after = vec![(id_of("Step 1"), before[0].1.clone()), (id_of("Step 2"), before[1].1.clone())];
    after.sort_by_key(|it| it.0.to_string());
    assert!(before != after && claims(&a) == after, "{after:?} {:?}", claims(&a));
    // The records still belong to this clone, and other clones see them under the new numbers.
    a.run("sync").ok_code();
    b.run("sync").ok_code();
    assert_eq!(claims(&a), after);
    // Another clone does not have the list yet, so the earlier numbers are held, too.
    let seen = claims(&b);
    assert_eq!(seen.iter().filter(|it| after.contains(it)).count(), after.len());
    let earlier: Vec<_> = seen.iter().filter(|it| !after.contains(it)).collect();
    assert!(before.iter().filter(|it| !after.contains(it)).eq(earlier), "{seen:?}");
}
