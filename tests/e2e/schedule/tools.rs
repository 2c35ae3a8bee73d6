//! The tools with which agents change their own schedules.

use chorus_proto::Role;
use chorus_proto::methods::schedule::{Add, AddParams, List, ListParams, Run, RunParams, Schedule};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, Fixture, wait_until};
use serde_json::json;

use crate::tools::self_edit::{audited_changes, expect_tool, expect_tool_error, results_in, start_fixture};

fn schedules(fixture: &Fixture) -> Vec<Schedule> {
    let params = ListParams { agent: Some("a".into()), ..Default::default() };
    fixture.client().call::<List>(&params).expect("schedule.list").schedules
}

#[test]
fn an_agent_adds_lists_and_removes_its_schedules() {
    let fixture = start_fixture("open");
    let params = json!({"name": "standup", "message": "Summarize.", "cron": "0 7 * * mon-fri", "time_zone": "UTC"});
    let said = expect_tool(&fixture, "schedule_add", params.clone());
    assert!(said.starts_with("scheduled standup; next: ") && said.contains("T07:00:00Z"), "{said}");
    let added = schedules(&fixture).remove(0);
    assert_eq!((added.cron.as_deref(), added.created_by.as_str()), (Some("0 7 * * mon-fri"), "owner"));
    let said = expect_tool(&fixture, "schedule_list", json!({}));
    assert!(said.starts_with("standup: 0 7 * * mon-fri (UTC), next ") && said.ends_with(": Summarize."), "{said}");
    let said = expect_tool_error(&fixture, "schedule_add", params);
    assert!(said.contains("already has a schedule standup"), "{said}");
    assert_eq!(expect_tool(&fixture, "schedule_remove", json!({"name": "standup"})), "removed standup");
    assert!(schedules(&fixture).is_empty());
    let changes: Vec<String> = audited_changes(&fixture).into_iter().map(|[action, ..]| action).collect();
    assert!(changes.ends_with(&["schedule.add".to_owned(), "schedule.remove".to_owned()]), "{changes:?}");
}

#[test]
fn what_is_no_schedule_is_refused_with_the_reason() {
    let fixture = start_fixture("open");
    for (params, reason) in [
        (json!({"name": "x", "message": "m"}), "exactly one of"),
        (json!({"name": "x", "message": "m", "cron": "* * * * *", "every": "4h"}), "exactly one of"),
        (json!({"name": "x", "message": "m", "every": "30s"}), "from 1 minute"),
        (json!({"name": "x", "message": "m", "every": "often"}), "not a duration"),
        (json!({"name": "x", "message": "m", "cron": "0 25 * * *"}), "character 3"),
        (json!({"name": "X y", "message": "m", "after": "20m"}), "not a valid schedule name"),
    ] {
        let said = expect_tool_error(&fixture, "schedule_add", params);
        assert!(said.contains(reason), "{said}");
    }
    assert!(schedules(&fixture).is_empty());
}

#[test]
fn the_standard_profile_asks_and_the_locked_one_has_no_such_tool() {
    let params = json!({"name": "x", "message": "m", "every": "4h"});
    let fixture = start_fixture("standard");
    let said = expect_tool_error(&fixture, "schedule_add", params.clone());
    assert!(said.contains("was not approved"), "{said}");
    assert_eq!(expect_tool(&fixture, "schedule_list", json!({})), "you have no schedules");
    let fixture = start_fixture("locked");
    let said = expect_tool_error(&fixture, "schedule_add", params);
    assert!(said.contains("not allowed"), "{said}");
    let request = fixture.models().requests().pop().expect("a request");
    assert!(!request.body["tools"].to_string().contains("schedule_"), "{}", request.body["tools"]);
}

#[test]
fn a_scheduled_turn_adds_no_schedule_unless_a_person_approves() {
    let fixture = start_fixture("open");
    let mut client = fixture.client();
    let params = AddParams {
        agent: Some("a".into()),
        name: "look".into(),
        message: "Look.".into(),
        every_seconds: Some(3600),
        ..Default::default()
    };
    client.call::<Add>(&params).expect("schedule.add");
    let call = json!({"name": "more", "message": "More.", "every": "1m"});
    fixture.models().anthropic().queue(Response::tool_call("c1", "schedule_add", &call));
    fixture.models().anthropic().queue_text(["It was refused."]);
    client.call::<Run>(&RunParams { agent: Some("a".into()), name: "look".into() }).expect("schedule.run");
    wait_until("the run", DEADLINE, || (!schedules(&fixture)[0].runs.is_empty()).then_some(()));
    let refused = results_in(&fixture, "a", "schedule-look").pop().expect("a result");
    assert!(refused.is_error && refused.text.contains("was not approved"), "{}", refused.text);
    assert_eq!(schedules(&fixture).len(), 1);
    let last = client.messages_in("a", "schedule-look").pop().expect("a message");
    assert_eq!((last.role, &*last.content), (Role::Assistant, "It was refused."));
}
