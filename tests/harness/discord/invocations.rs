//! Sends commands, autocomplete requests and button presses to the application as interactions.

use std::time::Instant;

use serde_json::{Map, Value, json};

use super::messages::Message;
use super::state::{InteractionRecord, State};

/// Maximum size of a file in bytes.
const MAX_FILE_BYTES: u64 = 10 << 20;

/// Dispatches an interaction of a user in a channel. Returns its id.
pub fn dispatch_interaction(
    state: &mut State,
    (room, user): (u64, u64),
    kind: u64,
    message: Option<u64>,
    data: Value,
) -> u64 {
    let channel = state.channels.get(&room).expect("the channel").clone();
    let id = state.snowflakes.next();
    let person = state.users[&user].to_json();
    let own = state.permissions(room, user);
    let guild = state.guild(channel.guild).cloned();
    let owners = json!({"0": guild.as_ref().map_or(0, |guild| guild.id).to_string()});
    let mut told = json!({
        "id": id.to_string(), "application_id": state.application_id.to_string(), "type": kind, "data": data,
        "channel_id": room.to_string(), "channel": channel.to_partial_json(own), "token": format!("interaction-token-{id}"),
        "version": 1, "app_permissions": state.permissions(room, state.application_id).to_string(), "locale": "en-US",
        "entitlements": [], "entitlement_sku_ids": [], "authorizing_integration_owners": owners,
        "context": if guild.is_some() { 0 } else { 1 }, "attachment_size_limit": MAX_FILE_BYTES,
    });
    match guild {
        Some(guild) => {
            let mut member = guild.member_json(user);
            member["user"] = person.clone();
            member["permissions"] = own.to_string().into();
            told["member"] = member;
            told["guild_id"] = guild.id.to_string().into();
            told["guild"] = json!({"id": guild.id.to_string(), "locale": "en-US", "features": []});
            told["guild_locale"] = "en-US".into();
        }
        None => told["user"] = person.clone(),
    }
    if let Some(message) = message.and_then(|id| state.messages.get(&id)) {
        told["message"] = state.message_json(message, false);
    } else if let Some(id) = message {
        // The message was deleted just before the button was pressed.
        let gone = state.deleted.iter().find(|gone| gone.id == id).cloned();
        let gone = gone.unwrap_or_else(|| Message::new(id, room, state.application_id, ""));
        told["message"] = state.message_json(&gone, false);
    }
    let metadata =
        json!({"id": id.to_string(), "type": kind, "user": person, "authorizing_integration_owners": owners});
    let heard = state.is_connected();
    state.interactions.insert(
        id,
        InteractionRecord {
            id,
            token: format!("interaction-token-{id}"),
            kind,
            channel: room,
            user,
            metadata,
            at: Instant::now(),
            was_connected: heard,
            message,
            callback: None,
            original: None,
            responses: Vec::new(),
            choices: None,
            form: None,
        },
    );
    state.dispatch("INTERACTION_CREATE", 0, &told);
    id
}

/// Builds the data of a command that is invoked or, with `focused`, being typed.
#[track_caller]
pub fn command_data(
    state: &State,
    definition: &Value,
    command: &str,
    given: &[(&str, &str)],
    focused: Option<&str>,
) -> Value {
    let words: Vec<&str> = command.split(' ').collect();
    let mut data = json!({"id": definition["id"], "name": words[0], "type": 1});
    if !definition["guild_id"].is_null() {
        data["guild_id"] = definition["guild_id"].clone();
    }
    let mut resolved = Map::new();
    // From the command inwards, then from the innermost options outwards.
    let mut levels = vec![definition];
    for word in &words[1..] {
        let options = levels[levels.len() - 1]["options"].as_array().map_or(&[][..], Vec::as_slice);
        let found =
            options.iter().find(|option| option["name"] == *word && matches!(option["type"].as_u64(), Some(1 | 2)));
        levels.push(found.unwrap_or_else(|| panic!("/{command}: there is no {word}")));
    }
    let mut options = option_values(state, levels[levels.len() - 1], command, given, focused, &mut resolved);
    for level in levels[1..].iter().rev() {
        options = vec![json!({"name": level["name"], "type": level["type"], "options": options})];
    }
    data["options"] = options.into();
    if !resolved.is_empty() {
        data["resolved"] = resolved.into();
    }
    data
}

#[track_caller]
fn option_values(
    state: &State,
    level: &Value,
    command: &str,
    given: &[(&str, &str)],
    focused: Option<&str>,
    resolved: &mut Map<String, Value>,
) -> Vec<Value> {
    let known = level["options"].as_array().map_or(&[][..], Vec::as_slice);
    assert!(!known.iter().any(|option| matches!(option["type"].as_u64(), Some(1 | 2))), "/{command} is not whole");
    for option in known.iter().filter(|option| option["required"] == true && focused.is_none()) {
        assert!(given.iter().any(|(name, _)| option["name"] == *name), "/{command} needs {}", option["name"]);
    }
    let value = |(name, text): &(&str, &str)| {
        let option = known.iter().find(|option| option["name"] == *name);
        let option = option.unwrap_or_else(|| panic!("/{command} has no option {name}"));
        let mut said = json!({"name": name, "type": option["type"]});
        if focused == Some(name) {
            assert!(option["autocomplete"] == true, "/{command}: {name} is not completed");
            // A value that is being typed is a string, whatever type it will have.
            (said["focused"], said["value"]) = (true.into(), (*text).into());
            return said;
        }
        said["value"] = option_value(state, option, text, resolved);
        let offered = option["choices"].as_array().filter(|choices| !choices.is_empty());
        let fits = offered.is_none_or(|choices| choices.iter().any(|choice| choice["value"] == said["value"]));
        assert!(fits, "/{command}: {text} is no choice of {name}");
        said
    };
    given.iter().map(value).collect()
}

/// Converts a text to the value of an option.
#[track_caller]
fn option_value(state: &State, option: &Value, text: &str, resolved: &mut Map<String, Value>) -> Value {
    let number = || text.parse::<u64>().expect("the number of somebody or something");
    let mut resolve = |kind: &str, json: Value| {
        resolved.entry(kind).or_insert_with(|| json!({}))[text] = json;
        Value::from(text)
    };
    match option["type"].as_u64() {
        Some(3) => {
            let (least, most) =
                (option["min_length"].as_u64().unwrap_or(0), option["max_length"].as_u64().unwrap_or(6000));
            let length = text.chars().count() as u64;
            assert!((least..=most).contains(&length), "{text:?} is too short or too long");
            text.into()
        }
        Some(4) => text.parse::<i64>().expect("a whole number").into(),
        Some(5) => text.parse::<bool>().expect("true or false").into(),
        Some(6) => resolve("users", state.users[&number()].to_json()),
        Some(7) => {
            let channel = &state.channels[&number()];
            resolve("channels", channel.to_partial_json(0))
        }
        Some(8) => {
            let role = state.guilds.iter().flat_map(|guild| &guild.roles).find(|role| role.id == number());
            resolve("roles", role.expect("a role").to_json(1))
        }
        Some(10) => text.parse::<f64>().expect("a number").into(),
        kind => panic!("the fake gives no option of the type {kind:?}"),
    }
}
