//! Profiles of config.toml and agent.json: refused with their place, and never taken for something else.

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::permissions::{Check, CheckParams, Decision};
use chorus_proto::{CallError, Client, ErrorKind};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use serde_json::{Value, json};

use crate::home;

const CAREFUL: &str = "[permissions.careful]\nallow = [\"tool:view:.*\"]\ndefault = \"ask\"\n\
                       examples = [{action = \"tool:bash:ls\", decision = \"ask\"}]\n";

fn decision(client: &mut Client, agent: &str, action: &str) -> Result<Decision, CallError> {
    let params = CheckParams { agent: Some(agent.into()), action: action.into() };
    client.call::<Check>(&params).map(|verdict| verdict.decision)
}

fn set(client: &mut Client, agent: &str, permissions: Value) -> Result<(), CallError> {
    let params = ConfigParams { name: agent.into(), key: Some("permissions".into()), value: Some(permissions) };
    client.call::<Config>(&params).map(drop)
}

#[test]
fn a_profile_of_the_configuration_can_be_given_to_an_agent() {
    let home = home();
    let daemon = Daemon::start_with(&home, CAREFUL);
    let mut client = daemon.client();
    client.init("a");
    set(&mut client, "a", json!("careful")).expect("given");
    assert_eq!(decision(&mut client, "a", "tool:view:x").expect("a verdict"), Decision::Allow);
    assert_eq!(decision(&mut client, "a", "tool:git:init").expect("a verdict"), Decision::Ask);
    assert_eq!(expect_error_kind(set(&mut client, "a", json!("carefull"))), ErrorKind::InvalidParams);
}

#[test]
fn an_agent_may_have_one_of_its_own() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    set(&mut client, "a", json!({"ask": ["tool:view:.*"]})).expect("given");
    assert_eq!(decision(&mut client, "a", "tool:view:x").expect("a verdict"), Decision::Ask);
    // As a command line gives it.
    set(&mut client, "a", json!("{\"allow\": [\"tool:view:.*\"]}")).expect("given");
    assert_eq!(decision(&mut client, "a", "tool:view:x").expect("a verdict"), Decision::Allow);
    for wrong in [json!({"allow": ["("]}), json!({"alow": []}), json!({"default": "allow"}), json!("{"), json!(3)] {
        let kind = expect_error_kind(set(&mut client, "a", wrong.clone()));
        assert_eq!(kind, ErrorKind::InvalidParams, "{wrong}");
    }
    assert_eq!(decision(&mut client, "a", "tool:view:x").expect("a verdict"), Decision::Allow, "the good one stays");
}

#[test]
fn a_broken_profile_of_the_configuration_is_refused_with_its_place() {
    for (text, line, what) in [
        (
            "[permissions.x]\nallow = [\"a\",\n  \"(\"]\n",
            3,
            "`permissions.x`, `allow[1]` is not a valid regular expression",
        ),
        ("[permissions.x]\nallow = [\"a)|(?:b\"]\n", 2, "`allow[0]` is not a valid regular expression"),
        ("[permissions.x]\nalow = []\n", 2, "`alow` is not a key of a profile"),
        ("[permissions.x]\ndefault = \"allow\"\n", 2, "`default` must be"),
        ("[permissions.open]\n", 1, "`permissions.open` is a preset"),
        ("\n[permissions.x]\nexamples = [{action = \"tool:a:\", decision = \"ask\"}]\n", 3, "`examples[0]` failed"),
    ] {
        let home = home();
        home.write_config(text);
        let Err((status, said)) = Daemon::try_start(&home, home.command(home.bins.chorusd)) else {
            panic!("{text}: started")
        };
        assert!(!status.success() && said.contains(what), "{text}: {said}");
        assert!(said.contains(&format!("line {line}, column ")) && said.contains("hint: "), "{text}: {said}");
    }
}

#[test]
fn an_agent_whose_profile_is_gone_is_refused_and_others_go_on() {
    let home = home();
    let daemon = Daemon::start_with(&home, CAREFUL);
    let mut client = daemon.client();
    client.init("a");
    client.init("b");
    client.append("a", "kept");
    set(&mut client, "a", json!("careful")).expect("given");
    drop(client);
    assert!(daemon.terminate().success());
    let daemon = Daemon::start_with(&home, "");
    let mut client = daemon.client();
    let Err(CallError::Rpc(error)) = decision(&mut client, "a", "tool:view:x") else { panic!("a verdict") };
    assert!(error.message.contains("unknown permission profile `careful`"), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::InvalidConfig);
    assert_eq!(client.message_texts("a"), ["kept"], "its conversation is there");
    assert_eq!(decision(&mut client, "b", "tool:view:x").expect("a verdict"), Decision::Allow);
    set(&mut client, "a", json!("standard")).expect("mended");
    assert_eq!(decision(&mut client, "a", "tool:view:x").expect("a verdict"), Decision::Allow);
}
