//! Commands, completion and buttons.

use std::time::Duration;

use chorus_tests::discord::{FakeDiscord, GuildHandle};
use chorus_tests::{DEADLINE, wait_until};
use serde_json::{Value, json};

use super::client::Client;
use super::connected;

fn register(client: &Client, discord: &FakeDiscord, guild: &GuildHandle) {
    let path = format!("/applications/{}/guilds/{}/commands", discord.application(), guild.id);
    let name = json!({"type": 3, "name": "name", "description": "d", "autocomplete": true});
    let count = json!({"type": 4, "name": "count", "description": "d"});
    let save = json!({"type": 1, "name": "save", "description": "d", "options": [name, count]});
    let commands = json!([{"name": "context", "description": "d", "options": [save]}]);
    assert_eq!(client.rest("PUT", &path, &commands).0, 200);
    assert_eq!(client.rest("GET", &path, &Value::Null).1[0]["name"], "context");
}

/// Answers an interaction at once.
fn answer(client: &Client, told: &Value, body: &Value) -> (u16, Value) {
    let path = format!("/interactions/{}/{}/callback", said(&told["id"]), said(&told["token"]));
    client.rest("POST", &path, body)
}

fn later(discord: &FakeDiscord, told: &Value, rest: &str) -> String {
    format!("/webhooks/{}/{}{rest}", discord.application(), said(&told["token"]))
}

fn said(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn text(text: &str) -> Value {
    json!({"content": text, "allowed_mentions": {"parse": []}})
}

#[test]
fn a_command_is_given_deferred_and_answered() {
    let (discord, guild, mara, room, mut client) = connected();
    register(&client, &discord, &guild);
    let asked = mara.run_slash_command(&room, "context save", &[("name", "first"), ("count", "3")]);
    let told = client.until("INTERACTION_CREATE");
    let sub = &told["data"]["options"][0];
    assert_eq!((&sub["name"], &sub["options"][1]["value"]), (&json!("save"), &json!(3)));
    assert_eq!(told["member"]["user"]["username"], "mara");
    assert!(!asked.is_acknowledged());
    let (status, _) = answer(&client, &told, &json!({"type": 5, "data": {"flags": 64}}));
    assert_eq!(status, 204);
    assert_eq!(asked.wait_for_acknowledgement().0, 5);
    assert!(asked.responses().is_empty(), "it thinks");
    assert_eq!(client.rest("PATCH", &later(&discord, &told, "/messages/@original"), &text("saved")).0, 200);
    let shown = asked.response();
    assert_eq!((&*shown.content, shown.ephemeral), ("saved", true));
    assert_eq!(client.rest("POST", &later(&discord, &told, ""), &text("and more")).0, 200);
    assert_eq!(asked.responses().len(), 2);
    assert!(room.messages().iter().all(|message| message.content != "saved"), "only one person sees it");
    assert_eq!(client.rest("DELETE", &later(&discord, &told, "/messages/@original"), &Value::Null).0, 204);
    assert_eq!(asked.response().content, "and more");

    let (status, twice) = answer(&client, &told, &json!({"type": 5}));
    assert_eq!((status, &twice["code"]), (400, &json!(40_060)));
    assert_eq!(discord.take_violations().len(), 1);
}

#[test]
fn a_first_followup_fills_what_is_thought_about() {
    let (discord, guild, mara, room, mut client) = connected();
    register(&client, &discord, &guild);
    let asked = mara.run_slash_command(&room, "context save", &[]);
    let told = client.until("INTERACTION_CREATE");
    answer(&client, &told, &json!({"type": 5}));
    assert!(room.messages()[0].is_thinking);
    let mut followup = text("done");
    followup["flags"] = 64.into();
    client.rest("POST", &later(&discord, &told, ""), &followup);
    let shown = asked.response();
    assert_eq!((&*shown.content, shown.ephemeral, room.messages().len()), ("done", false, 1), "as it was deferred");
}

#[test]
fn what_is_typed_is_completed() {
    let (discord, guild, mara, room, mut client) = connected();
    register(&client, &discord, &guild);
    let choices = std::thread::scope(|scope| {
        let typing = scope.spawn(|| mara.autocomplete(&room, "context save", &[("name", "fi")]));
        let told = client.until("INTERACTION_CREATE");
        let focused = &told["data"]["options"][0]["options"][0];
        assert_eq!((&focused["focused"], &focused["value"]), (&json!(true), &json!("fi")));
        let too_many = vec![json!({"name": "n", "value": "v"}); 26];
        assert_eq!(answer(&client, &told, &json!({"type": 8, "data": {"choices": too_many}})).0, 400);
        let too_long = json!([{"name": "n".repeat(101), "value": "v"}]);
        assert_eq!(answer(&client, &told, &json!({"type": 8, "data": {"choices": too_long}})).0, 400);
        assert_eq!(answer(&client, &told, &json!({"type": 4, "data": text("no")})).0, 400);
        let offered = json!([{"name": "first", "value": "1"}]);
        assert_eq!(answer(&client, &told, &json!({"type": 8, "data": {"choices": offered}})).0, 204);
        typing.join().expect("words")
    });
    assert_eq!(choices, [("first".to_owned(), json!("1"))]);
    assert_eq!(discord.take_violations().len(), 3);
}

#[test]
fn a_button_changes_its_message_or_brings_a_new_one() {
    let (discord, _, mara, room, mut client) = connected();
    let row = json!([{"type": 1, "components": [{"type": 2, "style": 1, "label": "Stop", "custom_id": "stop:1"}]}]);
    let path = format!("/channels/{}/messages", room.id);
    client.rest("POST", &path, &Client::body(json!({"components": row})));
    let shown = room.wait_for_post_with_button("Stop");
    let pressed = mara.press_button(&shown, "Stop");
    let told = client.until("INTERACTION_CREATE");
    assert_eq!((&told["data"]["custom_id"], &told["message"]["id"]), (&json!("stop:1"), &json!(shown.id.to_string())));
    let mut update = text("stopped");
    update["components"] = json!([]);
    assert_eq!(answer(&client, &told, &json!({"type": 7, "data": update})).0, 204);
    let after = pressed.response();
    assert_eq!((after.id, &*after.content, after.buttons.len()), (shown.id, "stopped", 0));

    let late = mara.press_stale_button(&room, shown.id, "stop:1");
    let told = client.until("INTERACTION_CREATE");
    assert_eq!(answer(&client, &told, &json!({"type": 6})).0, 204);
    let mut only = text("it is over");
    only["flags"] = 64.into();
    client.rest("POST", &later(&discord, &told, ""), &only);
    assert!(late.response().ephemeral);
}

#[test]
fn a_conversation_with_the_application_has_no_server() {
    let (discord, guild, mara, _, mut client) = connected();
    register(&client, &discord, &guild);
    let direct = discord.direct_channel(&mara);
    let _asked = mara.run_slash_command(&direct, "context save", &[]);
    let told = client.until("INTERACTION_CREATE");
    assert!(told["guild_id"].is_null() && told["member"].is_null());
    assert_eq!(told["user"]["username"], "mara");
}

#[test]
fn an_answer_that_comes_late_is_refused() {
    let (discord, guild, mara, room, mut client) = connected();
    register(&client, &discord, &guild);
    let asked = mara.run_slash_command(&room, "context save", &[]);
    let told = client.until("INTERACTION_CREATE");
    let since = std::time::Instant::now();
    wait_until("three seconds", DEADLINE, || (since.elapsed() > Duration::from_secs(3)).then_some(()));
    let (status, late) = answer(&client, &told, &json!({"type": 5}));
    assert_eq!((status, &late["code"]), (404, &json!(10_062)));
    assert!(!asked.is_acknowledged());
    assert_eq!(discord.take_violations().len(), 1);
    let early = client.rest("PATCH", &later(&discord, &told, "/messages/@original"), &text("x"));
    assert_eq!(early.1["code"], 10_015);
    discord.take_violations();
}
