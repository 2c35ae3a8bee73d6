//! The operation `session.scrub`.

use std::path::Path;
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_catalog::{SessionPlacement, SessionRow};
use chorus_proto::methods::session::{ScrubParams, ScrubResult};
use chorus_proto::{Message, Session, SessionHeader};
use chorus_redact::Redactor;
use chorus_runtime::run_blocking;
use chorus_session::slug;
use chorus_store::index_cache::IndexedFile;
use chorus_store::message_spool::{MessageSpool, SpooledMessages};
use chorus_store::session_files;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{SessionTrash, purge};
use crate::agent::session_save::{SessionTarget, write_session};
use crate::ops::agent::AgentResolver;
use crate::ops::redact_import::ImportRedactor;
use crate::ops::secret_counts::SecretCounts;

/// How often a session is read again because it grew meanwhile.
const MAX_READS: u32 = 5;

/// A session without its secrets, and what they were.
#[derive(Debug)]
struct CleanSession {
    header: SessionHeader,
    body: Arc<SpooledMessages>,
    secrets: SecretCounts,
    /// Number of messages with a secret.
    messages: u64,
    /// A name without secrets, if the old one may be made of one.
    slug: Option<String>,
}

/// Writes a copy of a session without its secrets, and then deletes the session for good, as `session.purge` does. The copy has an id that
/// follows from that of the session, so that a scrub that was interrupted is continued. An imported conversation is continued by the copy.
///
/// # Errors
/// `session_not_found`, `corrupt_session`, `disk_full`, `storage_failed`; the session is then unchanged, or there is a copy besides it.
pub async fn scrub(
    agents: &AgentResolver,
    trash: &SessionTrash,
    redactor: &Arc<Redactor>,
    params: ScrubParams,
) -> Result<ScrubResult> {
    let target = agents.conversation_for_sessions(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let said = params.agent.is_some() && !params.own;
    let mut row = trash.sessions.resolve(&target, said, &params.session, "session scrub NAME").await?;
    for _ in 0..MAX_READS {
        let clean = clean_copy(trash, redactor, &row).await?;
        let live_in = purge::find_live(trash, row.header.id);
        let CleanSession { secrets, messages, .. } = &clean;
        let mut result = ScrubResult {
            id: row.header.id,
            session_id: row.header.session_id.clone(),
            secrets: secrets.to_list(),
            messages: *messages,
            scrubbed: None,
            live_in,
        };
        if params.dry_run || secrets.is_empty() {
            return Ok(result);
        }
        // Contexts that refer to it load it under the locks, where no file can be copied here.
        trash.fetch_file(&row).await?;
        let _no_restores = trash.sessions_lock.write().await;
        let _no_changes = trash.store.files.change_lock.lock().await;
        let now = trash.reload_row(row.clone()).await?;
        if now.sha256 != row.sha256 || now.file_stamp != row.file_stamp {
            row = now;
            continue;
        }
        let of = now.header.clone();
        result.scrubbed = Some(write_copy(trash, &now, clean).await?);
        trash.store.catalog.imported_usage.move_to(of.id, copy_id(of.id)).await?;
        purge::purge_row(trash, now).await?;
        purge::erase_copies(trash, of.id, of.agent_id).await?;
        return Ok(result);
    }
    Err(Error::busy())
}

/// Returns the id of the session that replaces another.
fn copy_id(original: Uuid) -> Uuid {
    let hash = Sha256::new().chain_update(b"scrubbed").chain_update(original).finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// Reads a session, and makes a copy of its header and its messages without secrets.
async fn clean_copy(trash: &SessionTrash, redactor: &Arc<Redactor>, row: &SessionRow) -> Result<CleanSession> {
    let file = trash.sessions.open_messages(row).await?;
    let (redactor, header, dir) = (redactor.clone(), row.header.clone(), trash.home.join(chorus_store::DB_DIR));
    run_blocking(move || clean_messages(&file, &redactor, header, &dir)).await
}

/// The blocking part of [`clean_copy`].
fn clean_messages(file: &IndexedFile, redactor: &Redactor, header: SessionHeader, dir: &Path) -> Result<CleanSession> {
    let failed = |e: std::io::Error| Error::io("cannot copy the session", &e);
    let search = ImportRedactor { redactor, redact: true };
    let (mut body, mut secrets, mut messages) = (MessageSpool::new(dir).map_err(failed)?, SecretCounts::default(), 0);
    let mut first = None;
    let mut reader = file.messages_from(0);
    let (mut number, mut is_first_clean) = (0_u64, true);
    while let Some(message) = reader.read()?.map_err(|e| {
        Error::new(chorus_proto::ErrorKind::CorruptSession, format!("the session {} {e}", header.session_id))
            .hint("it was left unchanged; repair it or restore a backup")
    })? {
        let json = std::str::from_utf8(message.json()).unwrap_or_default();
        let found = redactor.find_secrets_in_json(json);
        let clean = if found.is_empty() {
            None
        } else {
            let parsed: Message = serde_json::from_str(json).map_err(|e| Error::internal(e.to_string()))?;
            search.redact_message(&parsed, json).0.map(|(_, bytes)| bytes)
        };
        if first.is_none() {
            let bytes = clean.as_deref().unwrap_or(message.json());
            first = serde_json::from_slice::<Message>(bytes).ok().map(|message| slug::from_content(&message.content));
            is_first_clean = found.is_empty();
        }
        messages += u64::from(!found.is_empty());
        secrets.add(found, Some(number + 1));
        body.append(clean.as_deref().unwrap_or(message.json())).map_err(failed)?;
        number += 1;
    }
    let (header, in_header) = clean_header(header, redactor)?;
    let is_name_clean = is_first_clean && in_header.is_empty();
    secrets.merge(in_header);
    let of_title = header.description.as_deref().and_then(slug::from_description);
    let slug = of_title.or(first).filter(|_| !is_name_clean);
    Ok(CleanSession { header, body: Arc::new(body.finish().map_err(failed)?), secrets, messages, slug })
}

/// Redacts the texts of a header; its ids and its name stay.
fn clean_header(header: SessionHeader, redactor: &Redactor) -> Result<(SessionHeader, SecretCounts)> {
    let json = serde_json::to_string(&header).map_err(|e| Error::internal(e.to_string()))?;
    let mut secrets = SecretCounts::default();
    secrets.add(redactor.find_secrets_in_json(&json), None);
    if secrets.is_empty() {
        return Ok((header, secrets));
    }
    let clean: SessionHeader =
        serde_json::from_str(&redactor.redact_json(&json).0).map_err(|e| Error::internal(e.to_string()))?;
    let SessionHeader { id, session_id, agent_id, agent_name, source, .. } = header;
    let kept = source.map(|of| chorus_proto::SessionSource { project: clean.source.and_then(|of| of.project), ..of });
    Ok((SessionHeader { id, session_id, agent_id, agent_name, source: kept, ..clean }, secrets))
}

/// Writes the copy, unless an earlier scrub has written it already.
async fn write_copy(trash: &SessionTrash, row: &SessionRow, clean: CleanSession) -> Result<Session> {
    let id = copy_id(row.header.id);
    if let Some(copy) = trash.store.catalog.sessions.get(id).await? {
        if copy.sha256 == clean.body.sha256 {
            return trash.sessions.describe(copy).await;
        }
        // The session has grown since that scrub.
        purge::purge_row(trash, copy).await?;
        purge::erase_copies(trash, id, row.header.agent_id).await?;
    }
    let entry = trash.agents.by_id(row.header.agent_id).ok_or_else(Error::agent_destroyed)?;
    let settings = entry.settings.clone();
    let CleanSession { mut header, body, slug, .. } = clean;
    if let Some(source) = &mut header.source {
        // The newest revision is the one that a later import continues, and the deletion of an earlier one does not keep it away.
        source.revision += 1;
        source.redacted = true;
        source.messages_sha256.clone_from(&body.sha256);
    }
    header.id = id;
    let wanted = slug.map_or_else(|| header.session_id.clone(), |slug| slug::session_id(header.started_at, &slug));
    let taken_names = trash.store.catalog.sessions.names_with_base(settings.id, wanted.clone()).await?;
    let make = move |dir: &Path, session_id: &str| {
        let header = SessionHeader { session_id: session_id.to_owned(), ..header };
        let staged = session_files::stage_spooled(dir, &header, &body)?;
        Ok((header, staged))
    };
    let place = SessionTarget {
        name: wanted,
        taken_names,
        batched: false,
        summary_request: None,
        order: SessionPlacement::AtOwnPlace,
        usage: None,
    };
    let copy = write_session(&trash.store, &settings, place, make, || async { Ok(()) }).await?;
    if let Err(failure) = trash.store.catalog.sessions.touch(id, row.last_used_at).await {
        tracing::warn!(session = %id, %failure, "cannot record the last use of a scrubbed session");
    }
    Ok(copy)
}
