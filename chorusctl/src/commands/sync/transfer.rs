//! Copies one session from a daemon to another, piece by piece.

use chorus_proto::methods::Method as _;
use chorus_proto::methods::export::{ExportFormat, Read, ReadParams};
use chorus_proto::methods::import::{
    Add, AddParams, Begin, BeginParams, Commit, CommitParams, CommitResult, ImportFormat,
};
use chorus_proto::{CallError, Client, ErrorKind};
use uuid::Uuid;

use crate::app::parse_result;
use crate::error::Error;

/// How often to start over if the session changes while it is read.
const MAX_ATTEMPTS: u32 = 5;

/// Copies a session, to `agent` or else to the agent of its source.
pub(super) fn copy_session(
    from: &mut Client,
    to: &mut Client,
    session: Uuid,
    agent: Option<String>,
) -> Result<CommitResult, Error> {
    let mut attempt = 1;
    loop {
        let params = BeginParams { agent: agent.clone(), from: ImportFormat::Chorus, ..BeginParams::default() };
        let import = to.call::<Begin>(&params)?.import;
        match copy_text(from, to, session, import) {
            // Its summary or tags changed between two pieces.
            Err(CallError::Rpc(error)) if error.kind() == ErrorKind::Conflict && attempt < MAX_ATTEMPTS => attempt += 1,
            copied => {
                copied?;
                let params = CommitParams { import, redact: false, skip_known: true, as_capture: true };
                return parse_result(&to.call_raw(Commit::NAME, &params, &mut |_| {})?);
            }
        }
    }
}

fn copy_text(from: &mut Client, to: &mut Client, session: Uuid, import: u64) -> Result<(), CallError> {
    let mut params = ReadParams { session: session.to_string(), form: ExportFormat::Json, ..ReadParams::default() };
    loop {
        let read = from.call::<Read>(&params)?;
        to.call::<Add>(&AddParams { import, data: Some(read.data), data_base64: None })?;
        match read.next.filter(|next| Some(*next) > params.offset) {
            Some(next) => (params.offset, params.fingerprint) = (Some(next), read.fingerprint),
            None => return Ok(()),
        }
    }
}
