//! P20, the part of tools and models: planted secrets reach neither the home, nor the log, nor the socket, nor a model.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_proto::Client;
use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::models::{ModelsParams, Validate};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{API_KEY, Response, Step};
use serde_json::json;

use super::fixture::{OTHER_KEY, RedactFixture};
use super::secrets::{Secret, sixty};

/// In pieces that no secret is whole in.
fn pieces(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(7).map(|piece| piece.iter().collect()).collect()
}

fn together(secrets: &[Secret]) -> String {
    secrets.iter().map(|secret| format!("here: {} and\n", secret.text)).collect()
}

#[test]
fn sixty_planted_secrets_reach_neither_disk_nor_log_nor_socket_nor_model() {
    let mut fixture = RedactFixture::new();
    let secrets = sixty();
    // What the model says and thinks, in pieces.
    for (agent, part) in [("a", &secrets[..12]), ("b", &secrets[12..20])] {
        let mut answer = Response::empty();
        if agent == "a" {
            for piece in pieces(&together(&part[..4])) {
                answer = answer.step(Step::Thinking(piece));
            }
            answer = answer.step(Step::Signature("signed".into()));
        }
        for piece in pieces(&together(part)) {
            answer = answer.then_text(&piece);
        }
        fixture.answer(agent, answer);
        let reply = fixture.send(agent).expect("a turn").reply;
        assert!(reply.contains("here: ") && reply.matches("[redacted:").count() >= part.len(), "{reply}");
    }
    // Parameters and names of calls, and the errors of tools that say them back.
    for (number, secret) in secrets[20..36].iter().enumerate() {
        let agent = ["a", "b"][number % 2];
        let text = &secret.text;
        let name = if number % 4 == 0 { text.as_str() } else { "list_models" };
        fixture.answer(agent, Response::tool_call("c1", name, &json!({text: [1.50, format!("see {text}\n")]})));
        fixture.answer(agent, Response::text(["Well."]));
        let called = fixture.send(agent).expect("a turn").tool_calls;
        assert!(called[0].params.get().contains("[redacted:") && called[0].params.get().contains("1.5"), "{called:?}");
    }
    // Errors of the server, in bodies, in headers and in the middle of a stream.
    for (number, secret) in secrets[36..56].iter().enumerate() {
        let (agent, text) = (["a", "b"][number % 2], &secret.text);
        let body =
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": format!("bad: {text}")}});
        fixture.answer(
            agent,
            match number % 4 {
                0 | 1 => Response::error(400, &body.to_string()),
                2 => Response::error(302, "").header("location", &format!("http://a.example/{text}")),
                _ => Response::text([format!("so {text}, ")])
                    .step(Step::Error("api_error".into(), format!("bad: {text}"))),
            },
        );
        fixture.send(agent).expect_err("an error");
    }
    // What cannot be listed is said by a tool, too.
    let body = json!({"error": {"message": together(&secrets[56..])}});
    fixture.server.set_openai_models(400, &body);
    fixture.client().call::<Validate>(&ModelsParams {}).expect("models.validate");
    fixture.answer("a", Response::tool_call("c2", "list_models", &json!({})));
    fixture.answer("a", Response::text(["So many."]));
    fixture.send("a").expect("a turn");
    // The daemon's own keys, in every form.
    let url = OTHER_KEY.replace('/', "%2F").replace('+', "%2B").replace('=', "%3D");
    let forms = [API_KEY.to_owned(), OTHER_KEY.to_owned(), STANDARD.encode(format!("me:{API_KEY}")), url];
    fixture.answer("a", Response::text(pieces(&forms.join(" or "))));
    let reply = fixture.send("a").expect("a turn").reply;
    assert_eq!(reply.matches("[redacted:").count(), forms.len(), "{reply}");
    fixture.answer("b", Response::error(401, &json!({"error": {"message": format!("no: {OTHER_KEY}")}}).to_string()));
    fixture.send("b").expect_err("an error");

    let mut hidden: Vec<String> = secrets.into_iter().map(|secret| secret.hidden).collect();
    hidden.extend([API_KEY.to_owned(), OTHER_KEY.to_owned(), STANDARD.encode(API_KEY)]);
    let places = fixture.places();
    assert!(places.len() > 60, "only {} places were looked at", places.len());
    for (place, bytes) in &places {
        for secret in &hidden {
            let found = memchr::memmem::find(bytes, secret.as_bytes());
            assert_eq!(found, None, "{secret} is in {place}");
        }
    }
}

#[test]
fn an_agent_may_be_told_to_keep_everything() {
    let fixture = RedactFixture::new();
    let secret = &sixty()[2].text;
    let mut client = fixture.client();
    let set = |value: &str| ConfigParams { name: "a".into(), key: Some("redact".into()), value: Some(value.into()) };
    let send = |client: &mut Client| {
        fixture.answer("a", Response::text(pieces(secret)));
        let params = SendParams { agent: Some("a".into()), text: "say it".into(), ..Default::default() };
        client.call::<Send>(&params).expect("a turn").reply
    };
    client.call::<Config>(&set("false")).expect("agent.config");
    assert_eq!(send(&mut client), *secret);
    client.call::<Config>(&set("true")).expect("agent.config");
    assert!(send(&mut client).starts_with("[redacted:github-token:"));
    client.call::<Config>(&set("perhaps")).expect_err("neither");
}

#[test]
fn a_block_of_a_provider_that_holds_one_is_dropped_and_others_are_not() {
    let mut fixture = RedactFixture::new();
    let secret = &sixty()[2].text;
    for (thought, kept) in [("nothing much", true), (secret.as_str(), false)] {
        fixture.answer("a", Response::empty().thinking(thought, "signed").then_text("Done."));
        fixture.send("a").expect("a turn");
        let last = fixture.client().messages("a").pop().expect("a message");
        assert_eq!((last.content.as_str(), last.provider.is_some()), ("Done.", kept));
    }
}

#[test]
fn one_secret_has_one_fingerprint_also_after_a_restart_and_another_in_another_home() {
    let secret = &sixty()[2].text;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let mut fixture = RedactFixture::new();
        fixture.answer("a", Response::text([secret.clone()]));
        seen.push(fixture.send("a").expect("a turn").reply);
        fixture.daemon.kill9();
        fixture.daemon = Daemon::start(&fixture.home);
        fixture.answer("a", Response::text([secret.clone()]));
        assert_eq!(fixture.send("a").expect("a turn").reply, *seen.last().expect("one"));
    }
    assert_ne!(seen[0], seen[1]);
}
