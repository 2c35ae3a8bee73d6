//! Files that come with messages: shown, put into the text, or named with the reason.

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::Fault;
use chorus_tests::model_server::Response;
use serde_json::json;

use super::{InboundFixture, asked};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n-not-much-of-a-picture";

#[test]
fn images_are_shown_texts_are_in_the_text_and_the_rest_is_named() {
    let fixture = InboundFixture::new();
    fixture.say("I see.");
    let large = vec![b'a'; (256 << 10) + 1];
    let files: &[(&str, &str, &[u8])] = &[
        ("photo.png", "image/png", PNG),
        ("notes.txt", "text/plain; charset=utf-8", "Wörter\n".as_bytes()),
        ("main.rs", "", b"fn main() {}"),
        ("song.mp3", "audio/mpeg", b"ID3"),
        ("long.log", "text/plain", &large),
        ("odd.txt", "text/plain", b"\xff\xfe"),
        ("fake.png", "image/png", b"no image"),
    ];
    let id = fixture.room.say_with_files(&fixture.mara, "Look!", files);
    fixture.answer_to(id);
    let record = fixture.record();
    let text = &record[0].content;
    assert_eq!(
        text,
        "Look!\n\n[attachment notes.txt, 8 bytes]\nWörter\n[end of notes.txt]\n\n\
         [attachment main.rs, 12 bytes]\nfn main() {}\n[end of main.rs]\n\n\
         [attachment song.mp3, 3 bytes: only images and text files are supported]\n\n\
         [attachment long.log, 256.0 KiB: larger than 256.0 KiB]\n\n\
         [attachment odd.txt, 2 bytes: not UTF-8 text]\n\n\
         [attachment fake.png, 8 bytes: it is not a PNG, JPEG, GIF or WebP image]"
    );
    let [image] = &record[0].attachments[..] else { panic!("{:?}", record[0].attachments) };
    assert_eq!((image.name.as_str(), image.media_type.as_deref()), ("photo.png", Some("image/png")));
    let request = &fixture.models.wait_for_requests(1)[0];
    assert!(request.text.contains("iVBORw0KGgo"), "the model is shown the image");
    assert!(asked(&request.body)[0].starts_with("[mara]\nLook!"));
    let fetched = fixture.discord.requests_to("GET /attachments/**");
    assert!(fetched.iter().all(|request| request.authorization.is_none()), "the token is for Discord's API alone");
    assert_eq!(fetched.len(), 5, "what is left out is not fetched");
}

#[test]
fn a_message_may_be_nothing_but_a_file() {
    let fixture = InboundFixture::new();
    fixture.say("Read.");
    let id = fixture.room.say_with_files(&fixture.mara, "", &[("a.md", "text/markdown", b"# Title")]);
    fixture.answer_to(id);
    assert_eq!(fixture.texts(2)[0], "[attachment a.md, 7 bytes]\n# Title\n[end of a.md]");
}

#[test]
fn what_cannot_be_fetched_is_named_and_tried_again_first() {
    let fixture = InboundFixture::new();
    fixture.discord.inject_fault("GET /attachments/**", 1, Fault::Status(502));
    fixture.say("Read.");
    let id = fixture.room.say_with_files(&fixture.mara, "one", &[("a.txt", "text/plain", b"A")]);
    fixture.answer_to(id);
    assert_eq!(fixture.texts(2)[0], "one\n\n[attachment a.txt, 1 byte]\nA\n[end of a.txt]");
    fixture.discord.inject_fault("GET /attachments/**", 2, Fault::Status(500));
    fixture.say("I cannot.");
    let id = fixture.room.say_with_files(&fixture.mara, "two", &[("b.txt", "text/plain", b"B")]);
    fixture.answer_to(id);
    assert_eq!(fixture.texts(4)[2], "two\n\n[attachment b.txt, 1 byte: the download failed (500)]");
    fixture.discord.inject_fault("GET /attachments/**", 1, Fault::Status(404));
    fixture.say("Gone.");
    let id = fixture.room.say_with_files(&fixture.mara, "three", &[("c.png", "image/png", PNG)]);
    fixture.answer_to(id);
    assert!(fixture.texts(6)[4].ends_with("the download failed (404)]"));
    assert_eq!(fixture.discord.requests_to("GET /attachments/**").len(), 5);
}

#[test]
fn a_model_that_looks_at_no_images_has_them_named() {
    let fixture = InboundFixture::new();
    let list = json!({"object": "list", "data": [{"id": "small", "architecture": {"input_modalities": ["text"]}}]});
    fixture.models.set_openai_models(200, &list);
    fixture
        .client()
        .call::<chorus_proto::methods::models::Validate>(&chorus_proto::methods::models::ModelsParams {})
        .expect("models.validate");
    fixture.config("model", "local/small");
    fixture.models.openai().queue(Response::text(["I am blind."]));
    let id = fixture.room.say_with_files(&fixture.mara, "Look!", &[("photo.png", "image/png", PNG)]);
    fixture.answer_to(id);
    let record = fixture.record();
    assert_eq!(record[0].content, "Look!\n\n[attachment photo.png, 30 bytes: the model does not accept images]");
    assert!(record[0].attachments.is_empty());
}

#[test]
fn an_agent_that_gets_another_name_while_files_come_answers_all_the_same() {
    let fixture = InboundFixture::new();
    fixture.discord.inject_fault("GET /attachments/**", 1, Fault::Gate("file"));
    let id = fixture.room.say_with_files(&fixture.mara, "", &[("a.md", "text/markdown", b"# Title")]);
    fixture.discord.wait_for_gate("file");
    fixture.config("name", "clerk");
    // The name is another agent's now.
    fixture.client().init("scribe");
    fixture.say("Read.");
    fixture.discord.open_gate("file");
    assert_eq!(fixture.answer_to(id).content, "Read.");
    assert_eq!(fixture.client().message_texts("clerk")[1..], ["Read."]);
    assert!(fixture.client().message_texts("scribe").is_empty());
}
