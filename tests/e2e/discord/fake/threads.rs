//! Threads over REST and the gateway.

use chorus_tests::discord::permissions::SEND_MESSAGES_IN_THREADS;
use serde_json::{Value, json};
use serenity::model::channel::GuildChannel;

use super::client::Client;
use super::connected;

#[test]
fn a_thread_is_created_archived_opened_by_a_message_and_deleted() {
    let (discord, server, mara, room, mut client) = connected();
    let threads = format!("/channels/{}/threads", room.id);
    assert_eq!(client.rest("POST", &threads, &json!({"name": "x", "type": 12})).0, 400);
    assert_eq!(client.rest("POST", &threads, &json!({"name": ""})).0, 400);
    discord.take_violations();
    let (status, made) = client.rest("POST", &threads, &json!({"name": "Aside", "type": 11}));
    assert_eq!((status, &made["parent_id"], &made["name"]), (201, &json!(room.id.to_string()), &json!("Aside")));
    let read: GuildChannel = serde_json::from_value(made.clone()).expect("a thread as serenity reads it");
    assert!(read.thread_metadata.is_some_and(|metadata| !metadata.archived));
    assert_eq!(client.until("THREAD_CREATE")["id"], made["id"]);
    let thread = server.threads(&room).pop().expect("the thread");
    let messages = format!("/channels/{}/messages", thread.id);
    let asked = thread.say(&mara, "hello");
    thread.archive();
    assert_eq!(client.until("THREAD_UPDATE")["thread_metadata"]["archived"], true);
    let change = json!({"content": "b", "allowed_mentions": {"parse": []}});
    let (_, own) = client.rest("POST", &messages, &Client::body(json!({"content": "a"})));
    assert_eq!(client.until("THREAD_UPDATE")["thread_metadata"]["archived"], false);
    thread.archive();
    let path = format!("{messages}/{}", own["id"].as_str().expect("its number"));
    assert_eq!(client.rest("PATCH", &path, &change).1["code"], 50_083, "{asked}");
    thread.lock();
    discord.set_nonce_window(std::time::Duration::ZERO);
    let (status, refused) = client.rest("POST", &messages, &Client::body(json!({"content": "c"})));
    assert_eq!((status, &refused["code"]), (400, &json!(50_083)));
    assert!(thread.is_archived());
    thread.unarchive();
    room.deny_application(SEND_MESSAGES_IN_THREADS);
    let denied = client.rest("POST", &messages, &Client::body(json!({"content": "d"})));
    assert_eq!(denied.0, 403, "permissions are those of the channel");
    thread.delete_channel();
    assert_eq!(client.until("THREAD_DELETE")["parent_id"], room.id.to_string());
    assert_eq!(client.rest("GET", &messages, &Value::Null).0, 404);
}
