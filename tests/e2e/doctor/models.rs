//! What is said of models: providers, keys, the last discovery, names that lead nowhere.

use chorus_proto::methods::doctor::{Check, DoctorResult, Verdict};
use chorus_proto::methods::models::{ModelsParams, Validate};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{API_KEY, ModelServer};
use chorus_tests::{Daemon, Home};

use super::doctor;
use crate::home;

fn of<'a>(found: &'a DoctorResult, name: &str) -> &'a Check {
    found.checks.iter().find(|check| check.name == name).unwrap_or_else(|| panic!("no {name}: {found:?}"))
}

/// A daemon with this configuration whose providers were asked; what doctor says then, and its status.
fn asked(home: &Home, config: &str) -> (i32, DoctorResult, Daemon) {
    let daemon = Daemon::start_with(home, config);
    daemon.client().call::<Validate>(&ModelsParams {}).expect("models.validate");
    let (status, found) = doctor(home, &[]);
    (status, found, daemon)
}

#[test]
fn providers_that_answer_are_fine_and_no_key_is_shown() {
    let (home, server) = (home(), ModelServer::start());
    let (status, found, _daemon) = asked(&home, &server.config_toml());
    let anthropic = of(&found, "provider anthropic");
    assert_eq!((status, anthropic.verdict), (0, Verdict::Ok));
    let text = format!("key in {} sent to {}; 2 models, checked just now", server.key_file().display(), server.url());
    assert_eq!(anthropic.text, text);
    let text = format!("no key sent to {}/v1; 2 models, checked just now", server.url());
    assert_eq!(of(&found, "provider local").text, text);
    let default = of(&found, "default model");
    assert_eq!((default.verdict, &*default.text), (Verdict::Ok, "anthropic/claude-test"));
    assert!(!format!("{found:?}").contains(API_KEY));
}

#[test]
fn what_leads_nowhere_is_named_with_what_to_do() {
    let (home, server) = (home(), ModelServer::start());
    let more = "[providers.keyless]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1\"\napi_key_env = \"NO_SUCH_KEY\"\n\
                [providers.gone]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1\"\n";
    let config = server.config_toml().replace("claude-test", "claude-toast") + more;
    let (status, found, daemon) = asked(&home, &config);
    let default = of(&found, "default model");
    assert_eq!((status, default.verdict), (1, Verdict::Fail));
    assert!(default.hint.as_deref().is_some_and(|hint| hint.contains("anthropic/claude-test")), "{default:?}");
    for (name, text) in [("provider keyless", "NO_SUCH_KEY is not set"), ("provider gone", "cannot reach gone")] {
        let check = of(&found, name);
        assert!(check.verdict == Verdict::Warn && check.text.contains(text) && check.hint.is_some(), "{check:?}");
    }
    assert!(of(&found, "provider gone").text.ends_with("(checked just now)"));
    // An agent is told apart from the default; by hand anything can be written into its file.
    daemon.client().init("a");
    let file = home.agent_dir("a").join("agent.json");
    let mut config: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("agent.json")).expect("JSON");
    config["model"] = "local/smoll".into();
    std::fs::write(&file, config.to_string()).expect("agent.json");
    let (_, found) = doctor(&home, &[]);
    assert_eq!(of(&found, "models of agents").text, "missing for 1: a (local/smoll)");
}

#[test]
fn without_a_provider_it_is_said_how_to_get_one() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let (status, found) = doctor(&home, &[]);
    let check = of(&found, "models");
    assert_eq!((status, check.verdict), (0, Verdict::Info));
    assert!(check.hint.as_deref().is_some_and(|hint| hint.contains("ANTHROPIC_API_KEY")));
}
