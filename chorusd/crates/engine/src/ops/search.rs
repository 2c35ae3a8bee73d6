//! The operation `search`.

pub mod model;

use std::collections::HashMap;

use chorus_base::error::{Error, Result};
use chorus_catalog::SessionRow;
use chorus_clock::Clock;
use chorus_proto::ErrorKind;
use chorus_proto::methods::search::{
    FoundSession, ScorePart, SearchHit, SearchIndexState, SearchMode, SearchParams, SearchResult,
};
use chorus_runtime::run_blocking;
use chorus_search::{Filter, Hit, Mode, SearchQuery, SourceId, SourceKind};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::time::Instant;
use uuid::Uuid;

use super::agent::AgentResolver;
use super::context::history::{check_source, parse_since, project_filter};
use super::conversations::ConversationKey;
use super::searched_conversations::{ConversationsRequest, SearchedConversations};
use super::session::SessionReader;
use crate::search::SearchService;
use crate::semantic::SemanticService;

const DEFAULT_LIMIT: u64 = 10;
const MAX_LIMIT: u64 = 100;

/// Sources of messages besides other programs.
const MESSAGE_SOURCES: [&str; 4] = ["cli", "discord", "agent", "import"];

/// Longest query in bytes.
const MAX_QUERY_BYTES: usize = 4096;

/// Finds messages by their words and their meaning, after a wait for what there was at `last_change`, when the client last may have
/// changed something.
///
/// # Errors
/// `invalid_params`, `agent_not_found`, `no_agent`, `busy` while the index is being opened, `storage_failed` if it cannot be used.
pub async fn search(
    agents: &AgentResolver,
    sessions: &SessionReader,
    service: &SearchService,
    semantic: &SemanticService,
    clock: &Clock,
    last_change: Option<Instant>,
    params: SearchParams,
) -> Result<SearchResult> {
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Error::invalid(format!("`limit` must be 1 to {MAX_LIMIT}")).hint("use more words for better hits"));
    }
    if params.query.trim().is_empty() {
        return Err(Error::invalid("nothing to search for").hint("name words that were said"));
    }
    if params.query.len() > MAX_QUERY_BYTES {
        return Err(Error::invalid(format!("the query has more than {MAX_QUERY_BYTES} bytes")).hint("use fewer words"));
    }
    let (filter, agent_name) = build_filter(agents, sessions, clock, &params).await?;
    service.settle(last_change).await;
    let mode = choose_mode(semantic, params.mode)?;
    let request = FindRequest { text: params.query, filter, limit, mode, explain: params.explain, now: clock.now() };
    // As it is now: what is committed meanwhile may be missing in the hits.
    let index = service.progress();
    let Found { hits, meaning_failure } = find(agents, sessions, service, semantic, request).await?;
    let is_text_asked = params.mode == Some(SearchMode::Text);
    let meaning_failure = meaning_failure.or_else(|| semantic.choice_problem().filter(|_| !is_text_asked));
    let warnings = meaning_failure.map(|why| format!("only words were searched for: {why}")).into_iter().collect();
    let index = index.unwrap_or(SearchIndexState { complete: false, indexed: 0, total: 0, messages: 0 });
    Ok(SearchResult { agent_name, hits, index, mode: Some(mode), warnings })
}

/// A search of another part of the daemon.
#[derive(Debug)]
pub struct FindRequest {
    pub text: String,
    pub filter: Filter,
    /// Number of hits.
    pub limit: u64,
    /// If messages cannot be compared by meaning, words count alone.
    pub mode: SearchMode,
    /// True if hits have the parts of their scores.
    pub explain: bool,
    /// The time that words such as "yesterday" are relative to.
    pub now: Timestamp,
}

/// The messages that were found.
#[derive(Debug)]
pub struct Found {
    /// Best first.
    pub hits: Vec<SearchHit>,
    /// Why only words counted, though meaning was asked for.
    pub meaning_failure: Option<String>,
}

/// Returns the mode of a search that is asked for, or else the best one.
fn choose_mode(semantic: &SemanticService, asked: Option<SearchMode>) -> Result<SearchMode> {
    match (asked, semantic.is_chosen()) {
        (Some(SearchMode::Semantic | SearchMode::Hybrid), false) => {
            Err(Error::new(ErrorKind::InvalidConfig, "no model is chosen by which messages are found by meaning")
                .hint("choose one: chorusctl search model --from DIR, or search with --mode text"))
        }
        (Some(asked), _) => Ok(asked),
        (None, _) => Ok(best_mode(semantic)),
    }
}

/// Returns the mode that finds most: by words and meaning if a model is chosen.
#[must_use]
pub fn best_mode(semantic: &SemanticService) -> SearchMode {
    if semantic.is_chosen() { SearchMode::Hybrid } else { SearchMode::Text }
}

/// Finds messages, best first, in what is indexed by now.
///
/// # Errors
/// `invalid_params` if the text only excludes words, `busy` while the index is being opened, `invalid_config` if it is off,
/// `storage_failed` if it cannot be used.
pub async fn find(
    agents: &AgentResolver,
    sessions: &SessionReader,
    service: &SearchService,
    semantic: &SemanticService,
    request: FindRequest,
) -> Result<Found> {
    let (meaning, failure) = match request.mode {
        SearchMode::Text => (None, None),
        SearchMode::Semantic | SearchMode::Hybrid => match semantic.view(&request.text).await {
            Ok(meaning) => (Some(meaning), None),
            Err(why) => (None, Some(why)),
        },
    };
    let query = SearchQuery {
        text: request.text,
        filter: request.filter,
        limit: usize::try_from(request.limit).unwrap_or(usize::MAX),
        merge: true,
        explain: request.explain,
        mode: match request.mode {
            SearchMode::Text => Mode::Text,
            SearchMode::Semantic => Mode::Semantic,
            SearchMode::Hybrid => Mode::Hybrid,
        },
        meaning,
        now: request.now.to_zoned(TimeZone::system()),
    };
    // Last: one that was opened before the waits may have been replaced, and sees no later commit.
    let index = service.index()?;
    let found = run_blocking(move || {
        index.search(&query).map_err(|error| Error::new(ErrorKind::StorageFailed, error.to_string()))
    })
    .await
    .map_err(|failure| {
        service.report_failure();
        Error::new(ErrorKind::StorageFailed, format!("cannot search: {}", failure.message))
            .hint("the search index is being rebuilt; try again in a moment")
    })?;
    if found.only_exclusions {
        return Err(Error::invalid("the query only excludes words").hint("add a word to find"));
    }
    let hits = describe(agents, sessions, found.hits).await?;
    Ok(Found { hits, meaning_failure: failure.or(found.meaning_failure) })
}

/// Returns the filter of a request, and the name of the agent that is searched if it is only one.
async fn build_filter(
    agents: &AgentResolver,
    sessions: &SessionReader,
    clock: &Clock,
    params: &SearchParams,
) -> Result<(Filter, Option<String>)> {
    let asked = ConversationsRequest {
        agent: params.agent.as_deref(),
        own: params.own,
        conversation: params.conversation.as_deref(),
        all_agents: params.all_agents,
        has_words: true,
    };
    let SearchedConversations { agent, conversation, also } =
        SearchedConversations::resolve(agents, sessions, asked).await?;
    let mut among = agent.as_ref().map(|agent| std::iter::once(agent.settings.id).chain(also).collect::<Vec<Uuid>>());
    let mut only = None;
    if let Some(project) = params.project.as_ref().filter(|project| project.starts_with('/')) {
        let ids = sessions.table.ids_of_project(project_filter(&agents.index, project)).await?;
        if ids.is_empty() {
            return Err(Error::new(ErrorKind::NotFound, format!("no imported conversation was held in {project}"))
                .hint("list conversations with their projects: chorusctl history --long"));
        }
        only = Some(ids.into_iter().map(SourceId::from).collect());
    } else if let Some(project) = &params.project {
        let of_project =
            |id: &Uuid| agents.index.by_id(*id).is_some_and(|agent| agent.settings.project.as_ref() == Some(project));
        let all = agents.index.all().into_iter().map(|agent| agent.settings.id);
        let of_project: Vec<Uuid> =
            among.take().unwrap_or_else(|| all.collect()).into_iter().filter(|id| of_project(id)).collect();
        if of_project.is_empty() {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("no agent that is searched belongs to the project {project:?}"),
            )
            .hint("an agent's project is in its settings: chorusctl agent config NAME project"));
        }
        among = Some(of_project);
    }
    if let Some(source) = &params.source {
        check_source(sessions, &source.to_lowercase(), &MESSAGE_SOURCES).await?;
    }
    let time = |text: &Option<String>| text.as_deref().map(|text| parse_since(text, clock.now())).transpose();
    let agent_name = agent.map(|agent| agent.settings.name.clone());
    let filter = Filter {
        agents: among,
        conversation: conversation.map(|key| key.stored_id()),
        only,
        since: time(&params.since)?,
        until: time(&params.until)?,
        tag: params.tag.clone(),
        role: params.role,
        tool: params.tool.clone(),
        origin: params.source.clone(),
        model: params.model.clone(),
        ..Filter::default()
    };
    Ok((filter, agent_name))
}

/// Describes hits. Those whose session is gone since the last commit of the index are left out.
async fn describe(agents: &AgentResolver, sessions: &SessionReader, hits: Vec<Hit>) -> Result<Vec<SearchHit>> {
    let ids: Vec<Uuid> =
        hits.iter().filter(|hit| hit.kind == SourceKind::Session).map(|hit| hit.source.to_uuid()).collect();
    let rows = sessions.table.get_all(ids).await?;
    let ids: Vec<Uuid> = rows.iter().map(|row| row.header.id).collect();
    let short = sessions.table.short_ids(ids).await?;
    let rows: HashMap<Uuid, (SessionRow, String)> =
        rows.into_iter().zip(short).map(|(row, short)| (row.header.id, (row, short))).collect();
    let imported: Vec<Uuid> = agents.index.import_agents().into_iter().map(|agent| agent.settings.id).collect();
    let mut names: HashMap<Uuid, String> = HashMap::new();
    let gone: Vec<Uuid> = hits.iter().map(|hit| hit.agent).filter(|id| agents.index.by_id(*id).is_none()).collect();
    if !gone.is_empty() {
        names.extend(agents.table.list_by_id(gone).await?.into_iter().map(|row| (row.id, row.name)));
    }
    let describe_one = |hit: Hit| {
        let agent_name = match agents.index.by_id(hit.agent) {
            Some(agent) => agent.settings.name.clone(),
            None => names.get(&hit.agent)?.clone(),
        };
        let is_session = hit.kind == SourceKind::Session;
        let row = rows.get(&hit.source.to_uuid());
        let (session, conversation) = match (is_session, row) {
            (true, Some((row, short_id))) => {
                let header = &row.header;
                let session =
                    FoundSession { id: header.id, short_id: short_id.clone(), session_id: header.session_id.clone() };
                (Some(session), header.conversation.clone())
            }
            (true, None) => return None,
            (false, _) => {
                (None, agents.index.conversations.reference(ConversationKey::from_stored(hit.agent, hit.conversation)))
            }
        };
        let chars = |byte: usize| hit.snippet.text.get(..byte).map_or(0, |text| text.chars().count() as u64);
        let marks = hit.snippet.marks.iter().map(|mark| (chars(mark.start), chars(mark.end))).collect();
        Some(SearchHit {
            agent_name,
            imported: imported.contains(&hit.agent),
            session,
            conversation,
            title: Some(hit.title).filter(|title| !title.is_empty()),
            message: hit.number,
            role: hit.role,
            speaker: hit.speaker,
            at: hit.at,
            marks,
            snippet: hit.snippet.text,
            nearby: Some(hit.nearby).filter(|nearby| *nearby > 0),
            score: rounded(hit.score),
            parts: hit
                .parts
                .into_iter()
                .map(|(name, value)| ScorePart { name: name.into(), value: rounded(value) })
                .collect(),
        })
    };
    Ok(hits.into_iter().filter_map(describe_one).collect())
}

/// The score with as many digits as say something.
fn rounded(score: f32) -> f64 {
    (f64::from(score) * 1e4).round() / 1e4
}
