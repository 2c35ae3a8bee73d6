//! The operation `session.scrub`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_catalog::{SessionPlacement, SessionRow};
use chorus_proto::methods::session::{ScrubParams, ScrubResult};
use chorus_proto::{ErrorKind, Message, Session, SessionHeader};
use chorus_redact::Redactor;
use chorus_runtime::run_blocking;
use chorus_session::slug;
use chorus_store::index_cache::IndexedFile;
use chorus_store::message_spool::{MessageSpool, SpooledMessages};
use chorus_store::{session_files, session_form};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{SessionTrash, purge};
use crate::agent::session_save::{SessionTarget, write_session};
use crate::ops::agent::AgentResolver;
use crate::ops::redact_import::ImportRedactor;
use crate::ops::secret_counts::SecretCounts;

/// How often a session is read again because it grew meanwhile.
const MAX_READS: u32 = 5;

/// The highest suffix of a name that an unfinished copy may have.
const MAX_SUFFIX: u32 = 9;

/// How often and in what intervals the catalog is asked for a copy whose file is there.
const MAX_ADOPTION_POLLS: u32 = 100;
const ADOPTION_POLL: Duration = Duration::from_millis(50);

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

impl CleanSession {
    /// Returns the name that the copy gets if it is free.
    fn wanted_name(&self) -> String {
        let header = &self.header;
        self.slug.as_ref().map_or_else(|| header.session_id.clone(), |slug| slug::session_id(header.started_at, slug))
    }
}

/// Writes a copy of a session without its secrets, and then permanently deletes the session, as `session.purge` does. The copy has an id that
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
    let scrubbed = replace(agents, trash, redactor, params).await?;
    let erasing = scrubbed.scrubbed.is_some() && !purge::erase(trash, scrubbed.id).await;
    Ok(ScrubResult { erasing, ..scrubbed })
}

/// Does everything but overwriting what the search index and the databases still hold.
async fn replace(
    agents: &AgentResolver,
    trash: &SessionTrash,
    redactor: &Arc<Redactor>,
    params: ScrubParams,
) -> Result<ScrubResult> {
    let target = agents.conversation_for_sessions(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let said = params.agent.is_some() && !params.own;
    let found = trash.sessions.resolve(&target, said, &params.session, "session scrub NAME").await;
    let mut row = match found {
        Ok(row) => row,
        Err(failure) if failure.kind == ErrorKind::SessionNotFound && !params.dry_run => {
            return finish_interrupted(trash, target.key.agent, &params.session).await?.ok_or(failure);
        }
        Err(failure) => return Err(failure),
    };
    for _ in 0..MAX_READS {
        let clean = clean_copy(trash, redactor, &row).await?;
        let live_in = purge::find_live(trash, row.header.id);
        let CleanSession { secrets, messages, .. } = &clean;
        let mut result = ScrubResult {
            id: row.header.id,
            short_id: trash.sessions.table.short_ids(vec![row.header.id]).await?.pop(),
            session_id: row.header.session_id.clone(),
            secrets: secrets.to_list(),
            messages: *messages,
            scrubbed: None,
            live_in,
            erasing: false,
        };
        if params.dry_run || secrets.is_empty() {
            return Ok(result);
        }
        // Contexts that refer to it load it under the locks, where no file can be copied here.
        trash.fetch_file(&row).await?;
        await_adoption(trash, &row, &clean).await?;
        let _no_restores = trash.sessions_lock.write().await;
        let no_changes = trash.store.files.change_lock.lock().await;
        let now = trash.reload_row(row.clone()).await?;
        if now.sha256 != row.sha256 || now.file_stamp != row.file_stamp {
            row = now;
            continue;
        }
        // Under the locks, so that neither an import nor a deletion finds both, or the copy alone.
        let of = now.header.clone();
        result.scrubbed = Some(write_copy(trash, &now, clean).await?);
        trash.store.catalog.imported_usage.move_to(of.id, copy_id(of.id)).await?;
        trash.store.catalog.tool_exports.move_to(of.id, copy_id(of.id)).await?;
        purge::purge_row(trash, now).await?;
        drop(no_changes);
        finish(trash, of.id, of.agent_id).await?;
        return Ok(result);
    }
    Err(Error::busy())
}

/// Completes a scrub once the row of the original is deleted: its children continue the copy, and no file has its content.
async fn finish(trash: &SessionTrash, original: Uuid, agent: Uuid) -> Result<()> {
    move_children(trash, original).await?;
    let _no_changes = trash.store.files.change_lock.lock().await;
    purge::erase_copies(trash, original, agent).await
}

/// Makes the sessions that continue a session, or were branched from it, continue its copy.
async fn move_children(trash: &SessionTrash, original: Uuid) -> Result<()> {
    let agents = trash.agents.all().into_iter().map(|entry| entry.settings.id).collect();
    let rows = trash.store.catalog.sessions.lineage(agents).await?;
    let children: Vec<Uuid> =
        rows.into_iter().filter(|row| row.parent_id == Some(original)).map(|row| row.id).collect();
    for child in trash.store.catalog.sessions.get_all(children).await? {
        let dir = trash.sessions.agent_dir(&child.header).await?;
        let change = move |header: &mut SessionHeader| header.parent_id = Some(copy_id(original));
        // One whose file cannot be read keeps its parent, which is only not found then.
        if let Err(failure) = trash.store.update_session_header(child.header.id, dir, change).await {
            tracing::warn!(session = child.header.session_id, %failure, "cannot record the new parent of a session");
        }
    }
    Ok(())
}

/// Waits until the catalog has the copy whose file a crash has left without a row, which happens soon after the start.
///
/// # Errors
/// `busy` if it does not.
async fn await_adoption(trash: &SessionTrash, row: &SessionRow, clean: &CleanSession) -> Result<()> {
    let id = copy_id(row.header.id);
    let dir = trash.sessions.agent_dir(&row.header).await?;
    for _ in 0..MAX_ADOPTION_POLLS {
        if trash.store.catalog.sessions.get(id).await?.is_some() {
            return Ok(());
        }
        let (dir, wanted) = (dir.clone(), clean.wanted_name());
        if !run_blocking(move || Ok(has_unfinished(&dir, &wanted, id))).await? {
            return Ok(());
        }
        tokio::time::sleep(ADOPTION_POLL).await;
    }
    Err(Error::busy())
}

/// Completes a scrub that was interrupted after the row of the session was deleted: then its file is in the trash, and there is a copy. Returns
/// `None` if it is not so. What the secrets were is not known any more.
async fn finish_interrupted(trash: &SessionTrash, agent: Uuid, session: &str) -> Result<Option<ScrubResult>> {
    let Some((id, session_id)) = purge::find_in_trash(&trash.home, agent, session).await? else { return Ok(None) };
    let Some(copy) = trash.store.catalog.sessions.get(copy_id(id)).await? else { return Ok(None) };
    let live_in = purge::find_live(trash, id);
    let _no_restores = trash.sessions_lock.write().await;
    // The database may still hold its content.
    trash.store.catalog.sessions.purge(id).await?;
    finish(trash, id, agent).await?;
    let scrubbed = Some(trash.sessions.describe(copy).await?);
    let (short_id, secrets) = Default::default();
    Ok(Some(ScrubResult { id, short_id, session_id, secrets, messages: 0, scrubbed, live_in, erasing: false }))
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
    let header = trash.sessions.header_with_notes(row).await?;
    let (redactor, dir) = (redactor.clone(), trash.home.join(chorus_store::DB_DIR));
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
        Error::new(ErrorKind::CorruptSession, format!("the session {} {e}", header.session_id))
            .hint("it was left unchanged; repair it or restore a backup")
    })? {
        let json = std::str::from_utf8(message.json()).unwrap_or_default();
        let found = redactor.find_secrets_in_json(json);
        let clean = if found.is_empty() {
            None
        } else {
            let parsed: Message = serde_json::from_str(json).map_err(|e| Error::internal(e.to_string()))?;
            let clean = search.redact_message(&parsed, json).0.map(|(_, bytes)| bytes);
            Some(clean.ok_or_else(|| Error::internal("a message could not be read without its secrets"))?)
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

/// Returns true if there is a file of the copy, under the name that it gets or the next ones. Blocks.
fn has_unfinished(dir: &Path, wanted: &str, id: Uuid) -> bool {
    let names = std::iter::once(wanted.to_owned()).chain((2..=MAX_SUFFIX).map(|number| format!("{wanted}-{number}")));
    let mut paths = names.map(|name| session_files::path_of(dir, &name)).filter(|path| session_form::exists(path));
    paths.any(|path| session_files::read_header(&path).ok().flatten().is_some_and(|header| header.id == id))
}

/// Returns true if the messages of a session begin with those of a copy.
async fn begins_with(trash: &SessionTrash, session: &SessionRow, body: &Arc<SpooledMessages>) -> Result<bool> {
    let (file, body) = (trash.sessions.open_messages(session).await?, body.clone());
    run_blocking(move || {
        let failed = |e: std::io::Error| Error::io("cannot compare the copy", &e);
        let (mut lines, mut messages) = (body.lines().map_err(failed)?, file.messages_from(0));
        while let Some(line) = lines.next().map_err(failed)? {
            match messages.read()? {
                Ok(Some(message)) if message.json() == line => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    })
    .await
}

/// Writes the copy, unless an earlier scrub has written it already.
async fn write_copy(trash: &SessionTrash, row: &SessionRow, clean: CleanSession) -> Result<Session> {
    let id = copy_id(row.header.id);
    if let Some(copy) = trash.store.catalog.sessions.get(id).await? {
        // An imported conversation may have been continued in the copy since then.
        if copy.sha256 == clean.body.sha256 || begins_with(trash, &copy, &clean.body).await? {
            return trash.sessions.describe(copy).await;
        }
        let name = &copy.header.session_id;
        return Err(Error::new(
            ErrorKind::Conflict,
            format!(
                "an earlier scrub of {} was interrupted, and its copy {name} has other messages",
                row.header.session_id
            ),
        )
        .hint(format!(
            "compare them: chorusctl session diff; then delete one of both, for example: chorusctl rm {name}"
        )));
    }
    let entry = trash.agents.by_id(row.header.agent_id).ok_or_else(Error::agent_destroyed)?;
    let settings = entry.settings.clone();
    let wanted = clean.wanted_name();
    let CleanSession { mut header, body, .. } = clean;
    if let Some(source) = &mut header.source {
        // The newest revision is the one that a later import continues, and the deletion of an earlier one does not keep it away.
        let table = &trash.store.catalog.sessions;
        let all = table.list_of_source(source.program.clone(), source.conversation.clone()).await?;
        let newest = all.iter().filter_map(|row| row.header.source.as_ref()).map(|of| of.revision).max();
        if newest.is_none_or(|newest| newest <= source.revision) {
            source.revision += 1;
        }
        source.redacted = true;
        source.messages_sha256.clone_from(&body.sha256);
    }
    header.id = id;
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
