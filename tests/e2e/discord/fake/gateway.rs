//! HELLO, IDENTIFY, RESUME, heartbeats, ends.

use std::time::Duration;

use chorus_tests::discord::{FakeDiscord, TOKEN};
use serde_json::json;

use super::client::{Client, INTENTS};
use super::connected;

#[test]
fn a_new_session_is_told_of_servers_and_of_what_happens() {
    let (discord, guild, mara, room, mut client) = connected();
    let id = room.say(&mara, "hello");
    let told = client.until("MESSAGE_CREATE");
    assert_eq!((told["id"].as_str(), told["content"].as_str()), (Some(&*id.to_string()), Some("hello")));
    assert_eq!(told["member"]["roles"][0], guild.find_or_create_role("admin").to_string());
    room.edit_message(id, "hello again");
    assert_eq!(client.until("MESSAGE_UPDATE")["content"], "hello again");
    room.delete_message(id);
    assert_eq!(client.until("MESSAGE_DELETE")["id"], id.to_string());
    room.say_with_files(&mara, "", &[("a.txt", "text/plain", b"text")]);
    let told = client.until("MESSAGE_CREATE");
    assert_eq!(told["attachments"][0]["size"], 4);
    let url = told["attachments"][0]["url"].as_str().expect("where it is").to_owned();
    assert!(url.starts_with(&discord.url()), "{url}");
    _ = guild.create_channel("More Talk!");
    assert_eq!(client.until("CHANNEL_CREATE")["name"], "more-talk");
    room.post_by_webhook("hook", "from outside");
    assert!(client.until("MESSAGE_CREATE")["webhook_id"].is_string());
    room.delete_channel();
    client.until("CHANNEL_DELETE");
    guild.remove_application();
    client.until("GUILD_DELETE");
    guild.make_available();
    client.until("GUILD_CREATE");
}

#[test]
fn without_the_intent_messages_of_others_say_nothing() {
    let discord = FakeDiscord::start();
    let guild = discord.create_guild("home");
    let (mara, room) = (guild.add_member("mara", &[], 0), guild.create_channel("general"));
    let mut client = Client::hello(&discord);
    // With the word that stands before it in requests: there are clients that send it so.
    client.identify(&format!("Bot {TOKEN}"), INTENTS & !(1 << 15));
    client.until("GUILD_CREATE");
    room.say(&mara, "secret");
    assert_eq!(client.until("MESSAGE_CREATE")["content"], "");
    room.say(&mara, &format!("<@{}> look", discord.application()));
    assert!(client.until("MESSAGE_CREATE")["content"].as_str().is_some_and(|text| text.ends_with("look")));
    room.say(&discord.own_user(), "mine");
    assert_eq!(client.until("MESSAGE_CREATE")["content"], "mine");
}

#[test]
fn heartbeats_are_acknowledged_and_missed() {
    let discord = FakeDiscord::start();
    discord.set_heartbeat(Duration::from_millis(50));
    let mut client = Client::identified(&discord);
    client.send(&json!({"op": 1, "d": client.seq}));
    assert_eq!(client.op(11)["op"], 11);
    assert_eq!(client.closed(), 4009);
    assert!(discord.take_violations()[0].contains("heartbeat was missed"));
}

#[test]
fn whoever_is_not_let_in_is_told_why() {
    let discord = FakeDiscord::start();
    let mut wrong_token = Client::hello(&discord);
    wrong_token.identify("none", INTENTS);
    assert_eq!(wrong_token.closed(), 4004);
    let mut unknown = Client::hello(&discord);
    unknown.identify(TOKEN, 1 << 40);
    assert_eq!(unknown.closed(), 4013);
    discord.set_message_content(false);
    let mut disallowed = Client::hello(&discord);
    disallowed.identify(TOKEN, INTENTS);
    assert_eq!(disallowed.closed(), 4014);
    let mut early = Client::hello(&discord);
    early.send(&json!({"op": 3, "d": {}}));
    assert_eq!(early.closed(), 4003);
    discord.set_message_content(true);
    let mut twice = Client::identified(&discord);
    twice.identify(TOKEN, INTENTS);
    assert_eq!(twice.closed(), 4005);
    let mut soon = Client::hello(&discord);
    soon.identify(TOKEN, INTENTS);
    assert_eq!(soon.op(9)["d"], false);
    assert_eq!((discord.identifies(), discord.identifies_refused()), (1, 1));
    discord.set_identify_interval(Duration::ZERO);
    discord.set_session_start_limit(0, Duration::from_secs(60));
    let mut spent = Client::hello(&discord);
    let (_, told) = spent.rest("GET", "/gateway/bot", &json!(null));
    assert_eq!(
        told["session_start_limit"],
        json!({"total": 1000, "remaining": 0, "reset_after": 60_000, "max_concurrency": 1})
    );
    spent.identify(TOKEN, INTENTS);
    assert_eq!(spent.closed(), 4004);
    assert_eq!(discord.take_violations().len(), 4, "unknown intents, too early, twice, none left");
}

#[test]
fn too_many_frames_end_the_connection() {
    let (discord, _, _, _, mut client) = connected();
    for _ in 0..121 {
        client.send(&json!({"op": 1, "d": null}));
    }
    assert_eq!(client.closed(), 4008);
    assert!(discord.take_violations()[0].contains("4008"));
}

#[test]
fn a_session_is_taken_up_with_what_was_missed() {
    let (discord, guild, mara, room, mut first) = connected();
    discord.close_connections(4000);
    assert_eq!(first.closed(), 4000);
    discord.wait_disconnected();
    let missed = room.say(&mara, "missed");
    let mut second = Client::hello(&discord);
    second.seq = first.seq;
    second.resume(&first.session, first.seq);
    assert_eq!(second.until("MESSAGE_CREATE")["id"], missed.to_string());
    second.until("RESUMED");
    assert_eq!((discord.resumes(), discord.identifies()), (1, 1));

    // From a number that never was: invalid, and the session is over.
    discord.request_reconnect();
    assert_eq!(second.op(7)["op"], 7);
    let mut third = Client::hello(&discord);
    third.resume(&first.session, 1000);
    assert_eq!(third.closed(), 4007);
    assert_eq!(discord.take_violations().len(), 1);
    let mut fourth = Client::hello(&discord);
    fourth.resume(&first.session, 1);
    assert_eq!(fourth.op(9)["d"], false);
    drop(guild);
}

#[test]
fn connections_break_in_every_way() {
    let (discord, _, mara, room, mut client) = connected();
    discord.invalidate_sessions(true);
    assert_eq!(client.op(9)["d"], true);
    discord.reset_connections();
    assert_eq!(client.closed(), 0);
    discord.set_identify_interval(Duration::ZERO);
    let mut silent = Client::identified(&discord);
    silent.until("GUILD_CREATE");
    discord.silence_connections();
    room.say(&mara, "nobody hears it");
    silent.send(&json!({"op": 1, "d": null}));
    discord.reset_connections();
    assert_eq!(silent.closed(), 0);
    discord.refuse_connections();
    assert!(silent.request("GET", "/gateway/bot", &[], "", b"").is_none());
    discord.accept_connections();
    let mut invalid = Client::identified(&discord);
    discord.invalidate_sessions(false);
    assert_eq!(invalid.op(9)["d"], false);
    let mut again = Client::hello(&discord);
    again.resume(&invalid.session, 1);
    assert_eq!(again.op(9)["d"], false);
    discord.set_token_revoked(true);
    assert_eq!(again.closed(), 4004);
}
