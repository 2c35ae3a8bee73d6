//! Search: the messages that were found, best first.

use std::sync::Arc;

use axum::extract::State;
use chorus_daemon_client::Failure;
use chorus_proto::ErrorKind;
use chorus_proto::methods::search::{Search, SearchHit, SearchParams, SearchResult};
use maud::{Markup, html};
use serde::Deserialize;

use super::rows::When;
use crate::app::{App, Daemon};
use crate::extract::QueryParams;
use crate::failure_page::{PageResult, page};
use crate::layout::{self, Frame, Section, sentence};
use crate::text::{age, agent_path, line, live_path, session_path, short};

/// The hits that are shown.
const MAX_HITS: u64 = 50;

#[derive(Debug, Deserialize)]
pub(crate) struct Params {
    #[serde(default)]
    q: String,
}

pub(crate) async fn show(State(app): State<Arc<App>>, QueryParams(params): QueryParams<Params>) -> PageResult {
    let words = params.q.trim();
    let mut daemon = app.connect().await?;
    let overview = daemon.status(0).await?;
    let found = match words {
        "" => Ok(None),
        _ => find(&mut daemon, words).await.map(Some),
    };
    let agent = match is_name(words) {
        true => daemon.agent(words).await.ok(),
        false => None,
    };
    let when = When { now: overview.now, zone: &app.zone };
    let main = html! {
        h1 { "Search" }
        section #results aria-live="polite" {
            @if let Some(agent) = agent {
                ul.rows { li { a.row data-item href=(agent_path(&agent.name)) { "agent " b { (agent.name) } } } }
            }
            @match &found {
                Ok(Some(found)) => (render_found(found, when)),
                Ok(None) => p.none { "Words, \"a phrase\", prefix* and -excluded find messages in the conversations of all agents." },
                // What was typed so far may be nothing to search for.
                Err(failure) if failure.kind == Some(ErrorKind::InvalidParams) => p.none { (sentence(&failure.message)) },
                Err(failure) => p.warning { (sentence(&failure.message)) },
            }
        }
    };
    let frame = Frame { words, ..Frame::new(&app, "Search", Section::None) };
    Ok(page(layout::page(&frame, &overview, &main)))
}

/// Returns true if an agent may have this name.
fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

async fn find(daemon: &mut Daemon, words: &str) -> Result<SearchResult, Failure> {
    let params = |query| SearchParams { query, all_agents: true, limit: Some(MAX_HITS), ..Default::default() };
    let found = daemon.call::<Search>(params(words.to_owned())).await?;
    // The last word may not be complete yet.
    let is_word = words.chars().next_back().is_some_and(char::is_alphanumeric) && !words.contains('"');
    if found.hits.is_empty() && is_word {
        return daemon.call::<Search>(params(format!("{words}*"))).await;
    }
    Ok(found)
}

fn render_found(found: &SearchResult, when: When<'_>) -> Markup {
    let percent = found.index.percent_indexed();
    let count = found.hits.len();
    html! {
        p.line {
            @match count {
                0 => "Nothing was found.",
                1 => "1 message",
                _ => { @if count as u64 >= MAX_HITS { "The best " } (count) " messages" },
            }
            @if let Some(percent) = percent { " (the search index is " (percent) " % complete)" }
        }
        @for warning in &found.warnings { p.line { (sentence(warning)) } }
        ul.rows { @for hit in &found.hits { (render_hit(hit, when)) } }
    }
}

fn render_hit(hit: &SearchHit, when: When<'_>) -> Markup {
    let name = hit.conversation.as_ref().map(|conversation| &*conversation.name);
    let path = match &hit.session {
        Some(session) => session_path(session.id),
        None => live_path(&hit.agent_name, name),
    };
    let path = match hit.message {
        Some(number) => format!("{path}?m={number}#m{number}"),
        None => path,
    };
    html! {
        li {
            a.row data-item href=(path) {
                span.title { (marked(&hit.snippet, &hit.marks)) }
                span.about {
                    span { (short(&hit.agent_name, 64)) }
                    @if let Some(name) = name { span { (short(name, 64)) } }
                    @if hit.session.is_none() { span.badge.live { "live" } }
                    @if let Some(speaker) = &hit.speaker { span { (short(speaker, 64)) } }
                    @if let Some(title) = &hit.title { span { (short(title, 80)) } }
                    @if let Some(nearby) = hit.nearby { span { "and " (nearby) " near it" } }
                    span { (age(hit.at, when.now, when.zone)) }
                }
            }
        }
    }
}

/// Marks the words that were found, which `marks` names by their characters.
fn marked(snippet: &str, marks: &[(u64, u64)]) -> Markup {
    let place = |characters: u64| {
        let nth = usize::try_from(characters).unwrap_or(usize::MAX);
        snippet.char_indices().nth(nth).map_or(snippet.len(), |(at, _)| at)
    };
    let mut pieces = Vec::new();
    let mut done = 0;
    for (start, end) in marks.iter().map(|(start, end)| (place(*start), place(*end))) {
        if start < done || end <= start {
            continue;
        }
        pieces.push((&snippet[done..start], &snippet[start..end]));
        done = end;
    }
    // Invisible characters are shown, and the spaces between the pieces stay.
    let shown = |text: &str| {
        let (before, after) = (text.starts_with(' '), text.len() > 1 && text.ends_with(' '));
        format!("{}{}{}", if before { " " } else { "" }, line(text), if after { " " } else { "" })
    };
    html! {
        @for (plain, word) in pieces { (shown(plain)) mark { (shown(word)) } }
        (shown(&snippet[done..]))
    }
}

#[cfg(test)]
mod tests {
    use super::marked;

    #[test]
    fn words_are_marked_by_their_characters() {
        assert_eq!(marked("é <b> x", &[(2, 5)]).into_string(), "é <mark>&lt;b&gt;</mark> x");
        assert_eq!(marked("abc", &[(2, 9), (0, 1)]).into_string(), "ab<mark>c</mark>");
        assert_eq!(marked("a", &[(5, 9)]).into_string(), "a");
    }
}
