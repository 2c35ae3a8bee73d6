//! Messages over REST.

use std::time::Duration;

use chorus_tests::discord::TOKEN;
use chorus_tests::discord::permissions::{ATTACH_FILES, READ_MESSAGE_HISTORY, SEND_MESSAGES, VIEW_CHANNEL};
use serde_json::{Value, json};
use serenity::model::channel::Message;

use super::client::Client;
use super::connected;

#[test]
fn a_message_is_made_changed_listed_and_deleted() {
    let (discord, _, mara, room, mut client) = connected();
    let path = format!("/channels/{}/messages", room.id);
    let asked = room.say(&mara, "a question");
    let reply =
        json!({"message_reference": {"message_id": asked.to_string(), "fail_if_not_exists": false}, "content": " a\n"});
    let (status, made) = client.rest("POST", &path, &Client::body(reply));
    assert_eq!((status, &made["content"]), (200, &json!("a")), "without the space around it");
    let message: Message = serde_json::from_value(made.clone()).expect("a message as serenity reads it");
    assert_eq!(message.referenced_message.expect("the question").content, "a question");
    client.until("MESSAGE_CREATE");
    assert_eq!(client.until("MESSAGE_CREATE")["id"], made["id"], "of its own, too");

    // The same nonce is the same message.
    let (_, again) = client.rest("POST", &path, &Client::body(json!({"content": "other"})));
    assert_eq!(again["id"], made["id"]);
    discord.set_nonce_window(Duration::ZERO);
    let (_, other) = client.rest("POST", &path, &Client::body(json!({"content": "other"})));
    assert_ne!(other["id"], made["id"]);

    let id = made["id"].as_str().expect("its number");
    let change = json!({"content": "b", "allowed_mentions": {"parse": []}});
    assert_eq!(client.rest("PATCH", &format!("{path}/{id}"), &change).0, 200);
    let shown = room.wait_for_post("b");
    assert_eq!(
        (shown.edit_count(), &shown.previous_contents[..], shown.reply_to),
        (1, &["a".to_owned()][..], Some(asked))
    );

    let ids = |(status, page): (u16, Value)| {
        assert_eq!(status, 200, "{page}");
        page.as_array().expect("a page").iter().map(|message| message["content"].clone()).collect::<Vec<_>>()
    };
    for text in ["1", "2", "3"] {
        room.say(&mara, text);
    }
    let none = Value::Null;
    // Behind a message: those right behind it, newest first.
    assert_eq!(ids(client.rest("GET", &format!("{path}?after={asked}&limit=2"), &none)), ["other", "b"]);
    assert_eq!(ids(client.rest("GET", &format!("{path}?limit=2"), &none)), ["3", "2"]);
    assert_eq!(ids(client.rest("GET", &format!("{path}?before={id}"), &none)), ["a question"]);
    assert_eq!(client.rest("GET", &format!("{path}?limit=101"), &none).0, 400);
    discord.take_violations();
    assert_eq!(client.rest("DELETE", &format!("{path}/{id}"), &none).0, 204);
    assert_eq!(client.rest("GET", &format!("{path}/{id}"), &none).1["code"], 10_008);
    assert_eq!(room.deleted_messages().len(), 1);
}

#[test]
fn files_come_in_a_form() {
    let (_discord, _, _, room, client) = connected();
    let body = Client::body(json!({"content": "", "attachments": [{"id": 0, "filename": "a.txt"}]}));
    let form = format!(
        "--X\r\nContent-Disposition: form-data; name=\"files[0]\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\n\
         line\r\n\r\nline\r\n--X\r\nContent-Disposition: form-data; name=\"payload_json\"\r\n\r\n{body}\r\n--X--\r\n"
    );
    let (token, kind) = (format!("Bot {TOKEN}"), "multipart/form-data; boundary=X");
    let path = format!("/channels/{}/messages", room.id);
    let (status, made) =
        client.request("POST", &path, &[("authorization", &token)], kind, form.as_bytes()).expect("an answer");
    assert_eq!(status, 200, "{made}");
    let shown = room.application_posts().remove(0);
    assert_eq!((&*shown.files[0].name, &shown.files[0].bytes[..]), ("a.txt", &b"line\r\n\r\nline"[..]));
}

#[test]
fn what_the_application_may_not_do_is_refused() {
    let (discord, guild, mara, room, client) = connected();
    let path = format!("/channels/{}/messages", room.id);
    let foreign = room.say(&mara, "mine");
    let code = |method: &str, path: &str, body: &Value| client.rest(method, path, body).1["code"].clone();
    let edit = json!({"content": "x", "allowed_mentions": {"parse": []}});
    assert_eq!(code("PATCH", &format!("{path}/{foreign}"), &edit), 50_005);
    assert_eq!(discord.take_violations().len(), 1, "nobody needs to try that");
    assert_eq!(code("POST", "/channels/1/messages", &Client::body(json!({}))), 10_003);
    room.deny_application(SEND_MESSAGES);
    assert_eq!(code("POST", &path, &Client::body(json!({}))), 50_013);
    room.deny_application(VIEW_CHANNEL);
    assert_eq!(code("POST", &path, &Client::body(json!({}))), 50_001);
    room.deny_application(READ_MESSAGE_HISTORY);
    assert_eq!(client.rest("GET", &path, &Value::Null).1, json!([]));
    room.clear_denials();
    guild.set_application_permissions(VIEW_CHANNEL | SEND_MESSAGES | ATTACH_FILES);
    let new = json!({"name": "x"});
    assert_eq!(code("POST", &format!("/guilds/{}/channels", guild.id), &new), 50_013);
    assert_eq!(code("DELETE", &format!("{path}/{foreign}"), &Value::Null), 50_013);
    room.delete_channel();
    assert_eq!(code("POST", &path, &Client::body(json!({}))), 10_003);
    guild.remove_application();
    assert_eq!(code("GET", &format!("/guilds/{}/channels", guild.id), &Value::Null), 50_001);
    let refused = client.request("GET", "/users/@me", &[("authorization", "Bot x")], "", b"").expect("an answer");
    assert_eq!(refused.0, 401);
}

#[test]
fn channels_are_made_changed_and_deleted() {
    let (_discord, guild, _, _, mut client) = connected();
    let path = format!("/guilds/{}/channels", guild.id);
    let (status, category) = client.rest("POST", &path, &json!({"name": "Agents", "type": 4}));
    assert_eq!((status, &category["name"]), (201, &json!("Agents")));
    let made = json!({"name": "My Agent", "type": 0, "parent_id": category["id"], "topic": "what it does"});
    let (_, channel) = client.rest("POST", &path, &made);
    assert_eq!(channel["name"], "my-agent");
    assert_eq!(client.until("CHANNEL_CREATE")["name"], "Agents");
    assert_eq!(client.until("CHANNEL_CREATE")["name"], "my-agent");
    let room = guild.wait_for_channel("my-agent");
    assert_eq!((room.category().as_deref(), &*room.topic()), (Some("Agents"), "what it does"));
    client.rest("PATCH", &format!("/channels/{}", room.id), &json!({"topic": "other"}));
    assert_eq!(client.until("CHANNEL_UPDATE")["topic"], "other");
    for number in 1..50 {
        assert_eq!(
            client.rest("POST", &path, &json!({"name": format!("c{number}"), "parent_id": category["id"]})).0,
            201
        );
    }
    let (status, full) = client.rest("POST", &path, &made);
    let why = &full["errors"]["parent_id"]["_errors"][0]["code"];
    assert_eq!((status, why), (400, &json!("CHANNEL_PARENT_MAX_CHANNELS")));
    assert_eq!(client.rest("DELETE", &format!("/channels/{}", room.id), &Value::Null).0, 200);
    assert!(!room.exists());
}
