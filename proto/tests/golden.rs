//! Checks that the files in `golden/v1/` parse in every release and serialize to the same bytes.
//!
//! Each file is one frame body on one line: `<method>.request.json` and `<method>.result.json`, with a word before
//! `.json` if a method has several. `message.*`, `session.header.*`, `error.*`, `event.*`, `progress.json` and
//! `send.progress.*` contain the types that belong to no method, `frame.bin` a whole frame.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use chorus_proto::methods::{
    agent, agent_transfer, approvals, audit, backup, capture, cluster, config, context, continuation, conversations,
    daemon, doctor, events, export, import, memory, models, notes, permissions, schedule, search, send, session,
    session_branching, settings, tasks, trash, usage,
};
use chorus_proto::rpc::{IncomingMessage, OutgoingRequest, Progress, Request, VERSION};
use chorus_proto::{ErrorKind, Event, Message, Method, NewMessage, RpcError, SessionHeader, frame};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How the files of one method are parsed and serialized again.
struct MethodCase {
    name: &'static str,
    request: fn(&str) -> String,
    result: fn(&str) -> String,
}

fn method_case<M: Method>() -> MethodCase {
    MethodCase { name: M::NAME, request: round_trip_request::<M>, result: round_trip_result::<M> }
}

/// Lists every method of the protocol; `every_method_is_listed` compares the list with the source.
fn methods() -> Vec<MethodCase> {
    vec![
        method_case::<daemon::Hello>(),
        method_case::<daemon::Status>(),
        method_case::<daemon::Stop>(),
        method_case::<doctor::Doctor>(),
        method_case::<agent::Init>(),
        method_case::<agent::Destroy>(),
        method_case::<agent::List>(),
        method_case::<agent::Show>(),
        method_case::<agent::Use>(),
        method_case::<agent::Config>(),
        method_case::<context::Append>(),
        method_case::<context::Show>(),
        method_case::<context::Save>(),
        method_case::<context::Clear>(),
        method_case::<context::History>(),
        method_case::<context::Restore>(),
        method_case::<continuation::Resume>(),
        method_case::<continuation::Compact>(),
        method_case::<context::Rewind>(),
        method_case::<context::Pin>(),
        method_case::<context::Unpin>(),
        method_case::<conversations::List>(),
        method_case::<conversations::New>(),
        method_case::<conversations::Rename>(),
        method_case::<conversations::Close>(),
        method_case::<conversations::Merge>(),
        method_case::<conversations::Use>(),
        method_case::<conversations::Attach>(),
        method_case::<events::List>(),
        method_case::<events::Subscribe>(),
        method_case::<session::Get>(),
        method_case::<session::Delete>(),
        method_case::<session::Purge>(),
        method_case::<session::Scrub>(),
        method_case::<doctor::Secrets>(),
        method_case::<doctor::Size>(),
        method_case::<session::Expire>(),
        method_case::<session::Tag>(),
        method_case::<session::Untag>(),
        method_case::<session_branching::Tree>(),
        method_case::<session_branching::Branch>(),
        method_case::<session_branching::Diff>(),
        method_case::<session_branching::Merge>(),
        method_case::<trash::List>(),
        method_case::<trash::Restore>(),
        method_case::<trash::Empty>(),
        method_case::<export::Select>(),
        method_case::<export::Read>(),
        method_case::<import::Begin>(),
        method_case::<import::Add>(),
        method_case::<import::Commit>(),
        method_case::<config::Reload>(),
        method_case::<config::Set>(),
        method_case::<settings::Show>(),
        method_case::<settings::Set>(),
        method_case::<permissions::List>(),
        method_case::<permissions::Show>(),
        method_case::<permissions::Check>(),
        method_case::<permissions::Rules>(),
        method_case::<permissions::RemoveRule>(),
        method_case::<models::List>(),
        method_case::<models::Validate>(),
        method_case::<search::Search>(),
        method_case::<search::Model>(),
        method_case::<send::Send>(),
        method_case::<send::Cancel>(),
        method_case::<tasks::List>(),
        method_case::<tasks::Show>(),
        method_case::<tasks::Logs>(),
        method_case::<tasks::Stop>(),
        method_case::<schedule::Add>(),
        method_case::<schedule::List>(),
        method_case::<schedule::Show>(),
        method_case::<schedule::Run>(),
        method_case::<schedule::Pause>(),
        method_case::<schedule::Resume>(),
        method_case::<schedule::Remove>(),
        method_case::<usage::Show>(),
        method_case::<approvals::List>(),
        method_case::<approvals::Approve>(),
        method_case::<approvals::Deny>(),
        method_case::<audit::Audit>(),
        method_case::<audit::Verify>(),
        method_case::<memory::Add>(),
        method_case::<memory::List>(),
        method_case::<memory::Search>(),
        method_case::<memory::Remove>(),
        method_case::<notes::List>(),
        method_case::<notes::Add>(),
        method_case::<notes::Edit>(),
        method_case::<notes::Done>(),
        method_case::<notes::Rm>(),
        method_case::<notes::Resolve>(),
        method_case::<agent_transfer::ExportBegin>(),
        method_case::<agent_transfer::ExportRead>(),
        method_case::<agent_transfer::ImportBegin>(),
        method_case::<agent_transfer::ImportAdd>(),
        method_case::<agent_transfer::ImportCommit>(),
        method_case::<backup::Create>(),
        method_case::<backup::ArchiveBegin>(),
        method_case::<backup::ArchiveRead>(),
        method_case::<capture::On>(),
        method_case::<capture::Off>(),
        method_case::<capture::Status>(),
        method_case::<capture::Exclude>(),
        method_case::<capture::Forget>(),
        method_case::<capture::Pause>(),
        method_case::<capture::Resume>(),
        method_case::<cluster::Status>(),
        method_case::<cluster::Drain>(),
        method_case::<cluster::Forget>(),
    ]
}

/// Parses a request with `M`'s parameters and serializes it again.
fn round_trip_request<M: Method>(text: &str) -> String {
    let read: Request<'_> = serde_json::from_str(text).expect("a request");
    assert_eq!((&*read.jsonrpc, &*read.method), (VERSION, M::NAME));
    let id: u64 = serde_json::from_str(read.id.expect("an id").get()).expect("a number as id");
    let params: M::Params = serde_json::from_str(read.params.expect("params").get()).expect("the method's params");
    let out = OutgoingRequest { jsonrpc: VERSION, id, method: M::NAME, params: &params };
    serde_json::to_string(&out).expect("serialises")
}

/// Parses an answer with `M`'s result and serializes it again.
fn round_trip_result<M: Method>(text: &str) -> String {
    let read: IncomingMessage<'_> = serde_json::from_str(text).expect("an answer");
    let id = read.id.expect("the id of the request");
    let result = round_trip::<M::Result>(read.result.expect("a result").get());
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// Parses a `T` and serializes it again.
fn round_trip<T: Serialize + DeserializeOwned>(text: &str) -> String {
    let value: T = serde_json::from_str(text).expect("loads");
    serde_json::to_string(&value).expect("serialises")
}

fn golden_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/v1")
}

/// Returns name and text (without newline) of each file whose name begins with `prefix`.
fn golden_files(prefix: &str) -> Vec<(String, String)> {
    let mut found: Vec<_> = golden_names()
        .into_iter()
        .filter(|name| name.ends_with(".json") && name.starts_with(prefix))
        .map(|name| {
            let text = fs::read_to_string(golden_dir().join(&name)).expect("a readable file");
            let line = text.strip_suffix('\n').expect("a line end").to_owned();
            (name, line)
        })
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no golden file {prefix}*.json");
    found
}

fn golden_names() -> BTreeSet<String> {
    let entries = fs::read_dir(golden_dir()).expect("the golden folder");
    entries.map(|e| e.expect("an entry").file_name().into_string().expect("a plain name")).collect()
}

#[test]
fn requests_load_and_come_out_the_same() {
    for method in methods() {
        for (name, text) in golden_files(&format!("{}.request.", method.name)) {
            assert_eq!((method.request)(&text), text, "{name}");
        }
    }
}

#[test]
fn results_load_and_come_out_the_same() {
    for method in methods() {
        for (name, text) in golden_files(&format!("{}.result.", method.name)) {
            assert_eq!((method.result)(&text), text, "{name}");
        }
    }
}

#[test]
fn messages_come_out_the_same_and_can_be_appended() {
    for (name, text) in golden_files("message.") {
        assert_eq!(round_trip::<Message>(&text), text, "{name}");
        assert_eq!(round_trip::<NewMessage>(&text), text, "{name} as a new message");
    }
}

#[test]
fn session_headers_come_out_the_same() {
    for (name, text) in golden_files("session.header.") {
        assert_eq!(round_trip::<SessionHeader>(&text), text, "{name}");
    }
}

#[test]
fn progress_comes_out_the_same() {
    let (_, text) = golden_files("progress.").remove(0);
    let read: IncomingMessage<'_> = serde_json::from_str(&text).expect("a notification");
    let params = round_trip::<Progress>(read.params.expect("params").get());
    assert_eq!(format!(r#"{{"jsonrpc":"2.0","method":"{}","params":{params}}}"#, read.method.expect("a method")), text);
}

#[test]
fn an_event_comes_out_the_same() {
    for (name, text) in golden_files("event.") {
        let read: IncomingMessage<'_> = serde_json::from_str(&text).expect("a notification");
        let params = round_trip::<Event>(read.params.expect("params").get());
        assert_eq!(format!(r#"{{"jsonrpc":"2.0","method":"event","params":{params}}}"#), text, "{name}");
    }
}

#[test]
fn pieces_of_a_turn_come_out_the_same_and_newer_ones_can_be_told() {
    for (name, text) in golden_files("send.progress.") {
        let read: IncomingMessage<'_> = serde_json::from_str(&text).expect("a notification");
        let params = round_trip::<send::Progress>(read.params.expect("params").get());
        assert_eq!(read.method.as_deref(), Some("progress"));
        assert_eq!(format!(r#"{{"jsonrpc":"2.0","method":"progress","params":{params}}}"#), text, "{name}");
    }
    assert!(serde_json::from_str::<send::Progress>(r#"{"id":93,"invented_later":{"a":1}}"#).is_err());
}

#[test]
fn errors_come_out_the_same() {
    for (name, text) in golden_files("error.") {
        if name == "error.kinds.json" {
            continue;
        }
        let read: IncomingMessage<'_> = serde_json::from_str(&text).expect("an answer");
        let id = read.id.map_or("null".to_owned(), |id| id.to_string());
        let error: RpcError = read.error.expect("an error");
        let error = serde_json::to_string(&error).expect("serialises");
        assert_eq!(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#), text, "{name}");
    }
}

#[test]
fn error_kinds_keep_their_names_and_newer_ones_are_unknown() {
    let (_, text) = golden_files("error.kinds.").remove(0);
    let kinds: Vec<ErrorKind> = serde_json::from_str(&text).expect("a list of kinds");
    assert_eq!(serde_json::to_string(&kinds).expect("serialises"), text);
    let known = kinds.iter().filter(|kind| **kind != ErrorKind::Unknown).count();
    assert_eq!(known, kinds.len() - 1, "a kind of the list is no longer known");
    let newer: ErrorKind = serde_json::from_str(r#""invented_later""#).expect("loads");
    assert_eq!(newer, ErrorKind::Unknown);
}

#[test]
fn a_frame_keeps_its_bytes() {
    let bytes = fs::read(golden_dir().join("frame.bin")).expect("frame.bin");
    let mut body = Vec::new();
    assert!(frame::read(&mut &bytes[..], &mut body, frame::MAX_FRAME).expect("one frame"));
    let text = std::str::from_utf8(&body).expect("text");
    assert_eq!(round_trip_request::<daemon::Hello>(text), text);
    let mut again = Vec::new();
    frame::write(&mut again, &body, frame::MAX_FRAME).expect("writes");
    assert_eq!(again, bytes);
}

/// A new method must be added to [`methods`], too.
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
    for name in golden_names() {
        let known = prefixes.iter().any(|prefix| name.starts_with(prefix.as_str())) && name.ends_with(".json");
        assert!(known || name == "frame.bin", "{name} belongs to nothing");
    }
}
