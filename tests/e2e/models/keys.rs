//! Which server gets which key: a service's usual key goes to that service, any other key where it was named, and none anywhere else.

use chorus_proto::error::exit;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::{API_KEY, ModelServer, RecordedRequest, Response};
use chorus_tests::{Daemon, Home};
use serde_json::json;

use crate::home;

/// A daemon with every usual key in its environment.
fn start(home: &Home, config: &str) -> Daemon {
    home.write_config(config);
    let mut command = home.command(home.bins.chorusd);
    for variable in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"] {
        command.env(variable, API_KEY);
    }
    Daemon::start_command(home, command)
}

fn provider(name: &str, kind: &str, base_url: &str, key: &str) -> String {
    format!("[providers.{name}]\nkind = \"{kind}\"\nbase_url = \"{base_url}\"\n{key}")
}

/// Makes an agent with this model and has it answer.
fn talk(home: &Home, name: &str, model: &str) -> String {
    chorusctl(home, ["agent", "init", name, "--model", model]).expect_success();
    chorusctl(home, ["--agent", name, "send", "Hello?"]).expect_success()
}

/// That no part of a request has the key, and none of the headers for one.
fn has_no_key(request: &RecordedRequest) {
    assert!(!format!("{request:?}").contains(API_KEY), "{request:?}");
    for name in ["x-api-key", "authorization", "proxy-authorization", "cookie"] {
        assert_eq!(request.header(name), None, "{request:?}");
    }
}

#[test]
fn a_server_that_is_not_the_service_works_without_a_key_and_gets_none() {
    let (home, server) = (home(), ModelServer::start());
    let (url, chat) = (server.url(), format!("{}/v1", server.url()));
    let config = [
        provider("anthropic", "anthropic", &url, ""),
        provider("gateway", "anthropic", &url, ""),
        provider("openai", "openai", &chat, ""),
        provider("local", "openai", &chat, ""),
    ];
    let daemon = start(&home, &config.concat());
    server.anthropic().set_fallback(Response::text(["Hello."]));
    server.openai().set_fallback(Response::text(["Hello."]));
    let validated = chorusctl(&home, ["models", "validate"]).expect_success();
    for (name, model) in
        [("anthropic", "claude-test"), ("gateway", "claude-test"), ("openai", "small"), ("local", "small")]
    {
        assert!(validated.contains(&format!("ok    {name}")), "{validated}");
        assert_eq!(talk(&home, name, &format!("{name}/{model}")), "Hello.\n");
    }
    assert!(server.requests().len() >= 4 && server.list_requests().len() >= 4);
    server.requests().iter().chain(&server.list_requests()).for_each(has_no_key);
    assert!(validated.contains(&format!("2 models, {url}, no key")), "{validated}");
    assert!(chorusctl(&home, ["doctor"]).stdout.contains(&format!("no key sent to {url}")));
    assert!(!chorusctl(&home, ["settings", "--json"]).expect_success().contains("api_key_env"));
    assert!(!daemon.read_log().contains(API_KEY));
}

#[test]
fn a_key_that_is_named_goes_to_its_own_server_alone() {
    let (home, named, other) = (home(), ModelServer::start(), ModelServer::start());
    let config = [
        provider("gateway", "anthropic", &named.url(), "api_key_env = \"ANTHROPIC_API_KEY\"\n"),
        provider("other", "anthropic", &other.url(), ""),
    ];
    let _daemon = start(&home, &config.concat());
    for server in [&named, &other] {
        server.anthropic().set_fallback(Response::text(["Hello."]));
    }
    assert_eq!(talk(&home, "a", "gateway/claude-test"), "Hello.\n");
    assert_eq!(talk(&home, "b", "other/claude-test"), "Hello.\n");
    assert!(named.requests().iter().all(|request| request.header("x-api-key") == Some(API_KEY)));
    assert!(!other.requests().is_empty());
    other.requests().iter().chain(&other.list_requests()).for_each(has_no_key);
    let shown = chorusctl(&home, ["settings", "--json"]).expect_success();
    assert!(shown.contains("providers.gateway.api_key_env") && !shown.contains("providers.other.api_key_env"));
    let validated = chorusctl(&home, ["models", "validate"]).expect_success();
    assert!(validated.contains(&format!("{}, key in ANTHROPIC_API_KEY", named.url())), "{validated}");
    let doctor = chorusctl(&home, ["doctor"]).stdout;
    assert!(doctor.contains(&format!("key in ANTHROPIC_API_KEY sent to {}", named.url())), "{doctor}");
    assert!(doctor.contains(&format!("no key sent to {}", other.url())), "{doctor}");
}

#[test]
fn a_server_that_wants_a_key_and_gets_none_is_told_with_the_line_that_is_missing() {
    let (home, server) = (home(), ModelServer::start());
    let config = [
        provider("gateway", "anthropic", &server.url(), ""),
        provider("router", "openai", &format!("{}/v1", server.url()), ""),
    ];
    let _daemon = start(&home, &config.concat());
    let fault = json!({"type": "error", "error": {"type": "authentication_error", "message": "who are you?"}});
    server.anthropic().set_fallback(Response::error(401, &fault.to_string()));
    server.openai().set_fallback(Response::error(403, &fault.to_string()));
    for (name, model, line) in [
        ("gateway", "claude-test", "api_key_env = \"ANTHROPIC_API_KEY\""),
        ("router", "small", "api_key_env = \"OPENAI_API_KEY\""),
    ] {
        chorusctl(&home, ["agent", "init", name, "--model", &format!("{name}/{model}")]).expect_success();
        let said = chorusctl(&home, ["--agent", name, "send", "Hello?"])
            .expect_failure_with_hint(exit::FAILED.into())
            .to_owned();
        assert!(said.contains(line) && said.contains(&format!("[providers.{name}]")), "{said}");
    }
}

#[test]
fn a_redirect_takes_no_key_to_another_server() {
    let (home, first, second) = (home(), ModelServer::start(), ModelServer::start());
    let key = "api_key_env = \"ANTHROPIC_API_KEY\"\n";
    let config = [
        provider("one", "anthropic", &first.url(), key),
        provider("two", "openai", &format!("{}/v1", first.url()), key),
    ];
    let _daemon = start(&home, &config.concat());
    for status in [301, 302, 307, 308] {
        for (script, path) in [(first.anthropic(), "messages"), (first.openai(), "chat/completions")] {
            let place = format!("{}/v1/{path}", second.url());
            script.queue(Response::error(status, "").header("location", &place));
        }
        for (name, model) in [("one", "claude-test"), ("two", "small")] {
            let agent = format!("{name}-{status}");
            chorusctl(&home, ["agent", "init", &agent, "--model", &format!("{name}/{model}")]).expect_success();
            let said = chorusctl(&home, ["--agent", &agent, "send", "Hello?"]);
            assert!(said.stderr.contains("redirects are not followed"), "{said:?}");
        }
    }
    assert_eq!((first.requests().len(), second.requests().len(), second.list_requests().len()), (8, 0, 0));
}
