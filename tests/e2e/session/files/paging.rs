//! Long sessions are read in pages and exported in pieces: each costs what it shows, not what the file has.

use std::fs;

use chorus_proto::methods::export::{ExportFormat, Read, ReadParams};
use chorus_proto::methods::session::{Get, GetParams};
use chorus_proto::methods::session_branching::{Diff, DiffParams};
use chorus_proto::{Client, NewMessage, Role, Session};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::process::bytes_read;
use chorus_tests::{Daemon, Home};

use crate::home;

const MESSAGES: usize = 3000;

/// What a page may read that the file has not: the catalog, and the way to the next mark.
const BESIDES: u64 = 512 << 10;

/// Without an index: its thread reads files, too.
fn session(home: &Home) -> (Daemon, Client, Session) {
    let daemon = Daemon::start_with(home, "max_frame = \"256KiB\"\n");
    let mut client = daemon.client();
    client.init("a");
    let text = "A line that is said again and again.\n".repeat(50);
    for part in 0..MESSAGES / 100 {
        let role = |n: usize| if n.is_multiple_of(2) { Role::User } else { Role::Assistant };
        let messages = (0..100).map(|n| NewMessage::text(role(n), format!("{} {text}", part * 100 + n)));
        client.append_all("a", messages.collect());
    }
    let saved = client.save("a", "long");
    (daemon, client, saved)
}

fn get(client: &mut Client, offset: u64) -> (Vec<String>, Option<u64>, usize) {
    let (offset, limit) = (Some(offset), Some(10));
    let params = GetParams { agent: Some("a".into()), session: "latest".into(), offset, limit, ..Default::default() };
    let page = client.call::<Get>(&params).expect("a page");
    let texts = page.messages.into_iter().map(|message| message.content);
    (texts.map(|text| text.split(' ').next().unwrap_or_default().to_owned()).collect(), page.next, page.warnings.len())
}

#[test]
fn a_page_of_a_session_costs_a_page() {
    let home = home().without_index();
    let (daemon, mut client, saved) = session(&home);
    let size = fs::metadata(&saved.file_path).expect("the file").len();
    assert!(size > 4 << 20, "{size}");
    assert_eq!(get(&mut client, 0).0[9], "9");
    for offset in [10, 1500, 2989, 64, 2995] {
        let before = bytes_read(daemon.pid);
        let (numbers, next, warnings) = get(&mut client, offset);
        let expected: Vec<_> = (offset..3000).take(10).map(|n| n.to_string()).collect();
        assert_eq!((numbers, warnings), (expected, 0));
        assert_eq!(next, Some(offset + 10).filter(|next| *next < 3000));
        let cost = bytes_read(daemon.pid) - before;
        assert!(cost < BESIDES, "{cost} of {size} bytes read for the page at {offset}");
    }
    assert_eq!(get(&mut client, 5000), (vec![], None, 0));

    // What is changed in between is seen: the same length, in the same file.
    let text = fs::read_to_string(&saved.file_path).expect("the file");
    fs::write(&saved.file_path, text.replacen("\"2500 A line", "\"2500 A lime", 1)).expect("written");
    assert_eq!(get(&mut client, 1500).2, 1, "said to be changed");
    let all = client.get_session("a", "latest").1;
    assert_eq!((all.len(), &all[2500].content[..11]), (MESSAGES, "2500 A lime"));
}

#[test]
fn an_export_in_pieces_reads_a_session_about_once() {
    let home = home().without_index();
    let (daemon, mut client, saved) = session(&home);
    let size = fs::metadata(&saved.file_path).expect("the file").len();
    for form in [ExportFormat::Json, ExportFormat::Jsonl, ExportFormat::Md, ExportFormat::Html] {
        let mut params = ReadParams { session: saved.header.id.to_string(), form, ..Default::default() };
        let (mut text, mut pieces) = (String::new(), Vec::new());
        let before = bytes_read(daemon.pid);
        loop {
            let piece = client.call::<Read>(&params).expect("a piece");
            text.push_str(&piece.data);
            pieces.push((params.offset, piece.data));
            (params.offset, params.fingerprint) = (piece.next, piece.fingerprint);
            if piece.next.is_none() {
                break;
            }
        }
        let cost = bytes_read(daemon.pid) - before;
        assert!(pieces.len() > 40, "{} pieces", pieces.len());
        assert!(cost < size * 6, "{cost} bytes read for {size} in {} pieces as {form:?}", pieces.len());
        (0..MESSAGES).fold(0, |at, n| {
            let found = text[at..].find(&format!("{n} A line"));
            at + found.unwrap_or_else(|| panic!("message {n} as {form:?}"))
        });
        // A client that knows nothing of fingerprints, and asks for pieces in its own order, is given the same.
        for (offset, data) in pieces.iter().rev().step_by(25) {
            let again =
                ReadParams { session: saved.header.id.to_string(), form, offset: *offset, ..ReadParams::default() };
            assert_eq!(&client.call::<Read>(&again).expect("a piece").data, data, "{form:?} from {offset:?}");
        }
        if form == ExportFormat::Json {
            assert_eq!(text, fs::read_to_string(&saved.file_path).expect("the file"));
        }
    }
}

#[test]
fn a_page_of_a_comparison_does_not_compare_again() {
    let home = home().without_index();
    let (daemon, mut client, one) = session(&home);
    client.append_all("a", (0..40).map(|n| NewMessage::text(Role::User, format!("more {n}"))).collect());
    let other = client.save("a", "longer");
    let mut page = |offset| {
        let (a, b) = (one.short_id.clone(), other.short_id.clone());
        let params =
            DiffParams { agent: Some("a".into()), a, b, offset: Some(offset), limit: Some(15), ..Default::default() };
        let before = bytes_read(daemon.pid);
        let found = client.call::<Diff>(&params).expect("a page");
        (found.common, found.lines.len(), found.next, bytes_read(daemon.pid) - before)
    };
    let (common, lines, next, _) = page(0);
    assert_eq!((common, lines, next), (3000, 15, Some(15)));
    let (common, lines, next, cost) = page(30);
    assert_eq!((common, lines, next), (3000, 10, None));
    assert!(cost < BESIDES, "{cost} bytes read for a page");
}
