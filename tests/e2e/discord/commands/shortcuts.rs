//! `/help`, `/cancel`, `/undo`, `/pin`, `/unpin`.

use chorus_proto::methods::context::{Pin, PinParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};

use super::{CommandFixture, refused};

#[test]
fn help_says_what_one_may_do_here() {
    let fixture = CommandFixture::new();
    let all = fixture.slash("help", &[]).response_with("talk to **scribe**");
    assert!(all.ephemeral && all.files.is_empty(), "{all:?}");
    for line in ["`/undo`: ", "`/context save | clear | ", "`/settings model | ", "`/cancel`: ", "`/agent init | "] {
        assert!(all.content.contains(line), "{line}: {all:?}");
    }
    let few = fixture.otto.run_slash_command(&fixture.room, "help", &[]).response_with("talk to **scribe**");
    for line in ["`/context history | search`: ", "`/tasks list | show`: ", "`/agent list`: List agents", "`/cancel`: "]
    {
        assert!(few.content.contains(line), "{line}: {few:?}");
    }
    assert!(["`/settings", "`/undo", "`/pin`"].iter().all(|name| !few.content.contains(name)), "{few:?}");
    fixture.otto.run_slash_command(&fixture.hall, "help", &[]).response_with("This channel has no agent.");
}

#[test]
fn the_turn_of_a_channel_is_cancelled_by_who_asked_and_by_who_may_change_the_conversation() {
    let models = ModelServer::start();
    let fixture = CommandFixture::with(&models.config_toml());
    let otto = |what: &str| fixture.otto.run_slash_command(&fixture.room, what, &[]);
    refused_alone(&otto("cancel"), "Nothing to cancel");
    models.anthropic().queue(Response::text(["So far"]).stall());
    fixture.room.say(&fixture.mara, "tell me all");
    fixture.room.wait_for_post_with_button("Stop");
    refused(&otto("cancel"), "You cannot stop another person's turn");
    let done = fixture.slash("cancel", &[]).response_with("Stopped the current turn.");
    assert!(!done.ephemeral, "{done:?}");
    fixture.room.wait_for_post("Stopped by mara");
    models.anthropic().queue(Response::text(["For you"]).stall());
    fixture.room.say(&fixture.otto, "and me");
    fixture.room.wait_for_post("For you");
    otto("cancel").response_with("Stopped the current turn.");
    fixture.room.wait_for_post("Stopped by otto");
}

#[test]
fn a_turn_from_a_terminal_is_cancelled_too() {
    let models = ModelServer::start();
    let fixture = CommandFixture::with(&models.config_toml());
    models.anthropic().queue(Response::text(["So far"]).stall());
    let mut client = fixture.client();
    let turn = std::thread::spawn(move || {
        let params = SendParams { agent: Some("scribe".into()), text: "from a shell".into(), ..Default::default() };
        client.call::<Send>(&params).expect_err("cancelled")
    });
    assert_eq!(models.wait_for_requests(1).len(), 1);
    let by_otto = fixture.otto.run_slash_command(&fixture.room, "cancel", &[]);
    refused(&by_otto, "You cannot stop another person's turn");
    fixture.slash("cancel", &[]).response_with("Stopped the current turn.");
    turn.join().expect("no panic");
    let rows = fixture.audit();
    assert!(rows.iter().any(|row| row.action.starts_with("discord:stop:")), "{rows:?}");
}

#[test]
fn the_last_turn_is_undone_and_a_fact_is_pinned() {
    let fixture = CommandFixture::new();
    fixture.talk("scribe");
    fixture
        .slash("pin", &[("text", "Bread takes time.")])
        .response_with("Pinned. The conversation now has 1 pinned fact.");
    let undone = fixture.slash("undo", &[]).response_with("Removed 2 messages.");
    assert!(!undone.ephemeral, "{undone:?}");
    assert!(fixture.client().message_texts("scribe").is_empty());
    fixture.slash("context rewind", &[("undo", "true")]).response_with("Restored 2 messages.");
    let actions: Vec<String> = fixture.audit().into_iter().map(|row| row.action).collect();
    assert!(actions.contains(&"discord:context.pin".to_owned()), "{actions:?}");
}

#[test]
fn facts_that_the_model_does_not_see_are_reported_with_what_to_do_here() {
    let fixture = CommandFixture::new();
    let mut client = fixture.client();
    fixture.slash("unpin", &[]).response_with("No pinned facts. Pin one with `/pin`.");
    for number in 0..20 {
        let fact = format!("Fact {number}: {}", "bread ".repeat(320));
        client.call::<Pin>(&PinParams { conversation: None, agent: Some("scribe".into()), fact }).expect("context.pin");
    }
    let pinned = fixture.slash("pin", &[("text", "Bread takes time.")]).response_with("has 21 pinned facts.");
    let note = "of 21 pinned facts, because they may use 7500 tokens; remove some: `/unpin number:N`";
    assert!(
        pinned.content.contains("\nNote: the model sees only the newest ") && pinned.content.contains(note),
        "{pinned:?}"
    );
    let listed = fixture.slash("unpin", &[]).response_with("1\\. Fact 0\\: bread");
    let whole = String::from_utf8(listed.files[0].bytes.clone()).expect("text");
    assert!(whole.contains("21\\. Bread takes time."), "{whole}");
    fixture
        .slash("unpin", &[("number", "21")])
        .response_with("Removed the pinned fact 21. The conversation now has 20");
    let none = refused(&fixture.slash("unpin", &[("number", "21")]), "No pinned fact 21 (there are 20)");
    assert!(none.content.contains("List them with their numbers: `/unpin`"), "{none:?}");
    let actions: Vec<String> = fixture.audit().into_iter().map(|row| row.action).collect();
    assert!(actions.contains(&"discord:context.unpin".to_owned()), "{actions:?}");
}

/// An error without a hint, seen by who asked only.
#[track_caller]
fn refused_alone(interaction: &chorus_tests::discord::Interaction, what: &str) {
    assert!(interaction.response_with(what).ephemeral);
}
