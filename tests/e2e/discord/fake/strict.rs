//! Every rule rejects what breaks it, names the place, and is written down.

use serde_json::{Value, json};

use super::client::Client;
use super::connected;

/// Sends `body` and wants it refused at `place`, a path of the tree of errors, or with `place` as the code.
#[track_caller]
fn refused(client: &Client, method: &str, path: &str, body: &Value, place: &str) {
    let (status, said) = client.rest(method, path, body);
    assert!((400..500).contains(&status), "{status} {said} for {body}");
    let code = said["code"].as_u64().is_some_and(|code| place == code.to_string());
    let mut at = &said["errors"];
    for part in place.split('.') {
        at = &at[part];
    }
    assert!(code || at["_errors"][0]["message"].is_string(), "nothing at {place} in {said}");
}

fn button(fields: Value) -> Value {
    let mut button = json!({"type": 2, "style": 1, "label": "yes", "custom_id": "a"});
    for (name, value) in fields.as_object().expect("fields") {
        button[name] = value.clone();
    }
    button
}

fn row(buttons: Vec<Value>) -> Value {
    json!({"type": 1, "components": buttons})
}

#[test]
fn messages_that_discord_refuses() {
    let (discord, _, _, room, client) = connected();
    // What is refused is refused as itself, not as said before.
    discord.set_nonce_window(std::time::Duration::ZERO);
    let path = format!("/channels/{}/messages", room.id);
    let letters = |count: usize| "ä".repeat(count);
    assert_eq!(client.rest("POST", &path, &Client::body(json!({"content": letters(2000)}))).0, 200);
    assert!(discord.violations().is_empty());
    let rows = |buttons| json!({"components": [row(buttons)]});
    let many = |count: usize| (0..count).map(|n| button(json!({"custom_id": n.to_string()}))).collect::<Vec<_>>();
    let cases: Vec<(Value, &str)> = vec![
        (json!({"content": letters(2001)}), "content"),
        (json!({"content": 1}), "content"),
        (json!({"content": " \n "}), "50006"),
        (json!({"contents": "x"}), "contents"),
        (json!({"nonce": null}), "nonce"),
        (json!({"nonce": "x".repeat(26)}), "nonce"),
        (json!({"enforce_nonce": false}), "enforce_nonce"),
        (json!({"allowed_mentions": null}), "allowed_mentions"),
        (json!({"allowed_mentions": {"parse": ["everyone"]}}), "allowed_mentions.parse"),
        (json!({"allowed_mentions": {"parse": [], "users": ["1"]}}), "allowed_mentions.parse"),
        (json!({"allowed_mentions": {"parse": [], "replied_user": true}}), "allowed_mentions.parse"),
        (json!({"flags": 64}), "flags"),
        (json!({"attachments": [{"id": 0, "filename": "not.there"}]}), "attachments.0"),
        (json!({"embeds": vec![json!({"title": "x"}); 11]}), "embeds"),
        (json!({"embeds": [{"title": letters(257)}]}), "embeds.0.title"),
        (json!({"embeds": [{"description": letters(4097)}]}), "embeds.0.description"),
        (json!({"embeds": [{"titel": "x"}]}), "embeds.0.titel"),
        (json!({"embeds": [{"fields": vec![json!({"name": "a", "value": "b"}); 26]}]}), "embeds.0.fields"),
        (json!({"embeds": [{"description": letters(4000)}, {"description": letters(2001)}]}), "embeds"),
        (json!({"components": vec![row(vec![button(json!({}))]); 6]}), "components"),
        (json!({"components": [row(vec![])]}), "components.0.components"),
        (json!({"components": [button(json!({}))]}), "components.0.type"),
        (rows(many(6)), "components.0.components"),
        (rows(vec![button(json!({"label": letters(81)}))]), "components.0.components.0.label"),
        (rows(vec![button(json!({"label": null}))]), "components.0.components.0"),
        (rows(vec![button(json!({"custom_id": "x".repeat(101)}))]), "components.0.components.0.custom_id"),
        (rows(vec![button(json!({"custom_id": ""}))]), "components.0.components.0.custom_id"),
        (rows(vec![button(json!({})), button(json!({}))]), "components.0.components.1.custom_id"),
        (rows(vec![button(json!({"style": 9}))]), "components.0.components.0.style"),
        (rows(vec![button(json!({"colour": 9}))]), "components.0.components.0.colour"),
    ];
    for (fields, place) in &cases {
        refused(&client, "POST", &path, &Client::body(fields.clone()), place);
    }
    assert_eq!(discord.take_violations().len(), cases.len(), "each is written down");
    assert_eq!(room.messages().len(), 1, "and nothing was posted");

    let own = room.messages()[0].id;
    let path = format!("{path}/{own}");
    refused(&client, "PATCH", &path, &json!({"content": "x"}), "allowed_mentions");
    let with_nonce = json!({"content": "x", "nonce": "n", "allowed_mentions": {"parse": []}});
    refused(&client, "PATCH", &path, &with_nonce, "nonce");
    refused(&client, "PATCH", &path, &json!({"content": "", "allowed_mentions": {"parse": []}}), "50006");
    discord.take_violations();
}

#[test]
fn channels_that_discord_refuses() {
    let (discord, guild, _, _, client) = connected();
    let path = format!("/guilds/{}/channels", guild.id);
    for (body, place) in [
        (json!({}), "name"),
        (json!({"name": ""}), "name"),
        (json!({"name": "x".repeat(101)}), "name"),
        (json!({"name": "x", "topic": "x".repeat(1025)}), "topic"),
        (json!({"name": "x", "colour": 1}), "colour"),
        (json!({"name": "x", "type": 2}), "type"),
        (json!({"name": "x", "parent_id": "1"}), "parent_id"),
    ] {
        refused(&client, "POST", &path, &body, place);
    }
    assert_eq!(discord.take_violations().len(), 6, "a category may be gone without anybody's fault");
}

#[test]
fn commands_that_discord_refuses() {
    let (discord, guild, _, _, client) = connected();
    let path = format!("/applications/{}/guilds/{}/commands", discord.application(), guild.id);
    let command = |fields: Value| {
        let mut command = json!({"name": "a", "description": "d", "type": 1});
        for (name, value) in fields.as_object().expect("fields") {
            command[name] = value.clone();
        }
        json!([command])
    };
    let option = |fields: Value| {
        let mut option = json!({"type": 3, "name": "o", "description": "d"});
        for (name, value) in fields.as_object().expect("fields") {
            option[name] = value.clone();
        }
        option
    };
    let one = |fields: Value| command(json!({"options": [option(fields)]}));
    let choices = |count: usize| (0..count).map(|n| json!({"name": n.to_string(), "value": "v"})).collect::<Vec<_>>();
    let sub = json!({"type": 1, "name": "s", "description": "d"});
    let cases = [
        (command(json!({"name": "A"})), "0.name"),
        (command(json!({"name": "a b"})), "0.name"),
        (command(json!({"name": "x".repeat(33)})), "0.name"),
        (command(json!({"description": ""})), "0.description"),
        (command(json!({"description": "x".repeat(101)})), "0.description"),
        (command(json!({"colour": 1})), "0.colour"),
        (command(json!({"default_member_permissions": 8})), "0.default_member_permissions"),
        (json!([{"name": "a", "description": "d"}, {"name": "a", "description": "d"}]), "_errors.0"),
        (one(json!({"name": "O"})), "0.options.0.name"),
        (one(json!({"description": null})), "0.options.0.description"),
        (one(json!({"type": 12})), "0.options.0.type"),
        (one(json!({"choices": choices(26)})), "0.options.0.choices"),
        (one(json!({"choices": [{"name": "x".repeat(101), "value": "v"}]})), "0.options.0.choices.0.name"),
        (one(json!({"choices": choices(1), "autocomplete": true})), "0.options.0.autocomplete"),
        (one(json!({"type": 5, "autocomplete": true})), "0.options.0.autocomplete"),
        (command(json!({"options": [option(json!({})), option(json!({}))]})), "0.options"),
        (
            command(json!({"options": [option(json!({})), option(json!({"name": "p", "required": true}))]})),
            "0.options.1",
        ),
        (command(json!({"options": [option(json!({})), sub]})), "0.options"),
        (
            command(json!({"options": (0..26).map(|n| option(json!({"name": format!("o{n}")}))).collect::<Vec<_>>()})),
            "0.options",
        ),
    ];
    for (body, place) in &cases {
        if *place == "_errors.0" {
            assert_eq!(client.rest("PUT", &path, body).1["errors"]["_errors"][0]["message"], "Names must be unique");
            continue;
        }
        refused(&client, "PUT", &path, body, place);
    }
    assert_eq!(discord.take_violations().len(), cases.len());
    assert_eq!(discord.registrations(), 0);
}
