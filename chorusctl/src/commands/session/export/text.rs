//! The text of one session.

use std::fs;

use chorus_proto::methods::export::{ExportFormat, Read, ReadParams};
use chorus_proto::{CallError, ErrorKind};

use super::selected::Selected;
use crate::app::App;
use crate::error::Failure;

/// How often the text of a session that changes meanwhile is begun.
const TRIES: u32 = 5;

/// All of it.
pub fn whole(app: &mut App, session: &Selected, form: ExportFormat) -> Result<Vec<u8>, Failure> {
    own_bytes(session, form).map_or_else(|| asked(app, session, form), Ok)
}

/// All of it, as the daemon writes it.
pub fn asked(app: &mut App, session: &Selected, form: ExportFormat) -> Result<Vec<u8>, Failure> {
    let id = session.id.to_string();
    let first = ReadParams { agent: None, session: id, form, offset: None, fingerprint: None };
    let (mut params, mut all, mut tries) = (first.clone(), String::new(), TRIES);
    loop {
        let read = match app.client()?.call::<Read>(&params) {
            // It changed between two pieces: a summary came, or a tag.
            Err(CallError::Rpc(error)) if error.kind() == ErrorKind::Conflict && tries > 1 => {
                tries -= 1;
                params = first.clone();
                all.clear();
                continue;
            }
            answered => answered?,
        };
        all.push_str(&read.data);
        match read.next.filter(|next| Some(*next) > params.offset) {
            Some(next) => (params.offset, params.fingerprint) = (Some(next), read.fingerprint),
            None => return Ok(all.into_bytes()),
        }
    }
}

/// The session file, where this machine and this user can read it and it is as Chorus writes it. Anything else, one of
/// schema 1 for example, the daemon reads and writes anew.
pub fn own_bytes(session: &Selected, form: ExportFormat) -> Option<Vec<u8>> {
    let bytes = match form {
        ExportFormat::Json => fs::read(&session.file_path).ok()?,
        ExportFormat::Jsonl | ExportFormat::Md | ExportFormat::Html => return None,
    };
    let start = format!("{{\n  \"schema\": 2,\n  \"id\": \"{}\",\n", session.id);
    let ours = session.available && bytes.starts_with(start.as_bytes()) && bytes.ends_with(b"\n  ]\n}\n");
    ours.then_some(bytes)
}
