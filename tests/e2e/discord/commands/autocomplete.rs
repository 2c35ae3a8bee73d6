//! What is offered while a command is typed.

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::permissions::MANAGE_CHANNELS;
use chorus_tests::model_server::ModelServer;
use serde_json::Value;

use super::CommandFixture;

fn values(choices: Vec<(String, Value)>) -> Vec<String> {
    choices.into_iter().map(|(_, value)| value.as_str().expect("a text").to_owned()).collect()
}

#[test]
fn agents_sessions_models_and_profiles_are_offered_to_who_may_use_them() {
    let server = ModelServer::start();
    let config = format!("{}\n[permission_grants]\nkeeper = [\"locked\"]\n", server.config_toml());
    let fixture = CommandFixture::with(&config);
    let mut client = fixture.client();
    client.init("other");
    for n in 1..=30 {
        client.append("scribe", &format!("word {n}"));
        client.save("scribe", &format!("about bread {n}"));
    }
    let session = |who: &chorus_tests::discord::UserHandle, typed: &str| {
        who.autocomplete(&fixture.room, "context restore", &[("session", typed)])
    };
    let newest = session(&fixture.mara, "");
    assert_eq!(newest.len(), 25);
    assert!(newest[0].0.contains("about bread 30"), "{newest:?}");
    let found = values(session(&fixture.mara, "BREAD 17"));
    assert_eq!(found.len(), 1);
    let answer = fixture.slash("context restore", &[("session", &found[0])]).response_with("Restored");
    assert!(answer.content.contains("(17 messages)"), "{answer:?}");
    assert!(session(&fixture.mara, "no such thing").is_empty());
    assert!(session(&fixture.otto, "").is_empty(), "titles are not for who may not restore");

    let agents = |who: &chorus_tests::discord::UserHandle| {
        values(who.autocomplete(&fixture.room, "context history", &[("agent", "")]))
    };
    assert_eq!(agents(&fixture.mara), ["other", "scribe"]);
    assert_eq!(agents(&fixture.otto), ["scribe"]);
    let models = values(fixture.mara.autocomplete(&fixture.room, "settings model", &[("model", "claude")]));
    assert!(models.contains(&"anthropic/claude-test".to_owned()), "{models:?}");
    let vera = fixture.server.add_member("vera", &["keeper"], MANAGE_CHANNELS);
    let profiles = vera.autocomplete(&fixture.room, "agent init", &[("name", "poet"), ("permissions", "")]);
    assert_eq!(values(profiles), ["locked"]);
    let of_key = [("name", "scribe"), ("key", "idle_timeout"), ("value", "3")];
    assert_eq!(values(fixture.mara.autocomplete(&fixture.room, "agent config", &of_key)), ["30m"]);
}
