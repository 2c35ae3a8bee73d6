//! What goes wrong on purpose.

use std::time::Duration;

use chorus_tests::discord::Fault;
use serde_json::{Value, json};

use super::client::Client;
use super::connected;

#[test]
fn requests_fail_as_they_are_told() {
    let (discord, _, _, room, client) = connected();
    let path = format!("/channels/{}/messages", room.id);
    let post = || client.request("POST", &path, &[], "application/json", b"{}");
    let after = Duration::from_secs(1336);
    discord.inject_fault("POST /channels/*/messages", 1, Fault::RateLimit { after, global: false });
    discord.inject_fault("POST /channels/**", 1, Fault::RateLimit { after: Duration::from_millis(1500), global: true });
    discord.inject_fault("* /channels/*/messages", 1, Fault::Html403);
    discord.inject_fault("POST /channels/*/messages", 1, Fault::Status(502));
    discord.inject_fault("POST /channels/*/messages", 1, Fault::Refuse(403, 50_013, "Missing Permissions"));
    discord.inject_fault("POST /channels/*/messages", 1, Fault::Reset);
    assert_eq!(client.rest("GET", "/users/@me", &Value::Null).0, 200, "others go on");
    let (status, said) = post().expect("an answer");
    assert_eq!((status, &said["retry_after"], &said["global"]), (429, &json!(1336.0), &json!(false)));
    let (status, said) = post().expect("an answer");
    assert_eq!((status, &said["retry_after"], &said["global"]), (429, &json!(1.5), &json!(true)));
    let (status, said) = post().expect("an answer");
    assert!(status == 403 && said.as_str().is_some_and(|html| html.contains("<html>")));
    assert_eq!(post().expect("an answer").0, 502);
    assert_eq!(post().expect("an answer").1["code"], 50_013);
    assert!(post().is_none());
    assert_eq!(discord.requests_to("POST /channels/*/messages").len(), 6);

    discord.inject_fault("POST /channels/*/messages", 1, Fault::LoseResponse);
    let body = Client::body(json!({"content": "done all the same"})).to_string();
    let token = format!("Bot {}", chorus_tests::discord::TOKEN);
    assert!(client.request("POST", &path, &[("authorization", &token)], "application/json", body.as_bytes()).is_none());
    room.wait_for_post("done all the same");
}

#[test]
fn a_request_waits_at_a_gate() {
    let (discord, _, _, room, client) = connected();
    discord.inject_fault("POST /channels/*/messages", 1, Fault::Gate("held"));
    std::thread::scope(|scope| {
        let (path, body) = (format!("/channels/{}/messages", room.id), Client::body(json!({})));
        let posting = scope.spawn(move || client.rest("POST", &path, &body));
        discord.wait_for_gate("held");
        assert!(room.messages().is_empty());
        discord.open_gate("held");
        assert_eq!(posting.join().expect("an answer").0, 200);
    });
    assert_eq!(room.application_posts().len(), 1);
}

#[test]
fn a_route_takes_so_many_and_says_so() {
    let (discord, _, _, room, client) = connected();
    discord.set_rate_limit(2, Duration::from_secs(600));
    let path = format!("/channels/{}/messages", room.id);
    let post = |nonce: &str| client.rest("POST", &path, &Client::body(json!({"nonce": nonce})));
    assert_eq!((post("a").0, post("b").0), (200, 200));
    let (status, said) = post("c");
    assert_eq!(status, 429);
    assert!(said["retry_after"].as_f64().is_some_and(|seconds| seconds > 500.0));
    assert_eq!(client.rest("GET", "/users/@me", &Value::Null).0, 200);
}
