//! Reads the text of one session.

use std::fs;

use chorus_proto::ErrorKind;
use chorus_proto::methods::export::{ExportFormat, ExportTarget, Read, ReadParams};

use super::selected_session::ExportSession;
use super::session_file_check;
use crate::app::App;
use crate::error::Error;

/// The form of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextForm {
    pub form: ExportFormat,
    /// Leaves out the block of data at the end of Markdown.
    pub plain: bool,
    /// Session files can be read here: the daemon is that of this machine.
    pub has_files: bool,
}

/// How the name of a compressed session file ends. Only the daemon reads those.
const COMPRESSED: &str = ".gz";

/// How often to start over if the session changes while it is read.
const MAX_READ_ATTEMPTS: u32 = 5;

/// Returns the text of a session: its file if possible, otherwise from the daemon.
pub(super) fn read_session(app: &mut App, session: &ExportSession, form: TextForm) -> Result<Vec<u8>, Error> {
    read_session_file(session, form).map_or_else(|| fetch_session(app, session, form), Ok)
}

/// Fetches the text of a session from the daemon.
pub(super) fn fetch_session(app: &mut App, session: &ExportSession, form: TextForm) -> Result<Vec<u8>, Error> {
    let TextForm { form, plain, .. } = form;
    let mut all = String::new();
    fetch_with(app, session, ReadParams { form, plain, ..ReadParams::default() }, |_, piece| {
        match piece {
            Some(piece) => all.push_str(piece),
            None => all.clear(),
        }
        Ok(())
    })?;
    Ok(all.into_bytes())
}

/// Fetches the text of a session from the daemon, piece by piece. `take` gets each piece, and `None` if the text starts
/// over.
pub fn fetch_pieces(
    app: &mut App,
    session: &ExportSession,
    form: ExportFormat,
    target: Option<ExportTarget>,
    mut take: impl FnMut(Option<&str>) -> Result<(), Error>,
) -> Result<(), Error> {
    fetch_with(app, session, ReadParams { form, target, ..ReadParams::default() }, |_, piece| take(piece))
}

/// Fetches the JSON of a session from the daemon, and prints it piece by piece.
///
/// # Errors
/// The session changed after a piece of it was printed.
pub(super) fn print_pieces(app: &mut App, session: &ExportSession) -> Result<(), Error> {
    let params = ReadParams { form: ExportFormat::Json, ..ReadParams::default() };
    let mut is_begun = false;
    fetch_with(app, session, params, |app, piece| match piece {
        Some(piece) => {
            is_begun |= !piece.is_empty();
            app.stdout.json(piece)
        }
        None if is_begun => {
            Err(Error::failed("the session changed while it was printed").with_hint("run the command again"))
        }
        None => Ok(()),
    })
}

fn fetch_with(
    app: &mut App,
    session: &ExportSession,
    form: ReadParams,
    mut take: impl FnMut(&mut App, Option<&str>) -> Result<(), Error>,
) -> Result<(), Error> {
    // The live conversation has an id only once it is saved.
    let (agent, id) = match session.is_live() {
        true => {
            let conversation = session.conversation.as_ref().map_or("", |conversation| &conversation.name);
            (Some(session.agent_name.clone()), format!("@{conversation}"))
        }
        false => (None, session.id.to_string()),
    };
    let first = ReadParams { agent, session: id, ..form };
    let (mut params, mut tries) = (first.clone(), MAX_READ_ATTEMPTS);
    loop {
        let read = match app.call::<Read>(&params) {
            // The session changed between two pieces, for example its summary or tags: start over.
            Err(error) if error.is_kind(ErrorKind::Conflict) && tries > 1 => {
                tries -= 1;
                params = first.clone();
                take(app, None)?;
                continue;
            }
            answered => answered?,
        };
        take(app, Some(&read.data))?;
        match read.next.filter(|next| Some(*next) > params.offset) {
            Some(next) => (params.offset, params.fingerprint) = (Some(next), read.fingerprint),
            None => return Ok(()),
        }
    }
}

/// Reads the session file directly, if it is readable here, has the form that Chorus writes and is not damaged. Others, for
/// example of schema 1, must be converted by the daemon, which also says what is wrong with a damaged one.
pub(super) fn read_session_file(session: &ExportSession, form: TextForm) -> Option<Vec<u8>> {
    if !form.has_files || form.form != ExportFormat::Json || !session.available {
        return None;
    }
    if session.file_path.ends_with(COMPRESSED) {
        return None;
    }
    let bytes = fs::read(&session.file_path).ok()?;
    session_file_check::is_intact(&bytes, session.id).then_some(bytes)
}
