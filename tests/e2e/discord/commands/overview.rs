//! `/status`, `/models`, `/approvals`, `/usage`, `/ping`, `/tasks`.

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};
use serde_json::json;

use super::{CommandFixture, refused};

#[test]
fn how_things_stand_is_told_to_who_asks() {
    let server = ModelServer::start();
    let fixture = CommandFixture::with(&server.config_toml());
    fixture.slash("usage", &[]).response_with("has not used a model yet");
    server.anthropic().queue(Response::text(["Hello."]));
    let params = SendParams { agent: Some("scribe".into()), text: "Hello?".into(), ..Default::default() };
    fixture.client().call::<Send>(&params).expect("a turn");
    for (command, due) in [
        ("ping", "Chorus "),
        ("status", "**scribe**"),
        ("models", "default: `anthropic/claude-test`"),
        ("approvals", "No pending approvals"),
        ("usage", "total: 1 call"),
        ("tasks list", "has no background tasks"),
    ] {
        let answer = fixture.otto.run_slash_command(&fixture.room, command, &[]).response_with(due);
        assert!(answer.ephemeral, "{command}: {answer:?}");
    }
    let status = fixture.otto.run_slash_command(&fixture.room, "status", &[]).response_with("2 messages");
    assert!(status.content.contains(" tokens (estimated)"), "{status:?}");
    fixture.slash("usage", &[]).response_with("The provider counted all tokens.");
    assert!(
        !status.content.contains(fixture.home.path.to_str().expect("UTF-8")),
        "places are none of theirs: {status:?}"
    );
    for command in ["usage", "approvals", "context history"] {
        refused(&fixture.otto.run_slash_command(&fixture.hall, command, &[]), "This channel has no agent");
    }
}

#[test]
fn tasks_are_listed_shown_and_stopped() {
    let server = ModelServer::start();
    let fixture = CommandFixture::with(&server.config_toml());
    let mut client = fixture.client();
    let params = InitParams { name: "runner".into(), permissions: Some("open".into()), ..Default::default() };
    client.call::<Init>(&params).expect("agent.init");
    let room = fixture.server.wait_for_channel("runner");
    let call = json!({"command": "until test -e go; do sleep 0.01; done", "background": true});
    server.anthropic().queue(Response::tool_call("c1", "bash", &call));
    server.anthropic().queue(Response::text(["It runs."]));
    let params = SendParams { agent: Some("runner".into()), text: "Run it.".into(), ..Default::default() };
    client.call::<Send>(&params).expect("a turn");

    let list = fixture.otto.run_slash_command(&room, "tasks list", &[]).response_with("running");
    assert!(list.content.contains("until test -e go"), "{list:?}");
    let id = list.content.split('`').nth(1).expect("its id").to_owned();
    fixture.otto.run_slash_command(&room, "tasks show", &[("id", &id)]).response_with("until test -e go");
    // Of another channel's agent it is not even said that it is there.
    let unknown = refused(&fixture.otto.run_slash_command(&fixture.room, "tasks show", &[("id", &id)]), "No task");
    let none = refused(&fixture.otto.run_slash_command(&fixture.room, "tasks show", &[("id", "t999")]), "No task");
    assert_eq!(unknown.content.replace(&id, "t999"), none.content);
    refused(&fixture.otto.run_slash_command(&room, "tasks stop", &[("id", &id)]), "You don't have permission");
    let stopped = fixture.mara.run_slash_command(&room, "tasks stop", &[("id", &id)]).response_with("Stopped: ");
    assert!(!stopped.ephemeral, "{stopped:?}");
    fixture.mara.run_slash_command(&room, "tasks stop", &[("id", &id)]).response_with("Already finished");
    assert!(fixture.audit().iter().any(|row| row.action == format!("discord:tasks.stop:{id}")));
    assert!(client.message_texts("scribe").is_empty());
}

#[test]
fn no_secret_is_told_however_it_is_cut_or_escaped() {
    let secret = "ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789";
    let server = ModelServer::start();
    let asking = "[permissions.asking]\nask = [\"tool:bash:.*\"]\nallow = [\".*\"]\nbash = \"whole\"\n";
    let fixture = CommandFixture::with(&format!("{}\n{asking}", server.config_toml()));
    let mut client = fixture.client();
    let prompt = format!("Keep {secret} and **{secret}**.");
    let params = InitParams {
        name: "asker".into(),
        permissions: Some("asking".into()),
        system_prompt: Some(prompt),
        ..Default::default()
    };
    client.call::<Init>(&params).expect("agent.init");
    let room = fixture.server.wait_for_channel("asker");
    client.append("asker", "hello");
    for before in [0, 45, 60, 90] {
        let words = "w".repeat(before);
        fixture
            .mara
            .run_slash_command(&room, "context save", &[("description", &format!("{words} {secret}"))])
            .response_with("Saved as");
        client.append("asker", "more");
    }
    // Across the place where it is cut.
    let command = format!("echo {} {secret}", "x".repeat(560));
    server.anthropic().queue(Response::empty().then_call("c1", "bash", &json!({"command": command})));
    server.anthropic().queue(Response::text(["Done."]));
    room.say(&fixture.otto, "Do it.");
    let question = room.wait_for_post_with_button("No");
    let mut said = vec![
        fixture.mara.run_slash_command(&room, "approvals", &[]).response_with("expires").content,
        fixture.mara.run_slash_command(&room, "context history", &[]).response_with("4 sessions").content,
        fixture
            .mara
            .run_slash_command(&room, "agent config", &[("name", "asker"), ("key", "system_prompt")])
            .response_with("Keep")
            .content,
    ];
    let offered = fixture.mara.autocomplete(&room, "context restore", &[("session", "")]);
    assert_eq!(offered.len(), 4);
    said.extend(offered.into_iter().map(|(name, _)| name));
    fixture.otto.press_button(&question, "No");
    said.extend(room.messages().into_iter().map(|message| message.content));
    for text in said {
        let plain = text.replace('\\', "");
        // A name that was made of what somebody typed has its letters, and not its form.
        assert!(!plain.contains("ghp_") && !plain.contains("AbCd"), "{text}");
    }
}
