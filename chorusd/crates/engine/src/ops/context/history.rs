//! The operation `context.history`.

use chorus_base::closest_match;
use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_catalog::{ProjectFilter, SessionQuery};
use chorus_clock::Clock;
use chorus_proto::methods::context::{HistoryParams, HistoryResult};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::agent::agent_index::AgentIndex;
use crate::capture::CaptureSource;
use crate::ops::agent::AgentResolver;
use crate::ops::conversations::{ConversationKey, SessionScope};
use crate::ops::searched_conversations::{ConversationsRequest, SearchedConversations};
use crate::ops::session::SessionReader;

/// The default number of sessions in a page.
const DEFAULT_PAGE: u64 = 10;

/// The limit on sessions in a page, far below what fits in a frame.
const MAX_PAGE: u64 = 1000;

/// The limit on words that are looked for.
const MAX_WORDS: usize = 16;

/// The programs whose conversations can be imported, without those that can be captured.
const IMPORTED_PROGRAMS: [&str; 14] = [
    "aider",
    "amp",
    "chatgpt",
    "chorus",
    "claude-ai",
    "cline",
    "gemini-apps",
    "librechat",
    "markdown",
    "open-webui",
    "openai",
    "qwen-code",
    "roo-code",
    "vscode-chat",
];

/// Lists saved sessions, newest first, and remembers their numbers.
pub async fn history(
    agents: &AgentResolver,
    sessions: &SessionReader,
    clock: &Clock,
    params: HistoryParams,
) -> Result<HistoryResult> {
    history_as(agents, sessions, clock, params, &Requester::Owner, None).await
}

/// Like [`history`]; the numbers are remembered for `by`. With `viewer`, only what may be offered in that conversation of
/// the agent is listed.
pub async fn history_as(
    agents: &AgentResolver,
    sessions: &SessionReader,
    clock: &Clock,
    params: HistoryParams,
    by: &Requester,
    viewer: Option<ConversationKey>,
) -> Result<HistoryResult> {
    let asked = ConversationsRequest {
        agent: params.agent.as_deref(),
        own: params.own,
        conversation: params.conversation.as_deref(),
        all_agents: params.all_agents,
        has_words: params.words.is_some() || params.source.is_some() || params.project.is_some(),
    };
    let found = SearchedConversations::resolve(agents, sessions, asked).await?;
    let agent = found.agent.map(|agent| agent.settings.id);
    let scope = viewer.map(|viewer| SessionScope::of(&agents.index.conversations, viewer)).unwrap_or_default();
    let conversation = scope.only().or(found.conversation);
    let also = if *by == Requester::Owner && scope.only().is_none() { found.also } else { Vec::new() };
    let limit = params.limit.unwrap_or(DEFAULT_PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Error::invalid(format!("`limit` must be 1 to {MAX_PAGE}")).hint("use `page` for more sessions"));
    }
    let page = params.page.unwrap_or(1);
    if page == 0 {
        return Err(Error::invalid("`page` must be at least 1").hint("the result's `pages` is the number of pages"));
    }
    let time = |text: &Option<String>| text.as_deref().map(|text| parse_since(text, clock.now())).transpose();
    let (since, until) = (time(&params.since)?, time(&params.until)?);
    let offset = (page - 1).saturating_mul(limit);
    let words = params.words.unwrap_or_default();
    let words: Vec<String> = words.split_whitespace().take(MAX_WORDS).map(str::to_owned).collect();
    if let Some(source) = &params.source {
        check_source(sessions, source, &[]).await?;
    }
    let listing = SessionQuery {
        agent,
        also,
        conversation,
        hidden: scope.hidden(),
        since,
        until,
        tag: params.tag,
        source: params.source,
        project: params.project.as_deref().map(|project| project_filter(&agents.index, project)),
        conversation_texts: agents.index.conversations.texts_with_words(agent, &words),
        words,
        offset,
        limit,
    };
    let (rows, short, total) = sessions.table.list_with_short_ids(listing).await?;
    if !params.keep_numbers {
        let ids = rows.iter().map(|row| row.header.id).collect();
        sessions.history_numbers.record_page(by, agent, offset.saturating_add(1), ids);
    }
    Ok(HistoryResult {
        sessions: sessions.describe_with_short_ids(rows, short).await?,
        total,
        page,
        pages: total.div_ceil(limit).max(1),
    })
}

/// Returns the filter for a project: the absolute path of a directory, the last part of one, or the name that agents have for it.
#[must_use]
pub fn project_filter(agents: &AgentIndex, project: &str) -> ProjectFilter {
    let all = agents.all().into_iter();
    let of_project = all.filter(|agent| agent.settings.project.as_deref() == Some(project));
    ProjectFilter {
        directory: project.starts_with('/').then(|| project.to_owned()),
        name: (!project.is_empty() && !project.contains('/')).then(|| project.to_owned()),
        agents: of_project.map(|agent| agent.settings.id).collect(),
    }
}

/// Refuses a name that is not that of a program whose conversations can be here.
///
/// # Errors
/// `invalid_params`, `storage_failed`.
pub async fn check_source(sessions: &SessionReader, source: &str, others: &[&str]) -> Result<()> {
    let here = sessions.table.source_programs().await?;
    let captured = CaptureSource::ALL.map(CaptureSource::name);
    let known =
        || here.iter().map(String::as_str).chain(captured).chain(IMPORTED_PROGRAMS).chain(others.iter().copied());
    if known().any(|name| name == source) {
        return Ok(());
    }
    let failure = Error::invalid(format!("unknown source {source:?}"));
    Err(match closest_match(source, known()) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
        None if here.is_empty() => failure.hint("no conversations of other programs are here: chorusctl capture on"),
        None => failure.hint(format!("sources here: {}", here.join(", "))),
    })
}

/// Parses `7d`, `1h30m`, `today`, `yesterday`, a date (its beginning in local time) or a time.
///
/// # Errors
/// `invalid_params` for anything else.
pub fn parse_since(text: &str, now: Timestamp) -> Result<Timestamp> {
    let text = text.trim();
    if let Ok(back) = humantime::parse_duration(text) {
        return Ok(now.checked_sub(back).unwrap_or(Timestamp::MIN));
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    let today = now.to_zoned(TimeZone::system()).date();
    let date = match text {
        "today" => Some(today),
        "yesterday" => today.yesterday().ok(),
        _ => (text.len() == 10).then(|| text.parse::<Date>().ok()).flatten(),
    };
    if let Some(start) = date.and_then(|date| date.to_zoned(TimeZone::system()).ok()) {
        return Ok(start.timestamp());
    }
    Err(Error::invalid(format!("not a duration or a date: {text:?}"))
        .hint("for example 7d, 1h30m, yesterday or 2026-02-12"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_takes_durations_dates_and_times() {
        let now: Timestamp = "2026-02-12T10:00:00Z".parse().unwrap();
        assert_eq!(parse_since("1h30m", now).unwrap(), "2026-02-12T08:30:00Z".parse().unwrap());
        assert_eq!(parse_since("2026-02-11T00:00:00Z", now).unwrap(), "2026-02-11T00:00:00Z".parse().unwrap());
        assert!(parse_since("2026-02-11", now).unwrap() < now);
        let day = now.to_zoned(TimeZone::system()).date();
        assert_eq!(parse_since("today", now).unwrap(), parse_since(&day.to_string(), now).unwrap());
        let before = day.yesterday().unwrap().to_string();
        assert_eq!(parse_since("yesterday", now).unwrap(), parse_since(&before, now).unwrap());
        for wrong in ["", "soon", "2026-13-45", "-1d"] {
            assert!(parse_since(wrong, now).is_err(), "{wrong}");
        }
    }
}
