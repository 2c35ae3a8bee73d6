//! The bytes in `golden/v1/` must load for ever, and come out as the very bytes they were.
//!
//! One file is one frame body on one line: `<method>.request.json` and `<method>.result.json`, with a word before
//! `.json` where a method has several. `message.*`, `session.header.*`, `error.*`, `event.*`, `progress.json` and
//! `send.progress.*` hold the parts that have no method of their own, `frame.bin` a whole frame.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use chorus_proto::methods::{
    agent, approvals, archive, audit, backup, chain, context, daemon, doctor, events, export, import, memory, models,
    permissions, send, session, settings, tasks, trash, tree, usage,
};
use chorus_proto::rpc::{Incoming, Progress, Request, RequestOut, VERSION};
use chorus_proto::{ErrorKind, Event, Message, Method, NewMessage, RpcError, SessionHeader, frame};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How one method's file is read and written again.
struct Entry {
    name: &'static str,
    request: fn(&str) -> String,
    result: fn(&str) -> String,
}

fn entry<M: Method>() -> Entry {
    Entry { name: M::NAME, request: request::<M>, result: result::<M> }
}

/// Every method of the protocol; `every_method_is_listed` compares it with the source.
fn methods() -> Vec<Entry> {
    vec![
        entry::<daemon::Hello>(),
        entry::<daemon::Status>(),
        entry::<daemon::Stop>(),
        entry::<doctor::Doctor>(),
        entry::<agent::Init>(),
        entry::<agent::Destroy>(),
        entry::<agent::List>(),
        entry::<agent::Show>(),
        entry::<agent::Use>(),
        entry::<agent::Config>(),
        entry::<context::Append>(),
        entry::<context::Show>(),
        entry::<context::Save>(),
        entry::<context::Clear>(),
        entry::<context::History>(),
        entry::<context::Restore>(),
        entry::<chain::Resume>(),
        entry::<chain::Compact>(),
        entry::<context::Rewind>(),
        entry::<context::Pin>(),
        entry::<context::Unpin>(),
        entry::<events::List>(),
        entry::<events::Subscribe>(),
        entry::<session::Get>(),
        entry::<session::Delete>(),
        entry::<session::Purge>(),
        entry::<session::Expire>(),
        entry::<session::Tag>(),
        entry::<session::Untag>(),
        entry::<tree::Tree>(),
        entry::<tree::Branch>(),
        entry::<tree::Diff>(),
        entry::<tree::Merge>(),
        entry::<trash::List>(),
        entry::<trash::Restore>(),
        entry::<trash::Empty>(),
        entry::<export::Select>(),
        entry::<export::Read>(),
        entry::<import::Begin>(),
        entry::<import::Add>(),
        entry::<import::Commit>(),
        entry::<settings::Show>(),
        entry::<settings::Set>(),
        entry::<permissions::List>(),
        entry::<permissions::Show>(),
        entry::<permissions::Check>(),
        entry::<models::List>(),
        entry::<models::Validate>(),
        entry::<send::Send>(),
        entry::<send::Cancel>(),
        entry::<tasks::List>(),
        entry::<tasks::Show>(),
        entry::<tasks::Logs>(),
        entry::<tasks::Stop>(),
        entry::<usage::Show>(),
        entry::<approvals::List>(),
        entry::<approvals::Approve>(),
        entry::<approvals::Deny>(),
        entry::<audit::Audit>(),
        entry::<audit::Verify>(),
        entry::<memory::Add>(),
        entry::<memory::List>(),
        entry::<memory::Search>(),
        entry::<memory::Remove>(),
        entry::<archive::ExportBegin>(),
        entry::<archive::ExportRead>(),
        entry::<archive::ImportBegin>(),
        entry::<archive::ImportAdd>(),
        entry::<archive::ImportCommit>(),
        entry::<backup::Create>(),
        entry::<backup::ArchiveBegin>(),
        entry::<backup::ArchiveRead>(),
    ]
}

/// Reads a request with `M`'s parameters and writes it again.
fn request<M: Method>(text: &str) -> String {
    let read: Request<'_> = serde_json::from_str(text).expect("a request");
    assert_eq!((&*read.jsonrpc, &*read.method), (VERSION, M::NAME));
    let id: u64 = serde_json::from_str(read.id.expect("an id").get()).expect("a number as id");
    let params: M::Params = serde_json::from_str(read.params.expect("params").get()).expect("the method's params");
    let out = RequestOut { jsonrpc: VERSION, id, method: M::NAME, params: &params };
    serde_json::to_string(&out).expect("serialises")
}

/// Reads an answer with `M`'s result and writes it again.
fn result<M: Method>(text: &str) -> String {
    let read: Incoming<'_> = serde_json::from_str(text).expect("an answer");
    let id = read.id.expect("the id of the request");
    let result = again::<M::Result>(read.result.expect("a result").get());
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// Reads a `T` and writes it again.
fn again<T: Serialize + DeserializeOwned>(text: &str) -> String {
    let value: T = serde_json::from_str(text).expect("loads");
    serde_json::to_string(&value).expect("serialises")
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/v1")
}

/// The text of each file whose name begins with `prefix`, without the line end.
fn files(prefix: &str) -> Vec<(String, String)> {
    let mut found: Vec<_> = names()
        .into_iter()
        .filter(|name| name.ends_with(".json") && name.starts_with(prefix))
        .map(|name| {
            let text = fs::read_to_string(folder().join(&name)).expect("a readable file");
            let line = text.strip_suffix('\n').expect("a line end").to_owned();
            (name, line)
        })
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no golden file {prefix}*.json");
    found
}

fn names() -> BTreeSet<String> {
    let entries = fs::read_dir(folder()).expect("the golden folder");
    entries.map(|e| e.expect("an entry").file_name().into_string().expect("a plain name")).collect()
}

#[test]
fn requests_load_and_come_out_the_same() {
    for method in methods() {
        for (name, text) in files(&format!("{}.request.", method.name)) {
            assert_eq!((method.request)(&text), text, "{name}");
        }
    }
}

#[test]
fn results_load_and_come_out_the_same() {
    for method in methods() {
        for (name, text) in files(&format!("{}.result.", method.name)) {
            assert_eq!((method.result)(&text), text, "{name}");
        }
    }
}

#[test]
fn messages_come_out_the_same_and_can_be_appended() {
    for (name, text) in files("message.") {
        assert_eq!(again::<Message>(&text), text, "{name}");
        assert_eq!(again::<NewMessage>(&text), text, "{name} as a new message");
    }
}

#[test]
fn session_headers_come_out_the_same() {
    for (name, text) in files("session.header.") {
        assert_eq!(again::<SessionHeader>(&text), text, "{name}");
    }
}

#[test]
fn progress_comes_out_the_same() {
    let (_, text) = files("progress.").remove(0);
    let read: Incoming<'_> = serde_json::from_str(&text).expect("a notification");
    let params = again::<Progress>(read.params.expect("params").get());
    assert_eq!(format!(r#"{{"jsonrpc":"2.0","method":"{}","params":{params}}}"#, read.method.expect("a method")), text);
}

#[test]
fn an_event_comes_out_the_same() {
    for (name, text) in files("event.") {
        let read: Incoming<'_> = serde_json::from_str(&text).expect("a notification");
        let params = again::<Event>(read.params.expect("params").get());
        assert_eq!(format!(r#"{{"jsonrpc":"2.0","method":"event","params":{params}}}"#), text, "{name}");
    }
}

#[test]
fn pieces_of_a_turn_come_out_the_same_and_newer_ones_can_be_told() {
    for (name, text) in files("send.progress.") {
        let read: Incoming<'_> = serde_json::from_str(&text).expect("a notification");
        let params = again::<send::Progress>(read.params.expect("params").get());
        assert_eq!(read.method.as_deref(), Some("progress"));
        assert_eq!(format!(r#"{{"jsonrpc":"2.0","method":"progress","params":{params}}}"#), text, "{name}");
    }
    assert!(serde_json::from_str::<send::Progress>(r#"{"id":93,"invented_later":{"a":1}}"#).is_err());
}

#[test]
fn errors_come_out_the_same() {
    for (name, text) in files("error.") {
        if name == "error.kinds.json" {
            continue;
        }
        let read: Incoming<'_> = serde_json::from_str(&text).expect("an answer");
        let id = read.id.map_or("null".to_owned(), |id| id.to_string());
        let error: RpcError = read.error.expect("an error");
        let error = serde_json::to_string(&error).expect("serialises");
        assert_eq!(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#), text, "{name}");
    }
}

#[test]
fn error_kinds_keep_their_names_and_newer_ones_are_unknown() {
    let (_, text) = files("error.kinds.").remove(0);
    let kinds: Vec<ErrorKind> = serde_json::from_str(&text).expect("a list of kinds");
    assert_eq!(serde_json::to_string(&kinds).expect("serialises"), text);
    let known = kinds.iter().filter(|kind| **kind != ErrorKind::Unknown).count();
    assert_eq!(known, kinds.len() - 1, "a kind of the list is no longer known");
    let newer: ErrorKind = serde_json::from_str(r#""invented_later""#).expect("loads");
    assert_eq!(newer, ErrorKind::Unknown);
}

#[test]
fn a_frame_keeps_its_bytes() {
    let bytes = fs::read(folder().join("frame.bin")).expect("frame.bin");
    let mut body = Vec::new();
    assert!(frame::read(&mut &bytes[..], &mut body, frame::MAX_FRAME).expect("one frame"));
    let text = std::str::from_utf8(&body).expect("text");
    assert_eq!(request::<daemon::Hello>(text), text);
    let mut again = Vec::new();
    frame::write(&mut again, &body, frame::MAX_FRAME).expect("writes");
    assert_eq!(again, bytes);
}

/// Whoever adds a method adds it here too.
#[test]
fn every_method_is_listed() {
    let mut declared = BTreeSet::new();
    for file in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/methods")).expect("the methods") {
        let text = fs::read_to_string(file.expect("an entry").path()).expect("a source file");
        for line in text.lines().filter(|line| line.contains(" = \"") && line.contains(" => ")) {
            let name = line.split('"').nth(1).expect("a quoted name");
            declared.insert(name.to_owned());
        }
    }
    let listed: BTreeSet<_> = methods().iter().map(|method| method.name.to_owned()).collect();
    assert_eq!(listed, declared);
}

#[test]
fn no_file_is_a_stray() {
    let mut prefixes = ["message.", "session.header.", "error.", "event.", "progress.json", "send.progress."]
        .map(String::from)
        .to_vec();
    prefixes.extend(methods().iter().flat_map(|m| [format!("{}.request.", m.name), format!("{}.result.", m.name)]));
    for name in names() {
        let known = prefixes.iter().any(|prefix| name.starts_with(prefix.as_str())) && name.ends_with(".json");
        assert!(known || name == "frame.bin", "{name} belongs to nothing");
    }
}
