//! The text of one session.

use std::fs;

use chorus_proto::methods::export::{ExportFormat, Read, ReadParams};

use super::selected::Selected;
use crate::app::App;
use crate::error::Failure;

/// All of it.
pub fn whole(app: &mut App, session: &Selected, form: ExportFormat) -> Result<Vec<u8>, Failure> {
    own_bytes(session, form).map_or_else(|| asked(app, session, form), Ok)
}

/// All of it, as the daemon writes it.
pub fn asked(app: &mut App, session: &Selected, form: ExportFormat) -> Result<Vec<u8>, Failure> {
    let mut all = Vec::new();
    ask(app, session, form, |_, piece| {
        all.extend_from_slice(piece.as_bytes());
        Ok(())
    })?;
    Ok(all)
}

/// Gives it away piece by piece.
pub fn pieces(
    app: &mut App,
    session: &Selected,
    form: ExportFormat,
    mut take: impl FnMut(&mut App, &str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    match own_bytes(session, form).and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(text) => take(app, &text),
        None => ask(app, session, form, take),
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

fn ask(
    app: &mut App,
    session: &Selected,
    form: ExportFormat,
    mut take: impl FnMut(&mut App, &str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut params = ReadParams { agent: None, session: session.id.to_string(), form, offset: None };
    loop {
        let read = app.call::<Read>(&params)?;
        take(app, &read.data)?;
        match read.next.filter(|next| Some(*next) > params.offset) {
            Some(next) => params.offset = Some(next),
            None => return Ok(()),
        }
    }
}
