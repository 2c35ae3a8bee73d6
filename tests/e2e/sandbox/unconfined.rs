//! Where the machine gives no sandbox: nothing runs unless somebody said so, and `status` and `doctor` say why.

use chorus_proto::methods::approvals::{Approve, ApproveParams, List, ListParams};
use chorus_proto::methods::doctor::{Doctor, DoctorParams, Verdict};
use chorus_proto::methods::permissions::{Check, CheckParams, Decision, Rule};
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::json;

use super::{
    WAYS, each_sandbox, last_result, run_command, sandbox_info, spawn_bash, start_fixture, start_fixture_with_timeout,
};

#[test]
fn without_a_sandbox_every_command_is_asked_about_whatever_the_profile_allows() {
    let fixture = start_fixture("none", "any", &[]);
    assert_eq!(sandbox_info(&fixture).way, "none");
    let told = run_command(&fixture, "echo ran > ran.txt");
    assert!(told.is_error && told.text.contains("was not approved"), "{told:?}");
    assert!(!fixture.workspace("a").join("ran.txt").exists());
    let shown = chorusctl(&fixture.home, ["status"]).expect_success();
    assert!(shown.contains("sandbox none") && shown.contains("missing: commands see all that you see"), "{shown}");
    let found =
        fixture.client().call::<Doctor>(&DoctorParams { rebuild: false, ..DoctorParams::default() }).expect("doctor");
    let check = found.checks.iter().find(|check| check.name == "sandbox").expect("a check");
    assert!(check.verdict == Verdict::Warn && check.hint.is_some(), "{check:?}");
    assert!(check.text.contains("every command needs approval"), "{check:?}");
}

#[test]
fn a_command_finds_nothing_in_its_home_that_another_left_there() {
    let fixture = start_fixture_with_timeout("none", "any", &[], "20s");
    let approved = |command: &str| {
        let turn = spawn_bash(&fixture, &json!({"command": command}));
        let asked = wait_until("the question", DEADLINE, || {
            fixture.client().call::<List>(&ListParams::default()).expect("a list").approvals.pop()
        });
        fixture.client().call::<Approve>(&ApproveParams { id: asked.id, ..Default::default() }).expect("approved");
        turn.join().expect("a client").expect("a turn");
        last_result(&fixture).ok()
    };
    let left = approved("echo planted > ~/.npmrc; ls -A ~; stat -c %a ~; echo $HOME");
    let (listed, home) = left.trim_end().rsplit_once('\n').expect("lines");
    assert_eq!(listed, ".npmrc\n700");
    let found = approved("ls -A ~; echo $HOME");
    assert!(found.starts_with("/tmp/") && found.trim_end() != home, "{found} after {home}");
    wait_until("both homes to be removed", DEADLINE, || {
        [home, found.trim_end()].iter().all(|home| !std::path::Path::new(home).exists()).then_some(())
    });
}

#[test]
fn the_level_is_shown() {
    for fixture in each_sandbox() {
        let sandbox = sandbox_info(&fixture);
        assert!(WAYS.contains(&&*sandbox.way));
        let level = if sandbox.missing.is_empty() { "ok" } else { &sandbox.way };
        let shown = chorusctl(&fixture.home, ["status"]).expect_success();
        assert!(shown.contains(&format!("sandbox {level}")), "{shown}");
        let found = fixture
            .client()
            .call::<Doctor>(&DoctorParams { rebuild: false, ..DoctorParams::default() })
            .expect("doctor");
        let check = found.checks.iter().find(|check| check.name == "sandbox").expect("a check");
        assert!(check.verdict == Verdict::Ok && check.text.contains("isolated by"), "{check:?}");
    }
}

#[test]
fn without_a_sandbox_a_check_says_that_the_command_is_asked_about() {
    let fixture = start_fixture("none", "any", &[]);
    let check = |action: &str| {
        let params = CheckParams { agent: Some("a".into()), action: action.into() };
        fixture.client().call::<Check>(&params).expect("a verdict")
    };
    for action in ["tool:bash:ls", "tool:git:commit"] {
        let verdict = check(action);
        assert_eq!(verdict.decision, Decision::Ask, "{action}");
        assert!(
            matches!(&verdict.rule, Rule::Shell { reason } if reason.contains("no sandbox for commands")),
            "{verdict:?}"
        );
    }
    assert_eq!(check("tool:view:x").decision, Decision::Allow);
    let said = chorusctl(&fixture.home, ["permissions", "check", "a", "tool:bash:ls"]).expect_success();
    assert!(said.starts_with("ask ") && said.contains("no sandbox for commands"), "{said}");
}
