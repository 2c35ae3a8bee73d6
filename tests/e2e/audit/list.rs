//! What is listed.

use chorus_proto::ErrorKind;
use chorus_proto::methods::agent::{Destroy, DestroyParams};
use chorus_proto::methods::audit::{Audit, AuditParams};
use chorus_tests::Fixture;
use chorus_tests::client_ext::expect_error_kind;
use chorus_tests::ctl::chorusctl;
use serde_json::Value;

use crate::approvals::{agent_of, audit, in_catalog, queue_calls, start_fixture, start_fixture_of};

/// Three calls of `a` and one of `b`, all allowed.
fn some() -> Fixture {
    let fixture = start_fixture_of("open");
    agent_of(&mut fixture.client(), "b", "open");
    for (agent, calls) in [("a", 3), ("b", 1)] {
        queue_calls(&fixture, calls);
        fixture.spawn_send(agent, "Which are there?").join().expect("the client").expect("a turn");
    }
    fixture
}

#[test]
fn it_lists_the_newest_last_and_only_what_was_asked_for() {
    let fixture = some();
    let mut client = fixture.client();
    let mut rows = |params: AuditParams| -> Vec<u64> {
        client.call::<Audit>(&params).expect("audit").rows.into_iter().map(|row| row.id).collect()
    };
    let all = AuditParams::default();
    assert_eq!(rows(all.clone()), [1, 2, 3, 4]);
    assert_eq!(rows(AuditParams { limit: Some(2), ..all.clone() }), [3, 4]);
    assert_eq!(rows(AuditParams { after: Some(2), ..all.clone() }), [3, 4]);
    assert_eq!(rows(AuditParams { agent: Some("a".into()), limit: Some(2), ..all.clone() }), [2, 3]);
    assert_eq!(rows(AuditParams { agent: Some("b".into()), ..all.clone() }), [4]);
    assert_eq!(rows(AuditParams { since: Some("1h".into()), ..all.clone() }), [1, 2, 3, 4]);
    assert_eq!(rows(AuditParams { since: Some("2999-01-01".into()), ..all.clone() }), [0; 0]);
    let wrong = AuditParams { since: Some("soon".into()), ..all.clone() };
    assert_eq!(expect_error_kind(client.call::<Audit>(&wrong)), ErrorKind::InvalidParams);
    let nobody = AuditParams { agent: Some("nobody".into()), ..all };
    assert_eq!(expect_error_kind(client.call::<Audit>(&nobody)), ErrorKind::AgentNotFound);
}

#[test]
fn what_the_owner_sets_of_an_agent_is_written_down_before_it_is_so() {
    let fixture = start_fixture();
    let set = |key: &str, value: &str| chorusctl(&fixture.home, ["agent", "config", "a", key, value]);
    for (key, value) in [
        ("permissions", "open"),
        ("model", "local/large"),
        ("system_prompt", "Be brief."),
        ("idle_timeout", "2h"),
        ("project", "north"),
    ] {
        set(key, value).expect_success();
    }
    let rows = audit(&mut fixture.client());
    let told: Vec<_> = rows.iter().map(|row| (&*row.action, row.old.as_deref(), row.new.as_deref())).collect();
    let prompt = rows[2].old.clone();
    assert_eq!(
        told,
        [
            ("agent.config:permissions", Some("\"asking\""), Some("\"open\"")),
            ("agent.config:model", Some("null"), Some("\"local/large\"")),
            ("agent.config:system_prompt", prompt.as_deref(), Some("\"Be brief.\"")),
        ]
    );
    let by: Vec<_> = rows.iter().map(|row| (&*row.decision, &*row.user, &*row.rule, row.turn_id)).collect();
    assert_eq!(by, [("changed", "owner", "agent config", None); 3]);
    in_catalog(
        &fixture.home.path,
        "CREATE TRIGGER full BEFORE INSERT ON audit_log BEGIN SELECT RAISE(ABORT, 'no room'); END;",
    );
    assert_ne!(set("permissions", "locked").status, 0);
    set("idle_timeout", "3h").expect_success();
    assert_eq!(chorusctl(&fixture.home, ["agent", "config", "a", "permissions"]).expect_success().trim(), "open");
}

#[test]
fn the_command_line_shows_them_and_destroyed_agents_too() {
    let fixture = some();
    fixture.client().call::<Destroy>(&DestroyParams { name: "b".into(), ..Default::default() }).expect("destroyed");
    let text = chorusctl(&fixture.home, ["--agent", "b", "audit"]).expect_success();
    let (line, why) = text.split_once('\n').expect("two lines");
    assert!(line.starts_with("     4  20") && line.ends_with("  b was allowed to use list_models"), "{text}");
    assert!(why.trim_start().starts_with("rule allow[") && why.ends_with(", on behalf of owner\n"), "{text}");
    assert_eq!(why.find("rule"), line.find("b was"), "one column");
    chorusctl(&fixture.home, ["agent", "config", "a", "model", "local/large"]).expect_success();
    let changed = chorusctl(&fixture.home, ["audit", "--limit", "1"]).expect_success();
    assert!(
        changed.contains("  owner changed the model of a\n") && changed.contains("after: \"local/large\"\n"),
        "{changed}"
    );
    let json = chorusctl(&fixture.home, ["--json", "audit", "--limit", "3"]).expect_json();
    let ids: Vec<&Value> = json["rows"].as_array().expect("rows").iter().map(|row| &row["id"]).collect();
    assert_eq!((ids, &json["next"]), (vec![&Value::from(3), &Value::from(4), &Value::from(5)], &Value::Null));
    let lines = chorusctl(&fixture.home, ["--format", "jsonl", "audit"]).expect_success();
    assert_eq!(lines.lines().count(), 5);
    assert_eq!(chorusctl(&fixture.home, ["audit", "--limit", "0"]).status, 2);
    let verified = chorusctl(&fixture.home, ["audit", "verify"]).expect_success();
    assert!(verified.starts_with("5 entries, hash chain intact; newest "), "{verified}");
}

#[test]
fn a_name_stands_for_every_agent_that_had_it() {
    let fixture = some();
    let mut client = fixture.client();
    client.call::<Destroy>(&DestroyParams { name: "b".into(), ..Default::default() }).expect("destroyed");
    agent_of(&mut client, "b", "open");
    queue_calls(&fixture, 2);
    fixture.spawn_send("b", "Which are there?").join().expect("the client").expect("a turn");
    let params = AuditParams { agent: Some("b".into()), ..AuditParams::default() };
    let rows = client.call::<Audit>(&params).expect("audit").rows;
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [4, 5, 6]);
    assert_ne!(rows[0].agent_id, rows[1].agent_id);
}
