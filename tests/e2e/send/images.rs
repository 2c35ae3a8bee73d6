//! Images as attachments, from a file to the model.

use std::fs;

use chorus_proto::methods::context::{Show, ShowParams};
use chorus_proto::{Attachment, Client, NewMessage, Role};
use chorus_tests::Fixture;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use serde_json::json;

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_tests::model_server::{ModelServer, Response};

use super::{MODELS, record, send, start_fixture, start_with_model, start_with_server};

/// One red point.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\0\0\0\x0cIDAT\
    x\x9cc\xf8\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";
/// The same as it is sent.
const BASE64: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

#[test]
fn an_image_goes_from_its_file_to_either_provider() {
    for model in MODELS {
        let fixture = start_with_model(model);
        // Whatever it is called.
        for name in ["point.png", "point.jpg"] {
            fs::write(fixture.home.user_home.join(name), PNG).expect("an image");
            fixture.reply("A red point.");
            let said = chorusctl(&fixture.home, ["send", "What is this?", "--attach", name]).expect_success();
            assert_eq!(said, "A red point.\n");
        }
        let due = if model == MODELS[0] {
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BASE64}})
        } else {
            json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{BASE64}")}})
        };
        let request = fixture.models().requests().pop().expect("a request");
        let images = request.text.matches(&due.to_string()[1..40]).count();
        assert_eq!(
            (images, request.text.matches(BASE64).count()),
            (2, 2),
            "it stays in the conversation: {due} {}",
            request.text
        );
        // A picture of the request has its size alone.
        let params = ShowParams { agent: Some("a".into()), window: true, ..Default::default() };
        let window = fixture.client().call::<Show>(&params).expect("context.show").window.expect("a window");
        let shown = &window.messages[0].message.attachments[0];
        assert_eq!((&shown.data, shown.size), (&None, Some(PNG.len() as u64)));
        let kept = &fixture.client().messages("a")[0].attachments[0];
        assert_eq!((kept.media_type.as_deref(), kept.size), (Some("image/png"), Some(PNG.len() as u64)));
    }
}

#[test]
fn what_no_model_can_look_at_is_refused_before_anything_is_kept() {
    let fixture = start_fixture();
    fs::write(fixture.home.user_home.join("no.png"), "no image").expect("a file");
    let refused = chorusctl(&fixture.home, ["send", "Look!", "--attach", "no.png"]);
    let said = refused.expect_failure_with_hint(2);
    assert!(said.contains("cannot send no.png to anthropic/claude-test: it is not a PNG"), "{said}");
    let mut large = PNG.to_vec();
    large.resize(4 << 20, 0);
    fs::write(fixture.home.user_home.join("large.png"), &large).expect("a file");
    let refused = chorusctl(&fixture.home, ["send", "Look!", "--attach", "large.png"]);
    let said = refused.expect_failure_with_hint(2);
    assert!(said.contains("cannot send large.png to anthropic/claude-test: it is larger than 3.8 MiB"), "{said}");
    assert_eq!((record(&mut fixture.client()), fixture.models().requests().len()), (Vec::new(), 0));
}

#[test]
fn a_conversation_with_an_image_that_is_none_goes_on() {
    for model in MODELS {
        let fixture = start_with_model(model);
        let mut client = fixture.client();
        let broken = Attachment {
            name: "broken.png".into(),
            media_type: Some("image/png".into()),
            size: None,
            path: None,
            url: None,
            data: Some("AAAA".into()),
        };
        let message = NewMessage { attachments: vec![broken], ..NewMessage::text(Role::User, "Look!") };
        client.append_all("a", vec![message]);
        fixture.reply("I cannot see it.");
        send(&mut client, "Well?").expect("a turn");
        let body = &fixture.models().requests()[0].text;
        assert!(
            body.contains("[attached: broken.png, image/png; not shown: it is not a PNG") && !body.contains("AAAA"),
            "{body}"
        );
    }
}

/// Somebody shows the agent an image, and it is answered.
fn show(fixture: &Fixture, client: &mut Client) {
    let image = Attachment {
        name: "point.png".into(),
        media_type: Some("image/png".into()),
        size: Some(PNG.len() as u64),
        path: None,
        url: None,
        data: Some(BASE64.into()),
    };
    let message = NewMessage { attachments: vec![image], ..NewMessage::text(Role::User, "Look!") };
    client.append_all("a", vec![message]);
    fixture.reply("I see.");
    send(client, "Well?").expect("a turn");
}

const IN_WORDS: &str = "Look!\\n[image point.png, 69 bytes: this model does not accept images]";

#[test]
fn a_conversation_with_an_image_goes_on_with_a_model_that_takes_none() {
    let server = ModelServer::start();
    let blind = json!({"id": "blind", "object": "model", "architecture": {"input_modalities": ["text"]}});
    server.set_openai_models(200, &json!({"object": "list", "data": [blind]}));
    let fixture = start_with_server(server, MODELS[0], "");
    let mut client = fixture.client();
    show(&fixture, &mut client);
    assert!(fixture.models().requests()[0].text.contains(BASE64));
    let params = ConfigParams { name: "a".into(), key: Some("model".into()), value: Some("local/blind".into()) };
    client.call::<Config>(&params).expect("another model");
    // That it takes none is in its list, which is asked for beside all else.
    chorusctl(&fixture.home, ["models", "validate"]).expect_success();
    fixture.models().openai().queue_text(["I only read of it."]);
    send(&mut client, "And you?").expect("a turn");
    let request = fixture.models().requests().pop().expect("a request");
    assert!(request.text.contains(IN_WORDS) && !request.text.contains(BASE64), "{}", request.text);
    let params = ShowParams { agent: Some("a".into()), window: true, ..Default::default() };
    let window = client.call::<Show>(&params).expect("context.show").window.expect("a window");
    assert!(
        window.messages[0].message.content.ends_with("this model does not accept images]"),
        "the window says the same"
    );
    let kept = &client.messages("a")[0];
    assert_eq!((&*kept.content, kept.attachments[0].name.as_str()), ("Look!", "point.png"), "the record keeps it");
}

#[test]
fn a_model_that_turns_out_to_take_no_images_is_told_of_them() {
    // ggml-org/llama.cpp#15377.
    let refused = r#"{"error":{"code":500,"message":"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj","type":"server_error"}}"#;
    let fixture = start_with_model(MODELS[1]);
    let mut client = fixture.client();
    fixture.answer(Response::error(500, refused));
    show(&fixture, &mut client);
    fixture.reply("Still here.");
    send(&mut client, "And now?").expect("a turn");
    let seen: Vec<_> = fixture
        .models()
        .requests()
        .iter()
        .map(|sent| (sent.text.contains(BASE64), sent.text.contains(IN_WORDS)))
        .collect();
    assert_eq!(seen, [(true, false), (false, true), (false, true)], "asked once with it");
    assert_eq!(client.messages("a")[0].attachments.len(), 1);
}
