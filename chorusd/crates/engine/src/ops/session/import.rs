//! `session.import.*`: imports transcripts and session files as sessions of an agent.

mod conversation_lookup;
mod exported_conversation;
mod importer;
mod new_session;

use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_base::error::{Error, Result};
use chorus_proto::methods::import::{AddParams, AddResult, BeginParams, BeginResult, CommitParams, CommitResult};
use chorus_runtime::run_blocking;
use chorus_tool_files::ConversationInfo;

pub use conversation_lookup::ConversationKey;
pub use importer::{OnProgress, SessionImporter, Transcript};

use crate::capture::CaptureService;
use crate::ops::agent::AgentResolver;
use crate::ops::import_sink::create_spool;
use crate::ops::transfers::{AllTransfers, TranscriptUpload, Transfer};

/// Buffer size for reading an upload, in bytes.
const READ_BUFFER_BYTES: usize = 1 << 20;

/// Opens an import on a connection.
pub async fn begin(
    agents: &AgentResolver,
    transfers: &AllTransfers,
    home: &Path,
    connection: u64,
    params: BeginParams,
) -> Result<BeginResult> {
    let agent = match params.agent.as_deref() {
        Some(name) => Some(agents.resolve(Some(name)).await?.settings.id),
        None => None,
    };
    let dir = home.join("db");
    let spool = run_blocking(move || create_spool(&dir).map_err(|e| Error::io("cannot start an import", &e))).await?;
    let transcript = TranscriptUpload {
        agent,
        format: params.from,
        file: params.file.unwrap_or_else(|| "the file".into()),
        info: ConversationInfo { project: params.project, title: params.title },
        written_at: params.written_at,
    };
    Ok(BeginResult { import: transfers.transcript_uploads.open(connection, transcript, spool)? })
}

/// Receives the next bytes.
pub async fn add(transfers: &Arc<AllTransfers>, connection: u64, params: AddParams) -> Result<AddResult> {
    let bytes = match (params.data, params.data_base64) {
        (Some(text), None) => text.into_bytes(),
        (None, Some(text)) => STANDARD.decode(text).map_err(|e| {
            Error::invalid(format!("`data_base64` is not base64: {e}"))
                .hint("use the standard base64 alphabet with padding")
        })?,
        _ => return Err(Error::invalid("set either `data` or `data_base64`")),
    };
    let transfers = transfers.clone();
    let received = run_blocking(move || transfers.transcript_uploads.append(connection, params.import, &bytes)).await?;
    Ok(AddResult { received })
}

/// Reads the received transcript and saves its conversations. Unreadable entries are skipped and reported; the import
/// succeeds if there is at least one message.
///
/// # Errors
/// `invalid_params` if nothing could be read, `disk_full`, `storage_failed`.
pub async fn commit(
    importer: &SessionImporter,
    transfers: &AllTransfers,
    capture: &CaptureService,
    connection: u64,
    params: CommitParams,
    progress: OnProgress,
) -> Result<CommitResult> {
    let Transfer { description: TranscriptUpload { agent, format, file, info, written_at }, file: spool, received } =
        transfers.transcript_uploads.remove(connection, params.import)?;
    let transcript = Transcript {
        source: BufReader::with_capacity(READ_BUFFER_BYTES, spool),
        bytes: received,
        name: file,
        info,
        written_at,
        format,
        agent,
        redact: params.redact,
        only_changed: params.skip_known,
        rules: params.as_capture.then(|| Arc::new(capture.rules())),
    };
    importer.import_transcript(transcript, progress).await
}
