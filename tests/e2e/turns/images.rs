//! Images as attachments, from a file to the model.

use std::fs;

use chorus_proto::methods::context::{Show, ShowParams};
use chorus_proto::{Attachment, NewMessage, Role};
use chorus_tests::chat::Chat as _;
use chorus_tests::ctl::chorusctl;
use serde_json::json;

use super::{MODELS, Rig, record};

/// One red point.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\0\0\0\x0cIDAT\
    x\x9cc\xf8\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";
/// The same as it is sent.
const BASE64: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

#[test]
fn an_image_goes_from_its_file_to_either_provider() {
    for model in MODELS {
        let rig = Rig::on(model);
        // Whatever it is called.
        for name in ["point.png", "point.jpg"] {
            fs::write(rig.home.user.join(name), PNG).expect("an image");
            rig.say("A red point.");
            let said = chorusctl(&rig.home, ["send", "What is this?", "--attach", name]).ok();
            assert_eq!(said, "A red point.\n");
        }
        let due = if model == MODELS[0] {
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BASE64}})
        } else {
            json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{BASE64}")}})
        };
        let request = rig.server.requests().pop().expect("a request");
        let images = request.text.matches(&due.to_string()[1..40]).count();
        assert_eq!(
            (images, request.text.matches(BASE64).count()),
            (2, 2),
            "it stays in the conversation: {due} {}",
            request.text
        );
        // A picture of the request has its size alone.
        let params = ShowParams { agent: Some("a".into()), window: true, ..Default::default() };
        let window = rig.client().call::<Show>(&params).expect("context.show").window.expect("a window");
        let shown = &window.messages[0].message.attachments[0];
        assert_eq!((&shown.data, shown.size), (&None, Some(PNG.len() as u64)));
        let kept = &rig.client().shown("a")[0].attachments[0];
        assert_eq!((kept.media_type.as_deref(), kept.size), (Some("image/png"), Some(PNG.len() as u64)));
    }
}

#[test]
fn what_no_model_can_look_at_is_refused_before_anything_is_kept() {
    let rig = Rig::new();
    fs::write(rig.home.user.join("no.png"), "no image").expect("a file");
    let refused = chorusctl(&rig.home, ["send", "Look!", "--attach", "no.png"]);
    let said = refused.failed_with_hint(2);
    assert!(said.contains("no.png cannot be shown to anthropic/claude-test: its bytes are no PNG"), "{said}");
    let mut large = PNG.to_vec();
    large.resize(4 << 20, 0);
    fs::write(rig.home.user.join("large.png"), &large).expect("a file");
    let refused = chorusctl(&rig.home, ["send", "Look!", "--attach", "large.png"]);
    let said = refused.failed_with_hint(2);
    assert!(said.contains("large.png cannot be shown to anthropic/claude-test: it is larger than 3.8 MiB"), "{said}");
    assert_eq!((record(&mut rig.client()), rig.server.requests().len()), (Vec::new(), 0));
}

#[test]
fn a_conversation_with_an_image_that_is_none_goes_on() {
    for model in MODELS {
        let rig = Rig::on(model);
        let mut client = rig.client();
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
        rig.say("I cannot see it.");
        super::send(&mut client, "Well?").expect("a turn");
        let body = &rig.server.requests()[0].text;
        assert!(
            body.contains("[attached: broken.png, image/png; not shown: its bytes") && !body.contains("AAAA"),
            "{body}"
        );
    }
}
