//! Whole agents on their way to another home: `agent export` and `agent import`.

mod hostile_archives;
mod name_conflicts;
mod round_trip;

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_proto::methods::agent_transfer::{
    ExportBegin, ExportBeginParams, ExportBeginResult, ExportRead, ExportReadParams, ImportAdd, ImportAddParams,
    ImportBegin, ImportBeginParams, ImportCommit, ImportCommitParams, ImportCommitResult,
};
use chorus_proto::{CallError, Client};

/// The file of an agent.
pub fn export(client: &mut Client, name: &str) -> (Vec<u8>, ExportBeginResult) {
    let made = client.call::<ExportBegin>(&ExportBeginParams { name: name.into() }).expect("agent.export.begin");
    let (mut bytes, mut offset) = (Vec::new(), None);
    loop {
        let piece = client.call::<ExportRead>(&ExportReadParams { export: made.export, offset }).expect("a piece");
        bytes.extend(STANDARD.decode(piece.data_base64).expect("base64"));
        offset = piece.next;
        if offset.is_none() {
            assert_eq!(bytes.len() as u64, made.size);
            return (bytes, made);
        }
    }
}

/// An agent from such a file, sent in pieces.
pub fn import(client: &mut Client, bytes: &[u8], name: Option<&str>) -> Result<ImportCommitResult, CallError> {
    let import = client.call::<ImportBegin>(&ImportBeginParams {})?.import;
    for piece in bytes.chunks(300_000) {
        client.call::<ImportAdd>(&ImportAddParams { import, data_base64: STANDARD.encode(piece) })?;
    }
    client.call::<ImportCommit>(&ImportCommitParams { import, name: name.map(Into::into) })
}

/// What lies below a directory, but for git's own: paths with what is in them.
fn tree(dir: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let entry = entry.expect("an entry");
        let (name, kind) = (entry.file_name().to_string_lossy().into_owned(), entry.file_type().expect("a kind"));
        if name == ".git" {
            continue;
        }
        if kind.is_dir() {
            found.extend(tree(&entry.path()).into_iter().map(|(path, text)| (format!("{name}/{path}"), text)));
        } else if kind.is_symlink() {
            let target = std::fs::read_link(entry.path()).expect("a link");
            found.push((name, format!("-> {}", target.display())));
        } else {
            let text = std::fs::read(entry.path()).expect("a file");
            found.push((name, String::from_utf8_lossy(&text).into_owned()));
        }
    }
    found.sort();
    found
}
