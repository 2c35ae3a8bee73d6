//! Answers that allow more than one action: patterns that become rules of the agent, and whole turns.

use chorus_proto::ErrorKind;
use chorus_proto::methods::approvals::{Approval, Approve, ApproveParams};
use chorus_proto::methods::permissions::{Check, CheckParams, Decision, Rule};
use chorus_tests::Fixture;
use chorus_tests::InteractiveCommand;
use chorus_tests::client_ext::expect_error_kind;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::Response;
use chorus_tests::{Need, skip_without};
use serde_json::{Value, json};

use super::{audit, decisions, deny, open, results, start_fixture, start_fixture_of};

/// Gives the agent `a` as many rules as it may have.
pub fn fill_rules(fixture: &Fixture) {
    let path = fixture.home.agent_dir("a").join("agent.json");
    let mut map: Value = serde_json::from_str(&std::fs::read_to_string(&path).expect("agent.json")).expect("JSON");
    let rule = |n: u64| json!({"kind": "action", "rule": format!("tool:view:{n}"), "created_at": "2026-01-01T00:00:00Z", "created_by": "owner"});
    map["permission_rules"] = (0..1000).map(rule).collect();
    std::fs::write(&path, map.to_string()).expect("written");
}

/// A daemon whose agent `a` has the profile `standard`; `None` if commands cannot be confined here.
fn standard() -> Option<Fixture> {
    let fixture = start_fixture_of("standard");
    let sandbox = chorusctl(&fixture.home, ["--json", "status"]).expect_json()["daemon"]["sandbox"]["way"].take();
    if sandbox.is_null() || sandbox == "none" {
        skip_without(Need::Sandbox, "nothing is confined here");
        return None;
    }
    Some(fixture)
}

/// A turn of `a` that runs these commands one after the other.
fn run(fixture: &Fixture, commands: &[&str]) -> super::Turn {
    for (at, command) in commands.iter().enumerate() {
        let call = Response::tool_call(&format!("c{at}"), "bash", &json!({"command": command}));
        fixture.models().anthropic().queue(call);
    }
    fixture.models().anthropic().queue(Response::text(["Done."]));
    fixture.spawn_send("a", "Run it.")
}

fn end(turn: super::Turn) {
    turn.join().expect("the client").expect("a turn");
}

fn asked(fixture: &Fixture) -> Approval {
    open(&mut fixture.client(), 1).remove(0)
}

fn verdict(fixture: &Fixture, agent: &str, command: &str) -> (Decision, Rule) {
    let params = CheckParams { agent: Some(agent.into()), action: format!("tool:bash:{command}") };
    let verdict = fixture.client().call::<Check>(&params).expect("a verdict");
    (verdict.decision, verdict.rule)
}

#[test]
fn a_pattern_for_each_part_is_kept_beside_the_profile_listed_and_removed() {
    let Some(mut fixture) = standard() else { return };
    let turn = run(&fixture, &["echo one && git status --short"]);
    let question = asked(&fixture);
    assert_eq!(question.patterns, ["echo *", "git status *"]);
    assert_eq!(question.reason.as_deref(), Some("its permissions ask before every command"));
    let workspace = fixture.home.agent_dir("a").join("workspace").to_string_lossy().into_owned();
    let reach = question.reach.expect("a command");
    assert!(reach.sandboxed && !reach.network && reach.writes == [workspace.clone()]);
    assert_eq!(question.directory, Some(workspace));
    let said = chorusctl(&fixture.home, ["approvals", "approve", &question.id, "--pattern"]);
    assert!(said.stderr.contains("a may now run `echo *` and `git status *` without asking"), "{}", said.stderr);
    end(turn);
    // Other commands of these kinds run at once, and no others.
    end(run(&fixture, &["git status", "echo two | echo three; git status -s"]));
    assert!(results(&mut fixture.client(), "a").iter().all(|(is_error, _)| !is_error));
    assert_eq!(decisions(&fixture), ["ask", "approved_pattern", "allow", "allow"]);
    for other in ["git log", "echo x; rm -rf x", "git status | sh", "git -c core.pager=x status", "echo $(git log)"] {
        assert_eq!(verdict(&fixture, "a", other).0, Decision::Ask, "{other}");
    }
    let row = audit(&mut fixture.client()).into_iter().find(|row| row.decision == "approved_pattern").expect("a row");
    assert!(row.old.as_deref() == Some("[]") && row.new.is_some_and(|new| new.contains("git status *")));
    assert_eq!(fixture.agent_json("a", "permissions"), "standard");
    // They survive a restart and a move to another agent.
    fixture.stop();
    fixture.start();
    assert_eq!(verdict(&fixture, "a", "git status").1, Rule::Agent { number: 2, rule: "git status *".into() });
    let archive = fixture.home.path.join("a.chorus-agent");
    let archive = archive.to_str().expect("UTF-8");
    chorusctl(&fixture.home, ["agent", "export", "a", "-o", archive]).expect_success();
    let imported = chorusctl(&fixture.home, ["agent", "import", archive, "--as", "b"]);
    assert!(imported.stderr.contains("keeps 2 permanent approvals"), "{}", imported.stderr);
    assert_eq!(verdict(&fixture, "b", "git status").0, Decision::Allow);
    let listed = chorusctl(&fixture.home, ["permissions", "rules", "a"]).expect_success();
    assert!(listed.contains("1  echo *") && listed.contains("2  git status *") && listed.contains("owner"), "{listed}");
    assert!(chorusctl(&fixture.home, ["agent", "show", "a"]).expect_success().contains("2 rules"));
    let removed = chorusctl(&fixture.home, ["permissions", "rules", "a", "--remove", "1"]).expect_success();
    assert!(removed.contains("echo *"), "{removed}");
    assert_eq!(verdict(&fixture, "a", "echo x").0, Decision::Ask);
    assert_eq!(verdict(&fixture, "a", "git status").1, Rule::Agent { number: 1, rule: "git status *".into() });
    let gone = chorusctl(&fixture.home, ["permissions", "rules", "a", "--remove", "7"]);
    assert!(gone.expect_failure(3).contains("a has no rule 7"), "{}", gone.stderr);
    let changed = audit(&mut fixture.client()).pop().expect("a row");
    assert_eq!((&*changed.action, &*changed.decision), ("agent.config:permission_rules", "changed"));
}

#[test]
fn a_deny_of_the_profile_wins_over_a_rule_and_a_wrong_rule_leaves_the_last_good_file_in_force() {
    let Some(fixture) = standard() else { return };
    let turn = run(&fixture, &["git log"]);
    let params = ApproveParams { id: asked(&fixture).id, pattern: true, ..Default::default() };
    let done = fixture.client().call::<Approve>(&params).expect("approved");
    assert!(done.always && done.rules.len() == 1 && done.profile_before.is_none(), "{done:?}");
    end(turn);
    let profile = r#"{"ask": ["tool:bash:.*"], "deny": ["tool:bash:git log --all.*"]}"#;
    chorusctl(&fixture.home, ["agent", "config", "a", "permissions", profile]).expect_success();
    assert_eq!(verdict(&fixture, "a", "git log -3").0, Decision::Allow);
    assert_eq!(verdict(&fixture, "a", "git log --all").0, Decision::Deny);
    chorusctl(&fixture.home, ["agent", "config", "a", "permissions", "locked"]).expect_success();
    assert_eq!(verdict(&fixture, "a", "git log -3").0, Decision::Deny);
    let refused = chorusctl(&fixture.home, ["agent", "config", "a", "permission_rules", "[]"]);
    assert!(refused.expect_failure(2).contains("read-only"), "{}", refused.stderr);
}

#[test]
fn where_no_pattern_is_proven_none_is_offered_nor_heard() {
    let Some(fixture) = standard() else { return };
    for (command, reason) in [
        (
            "python3 x.py",
            "its permissions ask before every command, and `python3` runs other commands or changes their meaning",
        ),
        ("rm -rf build", "its permissions ask before every command"),
    ] {
        let turn = run(&fixture, &[command]);
        let question = asked(&fixture);
        assert!(question.patterns.is_empty() && question.turn_allowed, "{question:?}");
        assert_eq!(question.reason.as_deref(), Some(reason));
        let params = ApproveParams { id: question.id.clone(), pattern: true, ..Default::default() };
        assert_eq!(expect_error_kind(fixture.client().call::<Approve>(&params)), ErrorKind::Denied);
        let both = ApproveParams { turn: true, ..params };
        assert_eq!(expect_error_kind(fixture.client().call::<Approve>(&both)), ErrorKind::InvalidParams);
        deny(&mut fixture.client(), &question.id).expect("still open");
        end(turn);
    }
}

#[test]
fn an_approval_of_the_turn_covers_no_change_of_the_agent_and_ends_with_its_permissions() {
    let fixture = start_fixture_of("standard");
    let model = fixture.models();
    model.anthropic().queue(Response::tool_call("c0", "remember", &json!({"text": "One."})));
    model.anthropic().queue(Response::tool_call("c1", "remember", &json!({"text": "Two."})));
    model.anthropic().queue(Response::tool_call("c2", "self_edit_system_prompt", &json!({"new_prompt": "Obey."})));
    model.anthropic().queue(Response::tool_call("c3", "remember", &json!({"text": "Three."})));
    model.anthropic().queue(Response::text(["Done."]));
    let turn = fixture.spawn_send("a", "Remember.");
    let first = asked(&fixture);
    chorusctl(&fixture.home, ["approvals", "approve", &first.id, "--turn"]).expect_success();
    let second = asked(&fixture);
    assert_eq!((&*second.action, second.turn_allowed), ("tool:self_edit:system_prompt", false));
    let refused = chorusctl(&fixture.home, ["approvals", "approve", &second.id, "--turn"]);
    assert!(refused.expect_failure(6).contains("needs approval each time"), "{}", refused.stderr);
    // Other permissions end it.
    let profile = r#"{"ask": ["tool:.*"]}"#;
    chorusctl(&fixture.home, ["agent", "config", "a", "permissions", profile]).expect_success();
    let third = asked(&fixture);
    assert_eq!(third.action, "tool:remember:Three.");
    chorusctl(&fixture.home, ["approvals", "deny", &third.id, "--reason", "two are enough"]).expect_success();
    end(turn);
    let told = results(&mut fixture.client(), "a");
    assert_eq!(told.iter().map(|(is_error, _)| *is_error).collect::<Vec<_>>(), [false, false, true, true]);
    assert!(told[3].1.contains("two are enough"), "{}", told[3].1);
    let turns = audit(&mut fixture.client()).into_iter().filter(|row| row.decision == "approved_turn");
    let actions: Vec<String> = turns.map(|row| row.action).collect();
    assert_eq!(actions, ["tool:remember:One.", "tool:remember:Two."]);
}

#[test]
fn p_at_the_terminal_keeps_the_patterns_that_it_shows() {
    let Some(fixture) = standard() else { return };
    let send = || {
        fixture.models().anthropic().queue(Response::tool_call("c", "bash", &json!({"command": "git status && pwd"})));
        fixture.models().anthropic().queue(Response::text(["Done."]));
        let mut command = fixture.home.command(fixture.home.bins.chorusctl);
        command.args(["--agent", "a", "send", "Run it."]);
        InteractiveCommand::on_terminal(&command)
    };
    let mut running = send();
    running.stdout.wait_for("Allow? ");
    let shown = running.stdout.text();
    for part in [
        "a wants to run a command (",
        "│ git status && pwd\r\n",
        "; writes only there; no network",
        "[p] git status *, pwd *  ",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(shown.matches("git status && pwd").count(), 2, "in the line of the call and in the question: {shown}");
    let done = running.type_and_wait("p\r", "Done.");
    assert!(done.contains("a may now run `git status *` and `pwd *` without asking"), "{done}");
    assert_eq!(running.wait_for_exit().0.code(), Some(0));
    let mut running = send();
    let (status, out, _) = running.wait_for_exit();
    assert!(status.code() == Some(0) && !out.contains("Allow?"), "{out}");
}

#[test]
fn a_reason_that_is_too_long_is_refused_and_the_question_stays() {
    let fixture = start_fixture();
    let (asked, turn) = super::ask(&fixture, 1);
    let long = "x".repeat(5000);
    let refused = chorusctl(&fixture.home, ["approvals", "deny", &asked[0].id, "--reason", &long]);
    assert!(refused.expect_failure(2).contains("the reason is longer than 4096 bytes"), "{}", refused.stderr);
    deny(&mut fixture.client(), &asked[0].id).expect("still open");
    end(turn);
}
