//! Finds passages that agents recall, in the search index.

use std::collections::HashSet;
use std::time::Duration;

use chorus_agent_core::recall::MAX_PASSAGE_TOKENS;
use chorus_base::error::{Error, Result};
use chorus_proto::{ErrorKind, RecalledPassage, Role};
use chorus_runtime::run_blocking;
use chorus_search::{Filter, Hit, Mode, SearchQuery, SourceId, SourceKind};
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::ContextNo;
use futures_util::future::{BoxFuture, FutureExt as _};
use jiff::tz::TimeZone;
use tokio::time::Instant;
use uuid::Uuid;

use super::Ops;
use super::conversations::SessionScope;
use crate::agent::recall::{PassageFinder, PassageRequest};
use crate::search::{is_of_earlier_context, live_source_id};

/// How long to wait until what was said lately is indexed.
const SETTLE: Duration = Duration::from_millis(150);

/// Number of sessions and live contexts that may be missing in the index.
const MAX_UNINDEXED: u64 = 20;

/// Characters of a passage. Few scripts have more for a token.
const PASSAGE_CHARS: usize = MAX_PASSAGE_TOKENS as usize * 5;

impl PassageFinder for Ops {
    fn find_passages(&self, request: PassageRequest) -> BoxFuture<'_, Result<Vec<RecalledPassage>>> {
        find_passages(self, request).boxed()
    }
}

async fn find_passages(ops: &Ops, request: PassageRequest) -> Result<Vec<RecalledPassage>> {
    let PassageRequest { conversation, context, text, limit, without } = request;
    wait_for_index(ops, conversation, context).await?;
    let scope = SessionScope::of(&ops.agents.conversations, conversation);
    let filter = Filter {
        without: without.into_iter().map(SourceId::from).chain([live_source_id(conversation)]).collect(),
        agents: Some(vec![conversation.agent]),
        conversation: scope.only().map(|key| key.stored_id()),
        hidden: scope.hidden(),
        ..Filter::default()
    };
    let meaning = match ops.semantic.is_chosen() {
        true => tokio::time::timeout(SETTLE, ops.semantic.view(&text)).await.ok().and_then(std::result::Result::ok),
        false => None,
    };
    let query = SearchQuery {
        text,
        filter,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
        merge: false,
        explain: false,
        mode: Mode::Hybrid,
        meaning,
        now: ops.clock.now().to_zoned(TimeZone::system()),
    };
    // Last: one that was opened before the waits may have been replaced, and sees no later commit.
    let index = ops.search.index()?;
    let found = run_blocking(move || {
        let found = index.search_passages(&query, PASSAGE_CHARS);
        found.map_err(|error| Error::new(ErrorKind::StorageFailed, format!("cannot search: {error}")))
    })
    .await
    .inspect_err(|_| ops.search.report_failure())?;
    let said = |role: Option<Role>| role.filter(|role| matches!(role, Role::User | Role::Assistant));
    let hits = found.hits;
    // Since the last commit of the index, sessions may have been deleted.
    let sessions = hits.iter().filter(|hit| hit.kind == SourceKind::Session).map(|hit| hit.source.to_uuid());
    let rows = ops.sessions.table.get_all(sessions.collect()).await?;
    let known: HashSet<Uuid> = rows.iter().map(|row| row.header.id).collect();
    // A conversation may have become private since.
    let scope = SessionScope::of(&ops.agents.conversations, conversation);
    let is_offered = |hit: &Hit| scope.contains(ConversationKey::from_stored(hit.agent, hit.conversation));
    let passages = hits.into_iter().filter(is_offered).filter_map(|hit| {
        let session = (hit.kind == SourceKind::Session).then(|| hit.source.to_uuid());
        let (message, role) = (hit.number?, said(hit.role)?);
        session.is_none_or(|id| known.contains(&id)).then_some(RecalledPassage {
            session,
            name: hit.name,
            message,
            role,
            speaker: hit.speaker,
            at: hit.at,
            text: hit.snippet.text,
        })
    });
    Ok(passages.collect())
}

/// Waits a moment if something other than the asking conversation is to be indexed.
///
/// # Errors
/// `busy` if much is not indexed yet, or if the index still has an earlier context of the conversation; those of
/// [`SearchService::index`](crate::search::SearchService::index).
async fn wait_for_index(ops: &Ops, conversation: ConversationKey, context: ContextNo) -> Result<()> {
    let waiting = || ops.search.waiting();
    let is_behind = || Ok::<_, Error>(is_of_earlier_context(&*ops.search.index()?, conversation, context));
    let has_ended_context = is_behind()?;
    if waiting() > 1 || has_ended_context {
        let own_change = has_ended_context.then(Instant::now);
        let _ = tokio::time::timeout(SETTLE, ops.search.settle(own_change)).await;
    }
    let is_building = ops.search.progress().is_some_and(|state| state.indexed < state.total / 10 * 9);
    if (is_building && waiting() > MAX_UNINDEXED) || is_behind()? {
        return Err(Error::new(ErrorKind::Busy, "the search index is not up to date yet"));
    }
    Ok(())
}
