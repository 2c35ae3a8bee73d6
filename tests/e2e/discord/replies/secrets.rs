//! P20, the part of posts: planted secrets reach no channel.

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_tests::model_server::{API_KEY, Response, Step};
use serde_json::json;

use super::fixture::ReplyFixture;
use crate::redact::secrets::{Secret, sixty};

/// In pieces that no secret is whole in, with a wait in the middle.
fn growing(secrets: &[Secret], gate: &str) -> Response {
    let text: String = secrets.iter().map(|secret| format!("here: {} and\n", secret.text)).collect();
    let letters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = letters.chunks(7).map(|piece| piece.iter().collect()).collect();
    let (one, two) = pieces.split_at(pieces.len() / 2);
    let mut answer = Response::text(one.to_vec()).gate(gate);
    for piece in two {
        answer = answer.then_text(piece);
    }
    answer
}

#[test]
fn sixty_planted_secrets_reach_no_post() {
    let fixture = ReplyFixture::new();
    let secrets = sixty();
    // What the model says, as it grows and in the end; the second time of an agent that keeps secrets for itself.
    for (part, redact) in [(&secrets[..20], true), (&secrets[20..40], false)] {
        let set =
            ConfigParams { name: "scribe".into(), key: Some("redact".into()), value: Some(redact.to_string().into()) };
        fixture.client().call::<Config>(&set).expect("agent.config");
        let gate = format!("go {redact}");
        fixture.model.anthropic().queue(growing(part, &gate));
        let asked = fixture.ask("say them");
        fixture.room.wait_for("a live message", |all| all.iter().find(|post| post.reply_to == Some(asked)).map(drop));
        fixture.model.open_gate(&gate);
        let said: String = fixture.answer(asked).into_iter().map(|post| post.content).collect();
        assert!(said.contains("here: ") && said.matches("[redacted:").count() >= part.len(), "{said}");
    }
    // Names and parameters of calls, some of which people are asked about.
    for (number, secret) in secrets[40..50].iter().enumerate() {
        let text = &secret.text;
        let (name, params) = match number % 3 {
            0 => (text.as_str(), json!({"path": "a"})),
            1 => ("bash", json!({"command": format!("echo '{text}'")})),
            _ => ("view", json!({"path": text})),
        };
        fixture.model.anthropic().queue(Response::text(["I call."]).then_call("c1", name, &params));
        fixture.model.anthropic().queue(Response::text(["Done."]));
        let asked = fixture.ask("call");
        if name == "bash" {
            let question = fixture.room.wait_for("a question", |all| {
                all.iter().find(|post| post.id > asked && post.button("No").is_some()).cloned()
            });
            fixture.mara.press_button(&question, "No").wait_for_acknowledgement();
        }
        fixture.settled();
    }
    // What a server says of a call that fails.
    for (number, secret) in secrets[50..].iter().enumerate() {
        let text = &secret.text;
        let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": format!("{text} {API_KEY}")}});
        fixture.model.anthropic().queue(match number % 2 {
            0 => Response::error(400, &body.to_string()),
            _ => Response::text([format!("so {text}, ")]).step(Step::Error("api_error".into(), format!("bad: {text}"))),
        });
        let said: String = fixture.answer(fixture.ask("fail")).into_iter().map(|post| post.content).collect();
        assert!(said.contains("**Error:**"), "{said}");
    }
    let mut hidden: Vec<String> = secrets.into_iter().map(|secret| secret.hidden).collect();
    hidden.extend([API_KEY.to_owned(), chorus_tests::discord::TOKEN.to_owned()]);
    let requests = fixture.discord.requests();
    assert!(requests.len() > 40, "only {} requests were looked at", requests.len());
    for request in &requests {
        let content = request.body["content"].as_str().unwrap_or_default();
        let files = request.files.iter().flat_map(|file| file.bytes.iter().copied()).collect::<Vec<u8>>();
        for secret in &hidden {
            let found = request.body.to_string().contains(secret)
                || content.contains(secret)
                || memchr::memmem::find(&files, secret.as_bytes()).is_some();
            assert!(!found, "{secret} is in {} {}: {}", request.method, request.path, request.body);
        }
    }
}
