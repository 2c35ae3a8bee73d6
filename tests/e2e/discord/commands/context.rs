//! `/context`.

use chorus_proto::{NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};

use super::{CommandFixture, refused};

#[test]
fn a_conversation_is_saved_rewound_compacted_and_restored() {
    let fixture = CommandFixture::new();
    refused(&fixture.slash("context save", &[]), "The conversation of scribe is empty");
    fixture.talk("scribe");
    let saved = fixture.slash("context save", &[("description", "bread @everyone")]).response_with("Saved as");
    assert!(!saved.ephemeral && !saved.mentions_everyone, "{saved:?}");
    let session = fixture.client().history("scribe").remove(0);
    assert!(saved.content.contains(&session.header.session_id) && saved.content.contains(&session.short_id));

    let rewound = fixture.slash("context rewind", &[]).response_with("Removed 2 messages");
    assert!(!rewound.ephemeral && rewound.content.contains("now has 0 messages"), "{rewound:?}");
    fixture
        .slash("context rewind", &[("undo", "true")])
        .response_with("Restored 2 messages. The conversation now has 2 messages.");

    let compacted = fixture.slash("context compact", &[]).response_with("Compacted from ");
    assert!(compacted.content.contains("tokens. The full conversation was saved as"), "{compacted:?}");
    let undone = fixture.slash("context compact", &[("undo", "true")]).response_with("Undid the last compaction");
    assert!(undone.content.contains("is live again, with "), "{undone:?}");
    fixture.slash("context compact", &[]).response_with("Compacted from ");
    assert_eq!(fixture.client().message_texts("scribe").len(), 1, "the acknowledgement");

    let id = session.short_id;
    let restored = fixture.slash("context restore", &[("session", &id)]).response_with("(2 messages)");
    assert!(!restored.ephemeral, "{restored:?}");
    assert_eq!(fixture.client().message_texts("scribe")[0], "How do I bake bread?");
    fixture.slash("context restore", &[("session", "latest~99")]).response_with("`/context history`");
    fixture.slash("context restore", &[("session", "7")]).response_with("`/context history`");
    fixture
        .slash("context restore", &[("session", &id), ("at", "1"), ("discard", "true")])
        .response_with("(1 message)");

    let resumed = fixture.slash("context resume", &[("session", &id)]).response_with("Resumed from");
    let said = fixture.client().message_texts("scribe").remove(0);
    assert!(resumed.content.contains(&said), "the acknowledgement stands there: {resumed:?}");

    let who = format!("discord:{}", fixture.mara.id);
    let done: Vec<String> = fixture.audit().into_iter().filter(|row| row.user == who).map(|row| row.action).collect();
    for action in ["save", "rewind", "compact", "restore", "resume"] {
        assert!(done.contains(&format!("discord:context.{action}")), "{action}: {done:?}");
    }
}

#[test]
fn a_save_shows_the_summary_of_the_model_once_it_is_there() {
    let models = ModelServer::start();
    let fixture = CommandFixture::with(&models.config_toml());
    models.set_summary_response(
        Response::text(["Rows without a country\n\nThe loader keeps rows without a country now."]).gate("summary"),
    );
    let talk = [
        (Role::User, "The nightly import drops rows. Can you find out why the country column is empty?"),
        (Role::Assistant, "I changed the loader to mark rows without a country as unknown. All tests pass now."),
        (Role::User, "Good. We still need a back-fill for March."),
        (Role::Assistant, "The back-fill for March is open. I will write it as a script that can run twice."),
    ];
    fixture.client().append_all("scribe", talk.map(|(role, text)| NewMessage::text(role, text)).into());
    let saved = fixture.slash("context save", &[]);
    saved.response_with("A model is writing");
    models.open_gate("summary");
    let saved = saved.response_with("The loader keeps rows without a country now.");
    assert!(!saved.content.contains("A model is writing"), "{saved:?}");
}

#[test]
fn what_has_to_wait_for_a_turn_is_told_how_to_end_it_here() {
    let models = ModelServer::start();
    let fixture = CommandFixture::with(&models.config_toml());
    models.set_summary_response(Response::text(["Bread\n\nBread was baked."]));
    fixture.talk("scribe");
    let id = fixture.client().save("scribe", "as it was").short_id;
    models.anthropic().queue(Response::text(["So far"]).stall());
    fixture.room.say(&fixture.mara, "tell me all");
    fixture.room.wait_for_post_with_button("Stop");
    for (command, options) in
        [("context rewind", vec![]), ("context restore", vec![("session", &*id)]), ("context compact", vec![])]
    {
        let answer = refused(&fixture.slash(command, &options), "turn of scribe is running");
        let foreign = ["chorusctl", "socket", "Ctrl-C", "send.cancel", "terminal"];
        assert!(foreign.iter().all(|word| !answer.content.contains(word)), "{command}: {answer:?}");
        assert!(answer.content.contains("`/cancel agent:scribe`"), "{command}: {answer:?}");
    }
    fixture.slash("cancel", &[("agent", "scribe")]).response_with("Stopped the current turn");
    fixture.room.wait_for_post("Stopped by mara");
    fixture.slash("context rewind", &[]).response_with("Removed");
}

#[test]
fn a_session_of_another_agent_is_not_there_whatever_it_is_called() {
    let fixture = CommandFixture::new();
    let mut client = fixture.client();
    client.init("other");
    client.append("other", "a secret plan");
    let session = client.save("other", "a secret plan");
    for named in [session.header.id.to_string(), session.short_id, session.header.session_id] {
        for command in ["context restore", "context resume"] {
            let answer = refused(&fixture.slash(command, &[("session", &named)]), "in agent scribe");
            assert!(!answer.content.contains("secret plan"), "{answer:?}");
        }
    }
    assert!(client.message_texts("scribe").is_empty());
}

#[test]
fn what_is_too_long_for_a_message_is_a_file_below_its_beginning() {
    let fixture = CommandFixture::new();
    fixture.client().append_all("scribe", vec![NewMessage::text(Role::User, "x")]);
    let prompt = "Be brief and kind. ".repeat(300);
    let answer = fixture.slash("agent config", &[("name", "scribe"), ("key", "system_prompt"), ("value", "short")]);
    answer.response_with("is now `short`");
    let params = chorus_proto::methods::agent::ConfigParams {
        name: "scribe".into(),
        key: Some("system_prompt".into()),
        value: Some(prompt.clone().into()),
    };
    fixture.client().call::<chorus_proto::methods::agent::Config>(&params).expect("agent.config");
    let shown = fixture
        .slash("agent config", &[("name", "scribe"), ("key", "system_prompt")])
        .response_with("in the attached file");
    assert!(shown.content.chars().count() <= 2000 && shown.content.contains("Be brief"), "{shown:?}");
    assert!(String::from_utf8_lossy(&shown.files[0].bytes).contains(prompt.trim()));
}
