//! A client of any language: the text of a session in pieces that fit a frame.

use chorus_proto::methods::export::{ExportFormat, Read, ReadParams, Select, SelectParams};
use chorus_proto::methods::import::ImportFormat;
use chorus_proto::{Client, ErrorKind, NewMessage, Role};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::import::import_transcript;

use crate::home;

fn read(client: &mut Client, form: ExportFormat) -> (String, usize) {
    let mut params = ReadParams { agent: Some("a".into()), session: "latest".into(), form, ..Default::default() };
    let (mut text, mut pieces) = (String::new(), 0);
    loop {
        let piece = client.call::<Read>(&params).expect("a piece");
        text.push_str(&piece.data);
        pieces += 1;
        (params.offset, params.fingerprint) = (piece.next, piece.fingerprint);
        if piece.next.is_none() {
            return (text, pieces);
        }
        assert_eq!(piece.next, Some(text.len() as u64));
    }
}

#[test]
fn a_text_longer_than_a_frame_comes_in_pieces() {
    let home = home();
    let daemon = Daemon::start_with(&home, "max_frame = \"64KiB\"\n");
    let mut client = daemon.client();
    client.init("a");
    let text = "é\u{1}\"line\"\n".repeat(1500);
    for _ in 0..12 {
        client.append_all("a", vec![NewMessage::text(Role::User, &text)]);
    }
    let saved = client.save("a", "long");
    let (json, pieces) = read(&mut client, ExportFormat::Json);
    assert!(pieces > 3, "{pieces}");
    assert_eq!(json, std::fs::read_to_string(&saved.file_path).expect("the file"));
    let (lines, _) = read(&mut client, ExportFormat::Jsonl);
    assert_eq!(lines.lines().count(), 12);
    let (markdown, _) = read(&mut client, ExportFormat::Md);
    // What cannot be seen is spelled out.
    assert_eq!(markdown.matches(&*text.replace('\u{1}', "\\u{1}")).count(), 12);
    let inside = ReadParams { session: "latest".into(), offset: Some(1 << 40), ..Default::default() };
    assert_eq!(client.call::<Read>(&inside).expect("nothing more").data, "");
}

#[test]
fn a_piece_of_what_changed_meanwhile_is_refused() {
    let home = home();
    let daemon = Daemon::start_with(&home, "max_frame = \"64KiB\"\n");
    let mut client = daemon.client();
    client.init("a");
    client.append_all("a", vec![NewMessage::text(Role::User, "line\n".repeat(10_000))]);
    client.save("a", "long");
    let first = ReadParams { session: "latest".into(), form: ExportFormat::Html, ..Default::default() };
    let piece = client.call::<Read>(&first).expect("a piece");
    let next = ReadParams { offset: piece.next, fingerprint: piece.fingerprint, ..first.clone() };
    let same = client.call::<Read>(&next).expect("the next piece");
    assert_eq!(same.fingerprint, next.fingerprint);
    chorusctl(&home, ["session", "tag", "latest", "kept"]).expect_success();
    assert_eq!(expect_error_kind(client.call::<Read>(&next)), ErrorKind::Conflict);
    assert_ne!(client.call::<Read>(&first).expect("from the beginning").fingerprint, next.fingerprint);
    let page = chorusctl(&home, ["session", "export", "latest", "--as", "html"]).expect_success();
    assert!(page.ends_with("</html>\n") && page.matches("line<br />\n").count() >= 9_999, "{}", page.len());
}

/// Each piece would otherwise follow the chain to the imported session again.
#[test]
fn the_pieces_of_a_text_go_on_with_the_chain_that_the_first_one_found() {
    let home = home();
    let daemon = Daemon::start_with(&home, "max_frame = \"64KiB\"\n");
    let mut client = daemon.client();
    client.init("a");
    import_transcript(&mut client, "a", ImportFormat::Openai, r#"[{"role":"user","content":"hello"}]"#, 100)
        .expect("imported");
    client.restore("a", "latest");
    client.append_all("a", vec![NewMessage::text(Role::User, "line\n".repeat(10_000))]);
    let long = client.save("a", "long").header;
    let first = ReadParams { session: long.id.to_string(), form: ExportFormat::Md, ..Default::default() };
    let piece = client.call::<Read>(&first).expect("a piece");
    assert!(piece.data.contains("**Imported From:** "), "{}", &piece.data[..500]);
    chorusctl(&home, ["rm", "latest~1"]).expect_success();
    let next = ReadParams { offset: piece.next, fingerprint: piece.fingerprint, ..first.clone() };
    assert_eq!(client.call::<Read>(&next).expect("the next piece").fingerprint, next.fingerprint);
    let again = client.call::<Read>(&first).expect("from the beginning");
    assert_ne!(again.fingerprint, next.fingerprint);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let both = SelectParams { session: vec!["latest".into()], all_agents: true, ..Default::default() };
    assert_eq!(expect_error_kind(client.call::<Select>(&both)), ErrorKind::InvalidParams);
    let none = SelectParams { session: vec!["latest".into()], ..Default::default() };
    assert_eq!(expect_error_kind(client.call::<Select>(&none)), ErrorKind::SessionNotFound);
    assert_eq!(client.call::<Select>(&SelectParams::default()).expect("an empty list").sessions, []);
}
