//! The operation `capture.forget`.

use std::path::Path;

use chorus_base::error::{Error, Result};
use chorus_catalog::SessionRow;
use chorus_proto::ErrorKind;
use chorus_proto::methods::capture::{ForgetParams, ForgetResult};
use chorus_proto::methods::session::DeleteParams;
use chorus_runtime::run_blocking;
use chorus_session::selector::MIN_PREFIX;
use chorus_store::session_files;
use chorus_store::trash::TrashItem;

use crate::capture::{CaptureService, CaptureSource, identity};
use crate::ops::agent::AgentResolver;
use crate::ops::session::{SessionTrash, delete};
use crate::ops::trash::list_entries;

/// The program of a conversation, and the id there.
type Identity = (String, String);

/// Moves all sessions of a conversation to the trash and keeps it from being captured again; with `undo`, lets it be captured
/// again, or without a conversation all that were deleted.
///
/// # Errors
/// `session_not_found`; `not_found` if there is nothing to undo; `invalid_params` for a conversation of an agent's own;
/// `ambiguous`, `storage_failed`.
pub async fn forget(
    capture: &CaptureService,
    agents: &AgentResolver,
    trash: &SessionTrash,
    params: ForgetParams,
) -> Result<ForgetResult> {
    match (params.conversation, params.undo) {
        (None, false) => {
            Err(Error::invalid("no conversation given").hint("name a session or the ID of a conversation"))
        }
        (conversation, true) => undo(capture, agents, trash, conversation).await,
        (Some(conversation), false) => forget_conversation(capture, agents, trash, &conversation).await,
    }
}

async fn undo(
    capture: &CaptureService,
    agents: &AgentResolver,
    trash: &SessionTrash,
    conversation: Option<String>,
) -> Result<ForgetResult> {
    let identity = match &conversation {
        Some(named) => Some(find_forgotten(capture, agents, trash, named).await?),
        None => None,
    };
    // Which transcripts have them is not stored. First, because the change starts a look.
    capture.read_all_again().await?;
    let lifted = match &identity {
        None => capture.deleted.remove_all().await?,
        Some(identity) => {
            capture.deleted.remove_identities(std::slice::from_ref(identity)).await?;
            1
        }
    };
    Ok(ForgetResult { conversations: lifted, sessions: 0, conversation: identity.map(|(_, id)| id) })
}

/// Finds a conversation that was forgotten: by the id that its program gives it, or by a session in the trash or of an agent that
/// was destroyed.
async fn find_forgotten(
    capture: &CaptureService,
    agents: &AgentResolver,
    trash: &SessionTrash,
    named: &str,
) -> Result<Identity> {
    let by_program = CaptureSource::ALL.iter().map(|source| (source.name().to_owned(), named.to_owned()));
    let mut found: Vec<Identity> = by_program.collect();
    found.extend(identities_in_trash(&trash.home, named).await?);
    if named.len() >= MIN_PREFIX {
        let rows = trash.store.catalog.sessions.list_with_prefix(None, named.to_owned()).await?;
        let destroyed = rows.iter().filter(|row| agents.index.by_id(row.header.agent_id).is_none());
        found.extend(destroyed.map(|row| identity(&row.header)));
    }
    found.retain(|(program, conversation)| capture.deleted.contains(program, std::slice::from_ref(conversation)));
    found.sort();
    found.dedup();
    match found.len() {
        0 => {
            let failure = Error::new(ErrorKind::NotFound, format!("no forgotten conversation has the ID {named:?}"));
            Err(failure.hint("see chorusctl trash list; or allow all of them: chorusctl capture forget --undo"))
        }
        1 => Ok(found.remove(0)),
        _ => {
            let ids: Vec<_> = found.into_iter().map(|(_, id)| id).collect();
            Err(Error::new(ErrorKind::Ambiguous, format!("{named:?} matches several forgotten conversations"))
                .hint(format!("one of: {}", ids.join(", "))))
        }
    }
}

/// Returns the conversations of the sessions in the trash that have this name, or whose id or entry's id begins with it.
async fn identities_in_trash(home: &Path, named: &str) -> Result<Vec<Identity>> {
    let is_meant = |entry: &TrashItem| {
        let Some(note) = &entry.metadata else { return false };
        let id = note.session.as_ref().map(|session| session.id.to_string());
        let begins = |id: &str| named.len() >= MIN_PREFIX && id.starts_with(named);
        id.is_some_and(|id| note.name == named || begins(&id) || begins(&entry.id))
    };
    let entries: Vec<_> = list_entries(home).await?.into_iter().filter(is_meant).collect();
    run_blocking(move || {
        let headers =
            entries.iter().filter_map(|entry| Some(session_files::read(&entry.content()).ok()?.file.ok()?.header));
        Ok(headers.map(|header| identity(&header)).collect())
    })
    .await
}

async fn forget_conversation(
    capture: &CaptureService,
    agents: &AgentResolver,
    trash: &SessionTrash,
    named: &str,
) -> Result<ForgetResult> {
    let sessions = find(agents, trash, named).await?;
    let Some(source) = sessions.first().and_then(|row| row.header.source.clone()) else {
        return Err(Error::invalid(format!("{named} is not a conversation of another program"))
            .hint(format!("delete it: chorusctl rm {named}")));
    };
    // First, so that it does not come back in between.
    capture.deleted.add(&source.program, &source.conversation).await?;
    for row in &sessions {
        let agent = agents.index.by_id(row.header.agent_id).map(|entry| entry.settings.name.clone());
        let params = DeleteParams { agent, session: row.header.id.to_string(), ..DeleteParams::default() };
        delete::delete(agents, trash, params).await?;
    }
    Ok(ForgetResult { conversations: 1, sessions: sessions.len() as u64, conversation: Some(source.conversation) })
}

/// Finds all sessions of a conversation by one of them, or by the id that its program gives it.
async fn find(agents: &AgentResolver, trash: &SessionTrash, named: &str) -> Result<Vec<SessionRow>> {
    let table = &trash.store.catalog.sessions;
    for source in CaptureSource::ALL {
        let mut rows = table.list_of_source(source.name().into(), named.to_owned()).await?;
        rows.retain(|row| agents.index.by_id(row.header.agent_id).is_some());
        if !rows.is_empty() {
            return Ok(rows);
        }
    }
    let target = agents.conversation_for_sessions(None, None).await?;
    let row = trash.sessions.resolve(&target, false, named, "capture forget NAME").await?;
    let Some(source) = &row.header.source else { return Ok(vec![row]) };
    let mut rows = table.list_of_source(source.program.clone(), source.conversation.clone()).await?;
    rows.retain(|row| agents.index.by_id(row.header.agent_id).is_some());
    Ok(rows)
}
