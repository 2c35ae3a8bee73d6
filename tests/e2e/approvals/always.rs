//! Approved for ever: exactly this action, of this agent.

use chorus_proto::ErrorKind;
use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_proto::methods::permissions::{Check, CheckParams, Decision, Rule, Show, ShowParams};
use chorus_tests::Fixture;
use chorus_tests::client_ext::expect_error_kind;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::Response;
use chorus_tests::{Need, skip_without};
use serde_json::{Value, json};

use super::{
    ACTION, agent, always, approve, ask, ask_for_two_agents, audit, decisions, deny, in_catalog, list, open,
    queue_calls, results, start_fixture,
};

/// The agent's permissions, as its file has them.
fn permissions(fixture: &Fixture, agent: &str) -> Value {
    let text = std::fs::read_to_string(fixture.home.agent_dir(agent).join("agent.json")).expect("agent.json");
    serde_json::from_str::<Value>(&text).expect("JSON")["permissions"].clone()
}

/// The rules of the agent, as its file has them.
fn rules(fixture: &Fixture, agent: &str) -> Value {
    let text = std::fs::read_to_string(fixture.home.agent_dir(agent).join("agent.json")).expect("agent.json");
    serde_json::from_str::<Value>(&text).expect("JSON")["permission_rules"].clone()
}

fn set(fixture: &Fixture, permissions: Value) {
    let params = ConfigParams { name: "a".into(), key: Some("permissions".into()), value: Some(permissions) };
    fixture.client().call::<Config>(&params).expect("set");
}

#[test]
fn from_then_on_it_is_not_asked_about_and_nothing_else_changes() {
    let fixture = start_fixture();
    agent(&mut fixture.client(), "b");
    let before = fixture.client().call::<Show>(&ShowParams { name: "asking".into() }).expect("a profile").profile;
    let (asked, turn) = ask(&fixture, 1);
    let said = chorusctl(&fixture.home, ["approvals", "approve", &asked[0].id, "--always"]);
    assert!(said.stderr.contains("a may now do exactly this without asking"), "{}", said.stderr);
    said.expect_success();
    turn.join().expect("the client").expect("a turn");
    // The next one runs at once.
    queue_calls(&fixture, 1);
    fixture.spawn_send("a", "And now?").join().expect("the client").expect("a turn");
    assert!(results(&mut fixture.client(), "a").iter().all(|(is_error, _)| !is_error));
    assert_eq!(decisions(&fixture), ["ask", "approved_always", "allow"]);
    let verdict = fixture.client().call::<Check>(&CheckParams { agent: Some("a".into()), action: ACTION.into() });
    assert_eq!(verdict.expect("a verdict").rule, Rule::Agent { number: 1, rule: ACTION.into() });
    let own = rules(&fixture, "a");
    assert_eq!((&own[0]["kind"], &own[0]["rule"]), (&json!("action"), &json!(ACTION)));
    // The profile is as it was, and nobody else has the rule.
    assert_eq!(permissions(&fixture, "a"), "asking");
    assert_eq!(permissions(&fixture, "b"), "asking");
    let after = fixture.client().call::<Show>(&ShowParams { name: "asking".into() }).expect("a profile").profile;
    assert_eq!(before, after);
    let verdict = fixture.client().call::<Check>(&CheckParams { agent: Some("b".into()), action: ACTION.into() });
    assert_eq!(verdict.expect("a verdict").decision, Decision::Ask);
    let rows = audit(&mut fixture.client());
    let row = rows.iter().find(|row| row.decision == "approved_always").expect("a row");
    let new: Value = serde_json::from_str(row.new.as_deref().expect("a value")).expect("JSON");
    assert_eq!((row.old.as_deref(), new), (Some("[]"), own));
}

#[test]
fn a_command_runs_in_its_sandbox_and_is_asked_about_again_once_it_is_another() {
    let fixture = start_fixture();
    let status = fixture.client().call::<Status>(&StatusParams::default()).expect("status");
    if status.daemon.sandbox.is_none_or(|sandbox| sandbox.way == "none") {
        return skip_without(Need::Sandbox, "nothing is confined here");
    }
    set(&fixture, json!({"ask": ["tool:bash:.*"], "allow": ["tool:create_file:log"]}));
    let wanted = "echo one >> log && cat log";
    let run = |command: &str| {
        fixture.models().anthropic().queue(Response::tool_call("c", "bash", &json!({"command": command})));
        fixture.models().anthropic().queue(Response::text(["Done."]));
        fixture.spawn_send("a", "Run it.")
    };
    let last = || results(&mut fixture.client(), "a").pop().expect("a result");
    let check = |command: &str| {
        let params = CheckParams { agent: Some("a".into()), action: format!("tool:bash:{command}") };
        fixture.client().call::<Check>(&params).expect("a verdict").rule
    };
    let turn = run(wanted);
    let asked = open(&mut fixture.client(), 1).remove(0);
    assert_eq!((asked.action, asked.not_always), (format!("tool:bash:{wanted}"), None));
    assert!(always(&mut fixture.client(), &asked.id).expect("heard").always);
    turn.join().expect("the client").expect("a turn");
    assert!(!last().0 && last().1.contains("one"), "{:?}", last());
    assert_eq!(check(wanted), Rule::Agent { number: 1, rule: format!("tool:bash:{wanted}") });
    run(wanted).join().expect("the client").expect("a turn");
    assert!(last().1.contains("one\none"), "{:?}", last());
    // One letter more, a part of it, and the same words with another blank: all are other commands.
    for other in ["echo one >> log && cat logs", "cat log", "echo one >>  log && cat log"] {
        let turn = run(other);
        let asked = open(&mut fixture.client(), 1).remove(0);
        assert_eq!(asked.action, format!("tool:bash:{other}"));
        deny(&mut fixture.client(), &asked.id).expect("heard");
        turn.join().expect("the client").expect("a turn");
        assert!(last().0);
    }
    // What is denied later is denied.
    let mut own = permissions(&fixture, "a");
    own["deny"] = json!(["tool:bash:cat .*"]);
    set(&fixture, own);
    assert!(matches!(check(wanted), Rule::Pattern { list: Decision::Deny, .. }), "{:?}", check(wanted));
    run(wanted).join().expect("the client").expect("a turn");
    assert!(last().0 && last().1.contains("is not allowed: deny[0]"), "{:?}", last());
    let log = fixture.home.agent_dir("a").join("workspace/log");
    assert_eq!(std::fs::read_to_string(log).expect("the log"), "one\none\n");
}

#[test]
fn an_edit_of_the_file_meanwhile_is_kept() {
    let fixture = start_fixture();
    let own =
        json!({"ask": ["tool:list_models:.*"], "network": true, "examples": [{"action": ACTION, "decision": "ask"}]});
    set(&fixture, own.clone());
    let (asked, turn) = ask(&fixture, 1);
    let path = fixture.home.agent_dir("a").join("agent.json");
    let text = std::fs::read_to_string(&path).expect("agent.json");
    let mut map: Value = serde_json::from_str(&text).expect("JSON");
    map["mine"] = json!("stays");
    std::fs::write(&path, map.to_string()).expect("written");
    let done = always(&mut fixture.client(), &asked[0].id).expect("heard");
    assert!(done.always && done.profile_before.is_none() && done.warnings.is_empty(), "{done:?}");
    turn.join().expect("the client").expect("a turn");
    assert_eq!(permissions(&fixture, "a"), own);
    assert_eq!(rules(&fixture, "a")[0]["rule"], ACTION);
    assert!(std::fs::read_to_string(&path).expect("agent.json").contains("stays"));
}

#[test]
fn of_two_agents_at_once_each_has_its_own_and_what_comes_behind_it_is_not_asked() {
    let fixture = start_fixture();
    let (turn, other) = ask_for_two_agents(&fixture, 3);
    let asked = open(&mut fixture.client(), 2);
    let answers: Vec<_> = asked
        .into_iter()
        .map(|asked| {
            let mut client = fixture.client();
            std::thread::spawn(move || always(&mut client, &asked.id).expect("heard").always)
        })
        .collect();
    assert!(answers.into_iter().all(|answer| answer.join().expect("an answer")));
    for turn in [turn, other] {
        turn.join().expect("the client").expect("a turn");
    }
    for (agent, calls) in [("a", 3), ("b", 1)] {
        let rules = rules(&fixture, agent);
        assert_eq!((rules.as_array().map(Vec::len), &rules[0]["rule"]), (Some(1), &json!(ACTION)));
        assert_eq!(results(&mut fixture.client(), agent).iter().filter(|(is_error, _)| !is_error).count(), calls);
    }
}

#[test]
fn an_answer_that_cannot_be_written_down_changes_nothing() {
    let fixture = start_fixture();
    let (asked, turn) = ask(&fixture, 1);
    in_catalog(
        &fixture.home.path,
        "CREATE TRIGGER no_yes BEFORE INSERT ON audit_log WHEN new.decision LIKE 'approved%'
         BEGIN SELECT RAISE(ABORT, 'no'); END;",
    );
    assert_eq!(expect_error_kind(always(&mut fixture.client(), &asked[0].id)), ErrorKind::StorageFailed);
    turn.join().expect("the client").expect("a turn");
    assert!(results(&mut fixture.client(), "a")[0].0);
    assert_eq!((permissions(&fixture, "a"), rules(&fixture, "a")), (json!("asking"), Value::Null));
}

#[test]
fn where_it_cannot_work_it_is_refused_and_the_question_stays() {
    let fixture = start_fixture();
    super::choices::fill_rules(&fixture);
    let (asked, turn) = ask(&fixture, 1);
    let refused = chorusctl(&fixture.home, ["approvals", "approve", &asked[0].id, "--always"]);
    assert!(refused.expect_failure(6).contains("the agent already has 1000 rules"), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: it is still pending"), "{}", refused.stderr);
    assert_eq!(list(&mut fixture.client()).len(), 1);
    let open = open(&mut fixture.client(), 1).remove(0);
    deny(&mut fixture.client(), &open.id).expect("heard");
    turn.join().expect("the client").expect("a turn");
}

#[test]
fn what_is_approved_for_ever_in_the_foreground_is_asked_about_in_the_background() {
    let fixture = start_fixture();
    let status = fixture.client().call::<Status>(&StatusParams::default()).expect("status");
    if status.daemon.sandbox.is_none_or(|sandbox| sandbox.way == "none") {
        return skip_without(Need::Sandbox, "nothing is confined here");
    }
    set(&fixture, json!({"ask": ["tool:bash:.*"]}));
    let run = |background: bool| {
        let params = json!({"command": "echo done", "background": background});
        fixture.models().anthropic().queue(Response::tool_call("c", "bash", &params));
        fixture.models().anthropic().queue(Response::text(["Done."]));
        fixture.spawn_send("a", "Run it.")
    };
    let turn = run(false);
    let asked = open(&mut fixture.client(), 1).remove(0);
    assert!(asked.details.is_empty() && always(&mut fixture.client(), &asked.id).expect("heard").always);
    turn.join().expect("the client").expect("a turn");
    run(false).join().expect("the client").expect("a turn");
    // The same action, and another thing: it says so, and cannot be had for ever.
    for _ in 0..2 {
        let turn = run(true);
        let asked = open(&mut fixture.client(), 1).remove(0);
        let shown: Vec<_> = asked.details.iter().map(|detail| (&*detail.name, &*detail.text)).collect();
        assert_eq!((asked.action.as_str(), shown), ("tool:bash:echo done", vec![("background", "true")]));
        assert!(asked.not_always.is_some_and(|why| why.contains("a background command")));
        assert_eq!(expect_error_kind(always(&mut fixture.client(), &asked.id)), ErrorKind::Denied);
        approve(&mut fixture.client(), &asked.id).expect("once");
        turn.join().expect("the client").expect("a turn");
    }
    assert_eq!(
        decisions(&fixture),
        ["changed", "ask", "approved_always", "allow", "ask", "approved", "ask", "approved"]
    );
}
