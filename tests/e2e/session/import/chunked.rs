//! An import in chunks: cut anywhere, and bounded in memory.

use chorus_proto::methods::export::{ExportFormat, Read, ReadParams};
use chorus_proto::methods::import::{Add, AddParams, Begin, BeginParams, Commit, CommitParams, ImportFormat};
use chorus_proto::{Client, ErrorKind};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::rng::rounds_from_env;
use chorus_tests::{Daemon, process};

use crate::home;

fn begin(client: &mut Client) -> u64 {
    let params = BeginParams { agent: Some("a".into()), from: ImportFormat::Openai, ..BeginParams::default() };
    client.call::<Begin>(&params).expect("begun").import
}

fn bytes(client: &mut Client, import: u64, base64: &str) {
    let params = AddParams { import, data: None, data_base64: Some(base64.into()) };
    client.call::<Add>(&params).expect("added");
}

#[test]
fn a_chunk_may_end_inside_a_character() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let import = begin(&mut client);
    // `{"role":"user","content":"é"}`, cut between the two bytes of the é.
    bytes(&mut client, import, "eyJyb2xlIjoidXNlciIsImNvbnRlbnQiOiLD");
    bytes(&mut client, import, "qSJ9Cg==");
    let result = client.call::<Commit>(&CommitParams { import, ..CommitParams::default() }).expect("imported");
    assert_eq!((result.sessions.len(), result.skipped_total), (1, 0));
    assert_eq!(client.get_session("a", "latest").1[0].content, "\u{e9}");
}

#[test]
fn an_import_belongs_to_its_connection_and_ends_with_it() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let import = begin(&mut client);
    let add = AddParams { import, data: Some("{}".into()), data_base64: None };
    assert_ne!(expect_error_kind(daemon.client().call::<Add>(&add)), ErrorKind::Internal);
    assert_ne!(
        expect_error_kind(daemon.client().call::<Commit>(&CommitParams { import, ..CommitParams::default() })),
        ErrorKind::Internal
    );
    client
        .call::<Add>(&AddParams { data: Some("{\"role\":\"user\",\"content\":\"x\"}".into()), ..add })
        .expect("added");
    client.call::<Commit>(&CommitParams { import, ..CommitParams::default() }).expect("imported");
    assert_ne!(
        expect_error_kind(client.call::<Commit>(&CommitParams { import, ..CommitParams::default() })),
        ErrorKind::Internal,
        "once is enough"
    );
    let given_up = begin(&mut client);
    bytes(&mut client, given_up, "eyJyb2xlIjoi");
    drop(client);
    assert_eq!(daemon.client().history("a").len(), 1);
}

#[test]
fn two_imports_at_once_do_not_mix() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let (one, two) = (begin(&mut client), begin(&mut client));
    for n in 0..10 {
        for import in [one, two] {
            let data = Some(format!("{{\"role\":\"user\",\"content\":\"{import} {n}\"}}\n"));
            client.call::<Add>(&AddParams { import, data, data_base64: None }).expect("added");
        }
    }
    for import in [one, two] {
        client.call::<Commit>(&CommitParams { import, ..CommitParams::default() }).expect("imported");
        let texts: Vec<_> = client.get_session("a", "latest").1.into_iter().map(|m| m.content).collect();
        assert_eq!(texts, (0..10).map(|n| format!("{import} {n}")).collect::<Vec<_>>());
    }
}

/// `CHORUS_IMPORT_MB=500` is the promise; the default shows the same slope.
#[test]
fn a_large_transcript_needs_little_memory() {
    const CHUNK: usize = 1024 * 1024;
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let megabytes = rounds_from_env("CHORUS_IMPORT_MB", 64);
    let before = process::peak_rss(daemon.pid);
    let import = begin(&mut client);
    let line = format!("{{\"role\":\"user\",\"content\":\"{}\"}}\n", "word ".repeat(CHUNK / 5 - 10));
    for _ in 0..megabytes {
        client.call::<Add>(&AddParams { import, data: Some(line.clone()), data_base64: None }).expect("added");
    }
    let result = client.call::<Commit>(&CommitParams { import, ..CommitParams::default() }).expect("imported");
    assert_eq!(result.sessions[0].header.message_count, megabytes);
    let growth = process::peak_rss(daemon.pid) - before;
    let allowed = (megabytes / 2).clamp(32, 200) * 1024 * 1024;
    assert!(growth < allowed, "{growth} bytes for a transcript of {megabytes} MB");
}

/// The text of a session in pieces, as an export has it.
fn export(client: &mut Client, agent: &str, session: &str, form: ExportFormat) -> String {
    let mut params = ReadParams { agent: Some(agent.into()), session: session.into(), form, ..Default::default() };
    let mut text = String::new();
    loop {
        let piece = client.call::<Read>(&params).expect("a piece");
        text.push_str(&piece.data);
        (params.offset, params.fingerprint) = (piece.next, piece.fingerprint);
        if piece.next.is_none() {
            return text;
        }
    }
}

#[test]
fn a_hundred_thousand_messages_of_markdown_come_back_in_little_memory() {
    const MESSAGES: usize = 100_000;
    const ALLOWED: u64 = 40 << 20;
    // Indexing takes memory of its own at the same time.
    const WITHOUT_INDEX: &str = "[search]\nindex = false\n";
    let home = home();
    let daemon = Daemon::start_with(&home, WITHOUT_INDEX);
    let mut client = daemon.client();
    client.init("a");
    let import = begin(&mut client);
    let texts = [
        "Why does it drop rows?",
        "**You:** said so\r\n-->",
        "Because of the filter.\n\n- a\n- b\n",
        "## Query 9 (10:00:00)",
    ];
    let lines: Vec<String> = (0..MESSAGES)
        .map(|n| {
            let role = if n % 3 == 0 { "user" } else { "assistant" };
            let content = format!("{n} {} {}", texts[n % 4], "word ".repeat(20));
            serde_json::json!({"role": role, "content": content}).to_string()
        })
        .collect();
    for chunk in lines.chunks(2000) {
        let data = Some(chunk.join("\n") + "\n");
        client.call::<Add>(&AddParams { import, data, data_base64: None }).expect("added");
    }
    let first = client.call::<Commit>(&CommitParams { import, ..CommitParams::default() }).expect("imported");
    let id = first.sessions[0].header.id.to_string();
    let before = process::peak_rss(daemon.pid);
    let text = export(&mut client, "a", &id, ExportFormat::Md);
    let growth = process::peak_rss(daemon.pid) - before;
    assert!(growth < ALLOWED, "{growth} bytes for an export of {} bytes", text.len());
    assert!(text.len() > 30 << 20 && text.matches("\n<!-- chorus data\n").count() == 1);
    let written = export(&mut client, "a", &id, ExportFormat::Jsonl);

    drop((client, daemon));
    let daemon = Daemon::start_with(&home, WITHOUT_INDEX);
    let mut client = daemon.client();
    client.init("b");
    let params = BeginParams { agent: Some("b".into()), from: ImportFormat::Auto, ..BeginParams::default() };
    let import = client.call::<Begin>(&params).expect("begun").import;
    let before = process::peak_rss(daemon.pid);
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (chunk, more) = rest.split_at(rest.len().min(1 << 20));
        client.call::<Add>(&AddParams { import, data: Some(chunk.into()), data_base64: None }).expect("added");
        rest = more;
    }
    let again = client.call::<Commit>(&CommitParams { import, ..CommitParams::default() }).expect("imported");
    let growth = process::peak_rss(daemon.pid) - before;
    assert!(growth < ALLOWED, "{growth} bytes for an import of {} bytes", text.len());
    assert_eq!((again.sessions.len(), again.skipped_total), (1, 0));
    let read = export(&mut client, "b", &again.sessions[0].header.id.to_string(), ExportFormat::Jsonl);
    let differs = written.lines().zip(read.lines()).find(|(one, other)| one != other);
    assert_eq!((differs, read.lines().count()), (None, MESSAGES));
}
