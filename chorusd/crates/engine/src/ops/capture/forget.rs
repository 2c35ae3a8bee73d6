//! The operation `capture.forget`.

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use chorus_proto::methods::capture::{ForgetParams, ForgetResult};
use chorus_proto::methods::session::DeleteParams;
use chorus_store::catalog::SessionRow;

use crate::capture::{CaptureService, CaptureSource};
use crate::ops::agent::AgentResolver;
use crate::ops::session::{SessionTrash, delete};

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
        (conversation, true) => undo(capture, conversation).await,
        (Some(conversation), false) => forget_conversation(capture, agents, trash, &conversation).await,
    }
}

async fn undo(capture: &CaptureService, conversation: Option<String>) -> Result<ForgetResult> {
    // Which transcripts have them is not stored. First, because the change starts a look.
    capture.read_all_again().await?;
    let lifted = match &conversation {
        None => capture.deleted.remove_all().await?,
        Some(id) => {
            let mut lifted = 0;
            for source in CaptureSource::ALL {
                let is_deleted = capture.deleted.contains(source.name(), std::slice::from_ref(id));
                capture.deleted.remove(source.name(), std::slice::from_ref(id)).await?;
                lifted += u64::from(is_deleted);
            }
            lifted
        }
    };
    match conversation {
        Some(id) if lifted == 0 => {
            let failure = Error::new(ErrorKind::NotFound, format!("no forgotten conversation has the ID {id:?}"));
            Err(failure.hint("give the ID that its program has for it, or all: chorusctl capture forget --undo"))
        }
        _ => Ok(ForgetResult { conversations: lifted, sessions: 0 }),
    }
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
    Ok(ForgetResult { conversations: 1, sessions: sessions.len() as u64 })
}

/// Finds all sessions of a conversation by one of them, or by the id that its program gives it.
async fn find(agents: &AgentResolver, trash: &SessionTrash, named: &str) -> Result<Vec<SessionRow>> {
    let table = &trash.store.catalog.sessions;
    for source in CaptureSource::ALL {
        let rows = table.list_of_source(source.name().into(), named.to_owned()).await?;
        if !rows.is_empty() {
            return Ok(rows);
        }
    }
    let target = agents.conversation_for_sessions(None, None).await?;
    let row = trash.sessions.resolve(&target, false, named, "capture forget NAME").await?;
    let Some(source) = &row.header.source else { return Ok(vec![row]) };
    table.list_of_source(source.program.clone(), source.conversation.clone()).await
}
