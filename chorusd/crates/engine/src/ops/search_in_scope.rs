//! Searches the past of an agent for one of its conversations: for its model, and for the people in a channel.

use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_clock::Clock;
use chorus_proto::methods::search::{SearchHit, SearchIndexState};
use chorus_proto::{ErrorKind, Message};
use chorus_runtime::run_blocking;
use chorus_search::Filter;
use chorus_session::conversation::MAIN_CONVERSATION;
use tokio::time::Instant;

use super::agent::AgentResolver;
use super::conversations::{ConversationKey, ConversationTarget, SessionScope};
use super::search::{FindRequest, Found, best_mode, find};
use super::session::SessionReader;
use crate::search::SearchService;
use crate::semantic::SemanticService;

/// A search for a conversation.
#[derive(Debug, Clone, Copy)]
pub struct ScopedRequest<'a> {
    /// The conversation in which the results are shown.
    pub viewer: ConversationKey,
    pub text: &'a str,
    pub limit: u64,
}

/// The hits, best first.
#[derive(Debug)]
pub struct ScopedHits {
    pub hits: Vec<SearchHit>,
    /// Says what may be missing, because not everything is indexed.
    pub note: Option<String>,
}

/// Finds messages of the agent that may be shown in the conversation of the request: none of other private conversations, neither
/// saved nor live.
///
/// # Errors
/// `invalid_params` without a word to find; as [`find`].
pub async fn find_in_scope(
    agents: &AgentResolver,
    sessions: &SessionReader,
    service: &SearchService,
    semantic: &SemanticService,
    clock: &Clock,
    request: ScopedRequest<'_>,
) -> Result<ScopedHits> {
    let ScopedRequest { viewer, text, limit } = request;
    if text.trim().is_empty() {
        return Err(Error::invalid("nothing to search for").hint("name words that were said"));
    }
    let scope = SessionScope::of(&agents.index.conversations, viewer);
    let filter = Filter {
        agents: Some(vec![viewer.agent]),
        conversation: scope.only().map(|only| only.stored_id()),
        hidden: scope.hidden(),
        ..Filter::default()
    };
    // What was just said in the conversation is part of it.
    service.settle(Some(Instant::now())).await;
    let mode = best_mode(semantic);
    let request = FindRequest { text: text.to_owned(), filter, limit, mode, explain: false, now: clock.now() };
    let Found { mut hits, .. } = find(agents, sessions, service, semantic, request).await?;
    // A conversation may have become private since.
    let scope = SessionScope::of(&agents.index.conversations, viewer);
    hits.retain(|hit| {
        let conversation = hit.conversation.as_ref().map(|conversation| conversation.id);
        scope.contains(ConversationKey::from_stored(viewer.agent, conversation))
    });
    Ok(ScopedHits { hits, note: service.progress().and_then(incomplete_note) })
}

/// Returns what may be missing.
fn incomplete_note(state: SearchIndexState) -> Option<String> {
    match state.percent_indexed() {
        Some(percent) => Some(format!("{percent} % indexed; results may be missing")),
        None => (!state.complete).then(|| "the last messages may be missing".to_owned()),
    }
}

/// Returns everything that was searched of a hit in `target`: the text of the message and what its tool calls were given; without a message
/// the title, summary and tags. A snippet may be a part of a secret that is known as one only as a whole. `None` if the message
/// is gone.
///
/// # Errors
/// An I/O error.
pub async fn full_text(
    sessions: &SessionReader,
    target: &ConversationTarget,
    hit: &SearchHit,
) -> Result<Option<String>> {
    let name = match (&hit.session, &hit.conversation) {
        (Some(session), _) => session.id.to_string(),
        (None, Some(conversation)) => format!("@{}", conversation.id),
        (None, None) => format!("@{MAIN_CONVERSATION}"),
    };
    // Nobody has no more rights than the conversation.
    let open = match sessions.open_as(&Requester::Nobody, target, true, &name, "show NAME").await {
        Ok(open) => open,
        Err(failure) if matches!(failure.kind, ErrorKind::StorageFailed | ErrorKind::StorageUnavailable) => {
            return Err(failure);
        }
        Err(_) => return Ok(None),
    };
    let Some(number) = hit.message else {
        let header = &open.header;
        let texts = header.description.iter().chain(&header.summary).chain(&header.tags);
        return Ok(Some(texts.map(String::as_str).collect::<Vec<_>>().join("\n")));
    };
    run_blocking(move || {
        let stored = open.messages.messages_from(number.saturating_sub(1)).read()?;
        let message = stored.and_then(|stored| serde_json::from_slice::<Message>(stored.json()).ok());
        Ok(message.map(|message| {
            let calls = message.tool_calls.iter().map(|call| call.params.get());
            std::iter::once(&*message.content).chain(calls).collect::<Vec<_>>().join("\n")
        }))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_index_is_noted() {
        let note = |complete, indexed, total| {
            incomplete_note(SearchIndexState { complete, indexed, total, messages: 0 }).unwrap_or_default()
        };
        assert_eq!(note(true, 9, 9), "");
        assert_eq!(note(false, 0, 3), "0 % indexed; results may be missing");
        assert_eq!(note(false, 7, 9), "the last messages may be missing");
        assert_eq!(note(false, 80, 100), "80 % indexed; results may be missing");
        assert_eq!(note(false, 6, 51), "11 % indexed; results may be missing");
        assert_eq!(note(false, 45, 50), "the last messages may be missing");
        assert_eq!(note(false, 44, 50), "88 % indexed; results may be missing");
        assert_eq!(note(false, 1994, 2000), "the last messages may be missing");
        assert_eq!(note(false, 1900, 2000), "95 % indexed; results may be missing");
        assert_eq!(note(false, 1, 5), "the last messages may be missing");
        assert_eq!(
            note(false, 0, 0),
            "0 % indexed; results may be missing",
            "it was not compared with the catalog yet"
        );
    }
}
