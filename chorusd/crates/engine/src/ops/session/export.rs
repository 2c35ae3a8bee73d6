//! The operations `session.export.*`.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_catalog::{SessionQuery, ToolExport, ToolExportTable};
use chorus_clock::Clock;
use chorus_config::Config;
use chorus_proto::methods::export::{ExportFormat, ExportTarget, ReadParams, ReadResult, SelectParams, SelectResult};
use chorus_proto::{ErrorKind, SessionHeader, Trigger};
use chorus_runtime::run_blocking;
use chorus_session::export::{ChunkWriter, Export, ImportedSession, MessageList, ParentSession};
use chorus_session::stored_message::StoredMessage;
use chorus_session::{FormatError, Selector};
use jiff::Timestamp;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::export_offsets::{ExportPosition, ExportPositions};
use super::get::corrupt_error;
use super::message_source::MessageSource;
use super::open_session::OpenSession;
use crate::capture::{conversation_hash, identity};
use crate::ops::agent::AgentResolver;
use crate::ops::context::history::parse_since;
use crate::ops::session::SessionReader;

/// The limit on sessions in a page, far below what fits in a frame.
const MAX_PAGE: u64 = 1000;

/// The limit in bytes of a piece of text in a reply.
const MAX_PIECE_BYTES: usize = 4 << 20;

/// The limit on sessions of a chain in which the imported one is searched for.
const MAX_LINKS: usize = 1000;

/// Returns a page of the selected sessions.
pub async fn select(
    agents: &AgentResolver,
    sessions: &SessionReader,
    clock: &Clock,
    params: SelectParams,
) -> Result<SelectResult> {
    let offset = params.offset.unwrap_or(0);
    if params.session.is_empty() {
        return select_of_agents(agents, sessions, clock, params, offset).await;
    }
    if params.all_agents || params.since.is_some() {
        return Err(Error::invalid("`session` cannot be combined with `all_agents` or `since`"));
    }
    let (agent, conversation) = (params.agent.as_deref(), params.conversation.as_deref());
    let (by, said, command) = (&Requester::Owner, params.agent.is_some(), "export NAME");
    let mut selected = Vec::new();
    let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
    for session in params.session.iter().skip(skipped).take(MAX_PAGE as usize) {
        let target = sessions.target_to_read(agent, conversation, session).await?;
        selected.push(match Selector::parse(session) {
            Selector::Live | Selector::LiveOf(_) => {
                let live = sessions.open_as(by, &target, said, session, command).await?;
                sessions.describe_open(&live).await?
            }
            _ => {
                let row = sessions.resolve_to_read(by, &target, said, session, command).await?;
                sessions.describe(row).await?
            }
        });
    }
    let end = offset.saturating_add(selected.len() as u64);
    let next = (end < params.session.len() as u64 && !selected.is_empty()).then_some(end);
    Ok(SelectResult { sessions: selected, next })
}

async fn select_of_agents(
    agents: &AgentResolver,
    sessions: &SessionReader,
    clock: &Clock,
    params: SelectParams,
    offset: u64,
) -> Result<SelectResult> {
    let agent = match params.all_agents {
        true => None,
        false => Some(agents.resolve_for_sessions(params.agent.as_deref()).await?.settings.id),
    };
    let also = if params.agent.is_none() { sessions.imported_by_others(agent) } else { Vec::new() };
    let since = params.since.as_deref().map(|text| parse_since(text, clock.now())).transpose()?;
    let listing = SessionQuery { agent, also, since, offset, limit: MAX_PAGE, ..SessionQuery::default() };
    let (rows, total) = sessions.table.list(listing).await?;
    let end = offset.saturating_add(rows.len() as u64);
    let next = (end < total && !rows.is_empty()).then_some(end);
    Ok(SelectResult { sessions: sessions.describe_all(rows).await?, next })
}

/// Returns a piece of a session as text.
///
/// # Errors
/// `session_not_found`, `ambiguous`, `denied`, `corrupt_session`, `invalid_params`, `conflict` if the session has
/// changed since the piece that the fingerprint came with.
pub async fn read(
    sessions: &SessionReader,
    exports: &Arc<dyn ToolExportTable>,
    positions: &ExportPositions,
    config: &Config,
    params: ReadParams,
) -> Result<ReadResult> {
    let row = match Uuid::try_parse(&params.session) {
        // An id from `select` is accepted for any agent, because reading does not copy anything to another agent.
        Ok(id) if params.session.len() == 36 => sessions.table.get(id).await?,
        _ => None,
    };
    let open = match row {
        Some(row) => sessions.open_row(row).await?,
        None => {
            let (agent, conversation) = (params.agent.as_deref(), params.conversation.as_deref());
            let target = sessions.target_to_read(agent, conversation, &params.session).await?;
            let said = params.agent.is_some();
            sessions.open_as(&Requester::Owner, &target, said, &params.session, "export NAME").await?
        }
    };
    let written = params.target.as_ref().map(|target| {
        let (program, conversation) = identity(&open.header);
        ToolExport {
            conversation: conversation_hash(params.form.as_str(), &target.id),
            session: (!open.is_live()).then_some(open.header.id),
            origin: conversation_hash(&program, &conversation),
            last_message_at: open.header.source.as_ref().map_or(Timestamp::MIN, |source| source.ended_at),
        }
    });
    let Piece { result, last_message_at } = read_piece(sessions, positions, config, open, params).await?;
    // Before the last piece, so that capture does not find the conversation first.
    if let (Some(written), Some(last)) = (written, last_message_at) {
        let last_message_at = written.last_message_at.max(last);
        exports.record(ToolExport { last_message_at, ..written }).await?;
    }
    Ok(result)
}

/// Returns a piece of an open session as text; fails like [`read`].
pub async fn read_open(
    sessions: &SessionReader,
    positions: &ExportPositions,
    config: &Config,
    open: OpenSession,
    params: ReadParams,
) -> Result<ReadResult> {
    Ok(read_piece(sessions, positions, config, open, params).await?.result)
}

/// A piece of a session as text.
struct Piece {
    result: ReadResult,
    /// The time of the last message, if the text ends here.
    last_message_at: Option<Timestamp>,
}

async fn read_piece(
    sessions: &SessionReader,
    positions: &ExportPositions,
    config: &Config,
    open: OpenSession,
    params: ReadParams,
) -> Result<Piece> {
    if params.plain && params.form != ExportFormat::Md {
        return Err(Error::invalid("`plain` requires the form `md`"));
    }
    check_target(&params)?;
    // The next pieces go on with the parent that the first one found.
    let known = params.fingerprint.as_deref().and_then(|text| positions.parent_of(text));
    let parent = match known {
        Some(parent) => parent,
        None => find_parent(sessions, &open.header).await?,
    };
    let fingerprint = text_fingerprint(&open, parent.as_ref(), params.target.as_ref());
    if params.fingerprint.as_ref().is_some_and(|before| *before != fingerprint) {
        let failure = Error::new(ErrorKind::Conflict, "the session changed during the export");
        return Err(failure.hint("start the export again"));
    }
    if params.fingerprint.is_none() {
        positions.remember_parent(&fingerprint, parent.clone());
    }
    let session = sessions.describe_open(&open).await?;
    let offset = params.offset.unwrap_or(0);
    let room = (config.max_frame / 2).min(MAX_PIECE_BYTES);
    let of = (fingerprint.clone(), params.form, params.plain);
    let begun = positions.before(&of, offset);
    let (data, next, reached, last_message_at) = run_blocking(move || {
        let time_of = |number| -> Result<Option<Timestamp>> {
            let message = open.messages.messages_from(number).read()?;
            Ok(message.and_then(|message| Some(message.to_message().ok()?.timestamp)))
        };
        let text = Export {
            header: &open.header,
            parent: parent.as_ref(),
            first_at: time_of(0)?,
            form: params.form,
            plain: params.plain,
            live: open.is_live(),
            target: params.target.as_ref(),
        };
        let mut piece = ChunkWriter::new(offset - begun.offset, room);
        let reached = write_piece(&mut piece, &text, &open.messages, begun)?;
        let (data, next) = piece
            .finish(offset)
            .ok_or_else(|| Error::invalid("`offset` is not a value of `next`").hint("start without `offset`"))?;
        let last_message_at = match (next, open.messages.count().checked_sub(1)) {
            (None, Some(last)) => time_of(last)?,
            _ => None,
        };
        Ok((data, next, reached, last_message_at))
    })
    .await?;
    positions.remember(of, reached);
    let result = ReadResult { session, data, next, fingerprint: Some(fingerprint) };
    Ok(Piece { result, last_message_at })
}

/// Checks that there is a target if, and only if, the format needs one.
fn check_target(params: &ReadParams) -> Result<()> {
    let form = params.form.as_str();
    match &params.target {
        None if params.form.needs_target() => Err(Error::invalid(format!("the form `{form}` requires `target`"))),
        Some(_) if !params.form.needs_target() => Err(Error::invalid(format!("the form `{form}` takes no `target`"))),
        Some(target) if !is_target_id(params.form, &target.id) => {
            Err(Error::invalid(format!("`target.id` is not an id of a conversation in the form `{form}`")))
        }
        Some(target) if !target.directory.starts_with('/') => {
            Err(Error::invalid("`target.directory` is not an absolute path"))
        }
        _ => Ok(()),
    }
}

fn is_target_id(form: ExportFormat, id: &str) -> bool {
    match form {
        ExportFormat::Opencode => {
            let digits = id.strip_prefix("ses_").unwrap_or_default();
            (1..=64).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_alphanumeric())
        }
        _ => id.len() == 36 && Uuid::try_parse(id).is_ok(),
    }
}

/// The messages of a session in the form that an export reads. Remembers the error of the last read.
struct ExportMessages<'a> {
    source: &'a MessageSource,
    failed: RefCell<Option<Error>>,
}

impl MessageList for ExportMessages<'_> {
    fn count(&self) -> u64 {
        self.source.count()
    }

    fn iter_from(&self, number: u64) -> Box<dyn Iterator<Item = io::Result<StoredMessage>> + '_> {
        let mut reader = self.source.messages_from(number);
        Box::new(std::iter::from_fn(move || {
            let read = reader.read().map_err(|failure| {
                *self.failed.borrow_mut() = Some(failure);
                io::ErrorKind::Other.into()
            });
            read.transpose()
        }))
    }
}

/// Writes a text from a position on, until the piece is full or the text ends. Returns the last position before that.
fn write_piece(
    piece: &mut ChunkWriter,
    text: &Export<'_>,
    messages: &MessageSource,
    begun: ExportPosition,
) -> Result<ExportPosition> {
    let source = ExportMessages { source: messages, failed: RefCell::new(None) };
    let (mut progress, begun_at) = (begun.progress.clone(), begun.offset);
    let mut reached = begun;
    // A full piece refuses more, which is no error.
    loop {
        if progress.frames > 0 {
            let mut remaining = messages.messages_from(progress.messages);
            loop {
                let Some(passed) = piece.total_written() else { return Ok(reached) };
                reached = ExportPosition { offset: begun_at + passed, progress: progress.clone() };
                let Some(message) = remaining.read()? else { break };
                let written = text.write_message(piece, &mut progress, &source, &message);
                if let Some(failure) = source.failed.take() {
                    return Err(failure);
                }
                if let Err(error) = written
                    && piece.total_written().is_some()
                {
                    let number = reached.progress.messages + 1;
                    return Err(corrupt_error(
                        &text.header.session_id,
                        &FormatError::Message { number, reason: error.to_string() },
                    ));
                }
            }
        }
        let written = text.write_frame(piece, &mut progress, &source);
        if let Some(failure) = source.failed.take() {
            return Err(failure);
        }
        if let Err(error) = written
            && piece.total_written().is_some()
        {
            return Err(corrupt_error(&text.header.session_id, &FormatError::Json(error.to_string())));
        }
        if progress.frames == text.frames() || piece.total_written().is_none() {
            return Ok(reached);
        }
    }
}

/// Hashes everything that determines the text of a session, in any format.
fn text_fingerprint(open: &OpenSession, parent: Option<&ParentSession>, target: Option<&ExportTarget>) -> String {
    let mut hash = Sha256::new();
    hash.update(&open.messages_hash);
    // The header includes what the catalog knows better than the file.
    hash.update(serde_json::to_vec(&open.header).unwrap_or_default());
    // An array of fixed order: names in the code may change without making exports start again.
    let parent = parent.map(|parent| {
        let import = parent.import.as_ref();
        let import = import.map(|import| json!([import.session_id, import.agent_name, import.model]));
        json!([parent.session_id, parent.queries, parent.tokens, import])
    });
    hash.update(json!(parent).to_string());
    if let Some(ExportTarget { id, directory, model, written_at }) = target {
        hash.update(json!([id, directory, model, written_at]).to_string());
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the parent of the session, if it is still known.
async fn find_parent(sessions: &SessionReader, header: &SessionHeader) -> Result<Option<ParentSession>> {
    let Some(id) = header.parent_id else { return Ok(None) };
    let Some(row) = sessions.table.get(id).await? else { return Ok(None) };
    Ok(Some(ParentSession {
        queries: row.header.query_count,
        tokens: row.header.token_estimate,
        session_id: row.header.session_id.clone(),
        import: find_import(sessions, row.header).await?,
    }))
}

/// Returns the newest imported session among `header` and those that it continues.
async fn find_import(sessions: &SessionReader, mut header: SessionHeader) -> Result<Option<ImportedSession>> {
    for _ in 0..MAX_LINKS {
        if header.trigger == Trigger::Import {
            let SessionHeader { session_id, agent_name, model, .. } = header;
            return Ok(Some(ImportedSession { session_id, agent_name, model }));
        }
        let Some(id) = header.parent_id else { return Ok(None) };
        let Some(row) = sessions.table.get(id).await? else { return Ok(None) };
        header = row.header;
    }
    Ok(None)
}
