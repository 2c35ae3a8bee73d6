//! `models list` and `models validate`, and what they know about names.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use chorus_config as config;
use chorus_llm::retry::RetryPolicy;
use chorus_llm::{DiscoveryStatus, ModelRef, Models, model_client};
use chorus_proto::error::exit;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::{API_KEY, ModelServer};
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use serde_json::{Value, json};

use crate::home;

/// A daemon that knows the models of a scripted server.
fn start(config: impl Fn(&ModelServer) -> String) -> (Home, ModelServer, Daemon) {
    let (home, server) = (home(), ModelServer::start());
    let daemon = Daemon::start_with(&home, &config(&server));
    wait_until("discovery", DEADLINE, || home.path.join(model_client::MODEL_CATALOG_FILE).exists().then_some(()));
    (home, server, daemon)
}

fn list(home: &Home) -> Value {
    chorusctl(home, ["models", "--json"]).expect_json()
}

#[test]
fn models_are_found_at_the_start_and_listed() {
    let (home, server, daemon) = start(|server| {
        format!(
            "{}[aliases]\nfast = \"local/small\"\n[prices.\"anthropic/claude-test\"]\ninput = 3\noutput = 15.5\n",
            server.config_toml()
        )
    });
    let found = list(&home);
    assert_eq!(found["default_model"], "anthropic/claude-test");
    let anthropic = &found["providers"][0];
    assert_eq!((&anthropic["name"], &anthropic["found"]), (&json!("anthropic"), &json!("ok")));
    let test = &anthropic["models"][1];
    assert_eq!((&test["name"], &test["context_length"]), (&json!("anthropic/claude-test"), &json!(200_000)));
    assert_eq!(test["price"], json!({"input": 3.0, "output": 15.5}), "the configuration's");
    let large = &found["providers"][1]["models"][0];
    assert_eq!((&large["context_length"], &large["price"]), (&json!(131_072), &json!({"input": 1.0, "output": 2.0})));
    let said = chorusctl(&home, ["models", "list"]).expect_success();
    for part in ["ok    anthropic  2 models", "local/small", "131072", "default", "fast", "15.5"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let lines = chorusctl(&home, ["models", "--format", "jsonl"]).expect_success();
    assert_eq!(lines.lines().count(), 2);
    let status = chorusctl(&home, ["status", "--json"]).expect_json();
    assert_eq!(status["models"]["available"], 4);
    // The file is private, and says what was found and no key.
    let file = home.path.join(model_client::MODEL_CATALOG_FILE);
    assert_eq!(fs::metadata(&file).expect("the file").permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(file).expect("the file");
    assert!(text.contains("claude-test") && !text.contains(API_KEY));
    assert_eq!(
        server.list_requests()[0].header("x-api-key").is_some(),
        server.list_requests()[0].path.contains("limit")
    );
    assert!(!daemon.read_log().contains(API_KEY));
}

#[test]
fn validate_tells_what_a_provider_says_and_keeps_what_was_known() {
    let (home, server, daemon) = start(ModelServer::config_toml);
    chorusctl(&home, ["models", "validate"]).expect_success();
    let fault =
        json!({"type": "error", "error": {"type": "authentication_error", "message": format!("not {API_KEY}")}});
    server.set_anthropic_models(401, &fault);
    let said = chorusctl(&home, ["models", "validate"]);
    assert_eq!(said.status, i32::from(exit::FAILED));
    assert!(said.stdout.contains("FAIL  anthropic  anthropic rejected the API key (HTTP 401)"), "{}", said.stdout);
    assert!(said.stdout.contains("hint: check the key of [providers.anthropic]"), "{}", said.stdout);
    assert!(!said.stdout.contains(API_KEY) && !daemon.read_log().contains(API_KEY));
    let found = list(&home);
    assert_eq!(found["providers"][0]["found"], "failed");
    assert_eq!(found["providers"][0]["models"].as_array().map(Vec::len), Some(2), "what it had listed before stays");
    assert_eq!(found["providers"][1]["found"], "ok", "one bad key is no other's trouble");
}

#[test]
fn a_model_that_is_not_listed_is_refused_with_those_that_are_near() {
    let (home, server, _daemon) = start(ModelServer::config_toml);
    let refused = chorusctl(&home, ["agent", "init", "a", "--model", "anthropic/claude-tset"]);
    let said = refused.expect_failure_with_hint(exit::FAILED.into());
    assert!(
        said.contains("anthropic has no model \"claude-tset\"") && said.contains("did you mean anthropic/claude-test?")
    );
    assert!(!home.agent_dir("a").exists(), "nothing was made");
    chorusctl(&home, ["agent", "init", "a", "--model", "anthropic/claude-test"]).expect_success();
    let refused = chorusctl(&home, ["agent", "config", "a", "model", "local/huge"]);
    assert!(refused.expect_failure_with_hint(exit::FAILED.into()).contains("available: large, small"));
    let refused = chorusctl(&home, ["settings", "set", "default_model", "elsewhere/huge"]);
    assert!(refused.expect_failure_with_hint(exit::FAILED.into()).contains("unknown provider \"elsewhere\""));
    // A provider that did not answer is trusted.
    server.set_openai_models(500, &json!({}));
    chorusctl(&home, ["models", "validate"]);
    chorusctl(&home, ["agent", "config", "a", "model", "local/huge"]).expect_success();
    chorusctl(&home, ["agent", "config", "a", "model", ""]).expect_success();
}

#[test]
fn without_a_provider_it_is_said_how_to_get_one() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let said = chorusctl(&home, ["models"]);
    assert!(said.stderr.contains("no model provider configured") && said.stderr.contains("ANTHROPIC_API_KEY"));
    assert_eq!(chorusctl(&home, ["models", "validate", "--json"]).expect_json()["providers"], json!([]));
    assert!(!home.path.join(model_client::MODEL_CATALOG_FILE).exists());
}

#[test]
fn a_key_in_the_environment_is_enough() {
    let home = home();
    let mut command = home.command(home.bins.chorusd);
    // A loopback port without a server stands in for the real one.
    command.env("ANTHROPIC_API_KEY", "sk-env\n");
    home.write_config(
        "[providers.anthropic]\nbase_url = \"http://127.0.0.1:1\"\napi_key_env = \"ANTHROPIC_API_KEY\"\n",
    );
    let daemon = Daemon::start_command(&home, command);
    let said = chorusctl(&home, ["models", "validate"]);
    assert!(said.stdout.contains("the API key of anthropic has a line break in it"), "{}", said.stdout);
    assert!(said.stdout.contains("ANTHROPIC_API_KEY") && !said.stdout.contains("sk-env"));
    assert!(!daemon.read_log().contains("sk-env"));
}

#[test]
fn a_key_that_is_said_back_in_a_list_is_not_passed_on() {
    let (home, server, daemon) = start(ModelServer::config_toml);
    for body in [json!({"data": API_KEY}), json!({"data": [{"id": "m", "max_input_tokens": API_KEY}]})] {
        server.set_anthropic_models(200, &body);
        let said = chorusctl(&home, ["models", "validate"]);
        assert!(said.stdout.contains("cannot read the model list of anthropic"), "{}", said.stdout);
        assert!(said.stdout.contains("[redacted]") && !said.stdout.contains(API_KEY), "{}", said.stdout);
    }
    let file = fs::read_to_string(home.path.join(model_client::MODEL_CATALOG_FILE)).expect("what was found");
    assert!(!file.contains(API_KEY) && !daemon.read_log().contains(API_KEY));
}

#[test]
fn an_earlier_discovery_is_remembered_but_decides_nothing() {
    let (home, server, daemon) = start(ModelServer::config_toml);
    daemon.kill9();
    // Of the same servers, one does not answer any more.
    server.set_openai_models(500, &json!({}));
    let daemon = Daemon::start(&home);
    wait_until("discovery", DEADLINE, || (list(&home)["providers"][1]["found"] == "failed").then_some(()));
    assert_eq!(list(&home)["providers"][1]["models"][0]["name"], "local/large");
    chorusctl(&home, ["agent", "init", "a", "--model", "local/new"]).expect_success();
    drop(daemon);
    fs::write(home.path.join(model_client::MODEL_CATALOG_FILE), "{broken").expect("a broken file");
    Daemon::start(&home).assert_alive();
}

#[test]
fn servers_of_this_machine_are_found_where_they_are_looked_for() {
    let (server, folder) = (ModelServer::start(), tempfile::tempdir().expect("a home"));
    let file = folder.path().join("config.toml");
    fs::write(&file, "[discovery]\nlocal = true\n").expect("config.toml");
    let config = config::load(&file, |_| None).expect("a configuration");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let places = |url: String| {
        [("here", url), ("nowhere", "http://127.0.0.1:1/v1".to_owned())]
            .map(|(name, base_url)| chorus_llm::LocalServer { name: name.into(), base_url })
            .into()
    };
    let bent = |url| {
        Models::new(&config, folder.path(), chorus_clock::Clock::system(), super::redactor()).for_tests(
            places(url),
            RetryPolicy::default(),
            Arc::new(|| 0.0),
        )
    };
    let models = bent(format!("{}/v1", server.url()));
    let found = runtime.block_on(models.discover());
    assert_eq!(found.providers.len(), 1);
    assert!(found.providers[0].local && found.providers[0].found == DiscoveryStatus::Ok);
    assert_eq!(models.resolve("small").map(|target| target.to_string()).as_deref(), Ok("here/small"));
    assert_eq!(models.context_length(&ModelRef::new("here", "small")), Some(8192));
    // Something else may listen there.
    server.set_openai_models(200, &json!("hello"));
    assert!(runtime.block_on(models.discover()).providers.is_empty());
    assert!(models.resolve("here/small").is_err());
}

#[test]
fn an_address_without_a_list_is_said_to_be_one() {
    // What FastAPI says, and with it vLLM and many others, where nothing is: https://fastapi.tiangolo.com/tutorial/handling-errors/
    let (home, _server, _daemon) = start(|server| {
        server.set_openai_models(404, &json!({"detail": "Not Found"}));
        server.config_toml()
    });
    let local = &list(&home)["providers"][1];
    let problem = local["problem"].as_str().expect("a problem");
    assert!(
        problem.starts_with("local does not have this address (HTTP 404)") && !problem.contains("\"\""),
        "{problem}"
    );
    assert!(local["hint"].as_str().expect("a hint").contains("base_url"), "{local}");
}
