//! An agent: its conversations, and its saved ones.

use std::sync::Arc;

use axum::extract::State;
use chorus_proto::methods::context::{History, HistoryParams};
use chorus_proto::methods::conversations::{List, ListParams};
use chorus_terminal_text::units::group_digits;
use maud::html;
use serde::Deserialize;

use super::home::SESSIONS;
use super::rows::{When, agent_rows, conversation_row, session_row};
use crate::app::App;
use crate::extract::{PathParams, QueryParams};
use crate::failure_page::{PageResult, page};
use crate::layout::{self, Frame, Section};
use crate::prefix::at;
use crate::text::{agent_path, query, short};

/// Conversations on a page.
const CONVERSATIONS: u64 = 50;

#[derive(Debug, Deserialize)]
pub(crate) struct Params {
    page: Option<u64>,
    offset: Option<u64>,
}

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    PathParams(name): PathParams<String>,
    QueryParams(params): QueryParams<Params>,
) -> PageResult {
    let frame = Frame::new(&app, &name, Section::Conversations);
    let mut daemon = app.connect().await?;
    let overview = daemon.status(0).await?;
    let mut agent = daemon.agent(&name).await?;
    // Listed below, with those that are not live.
    agent.conversations.clear();
    let list = ListParams { agent: Some(name.clone()), all: true, offset: params.offset, limit: Some(CONVERSATIONS) };
    let list = daemon.call::<List>(list).await?;
    let history = HistoryParams {
        agent: Some(name.clone()),
        page: params.page,
        limit: Some(SESSIONS),
        keep_numbers: true,
        ..Default::default()
    };
    let history = daemon.call::<History>(history).await?;
    let when = When { now: overview.now, zone: &app.zone };
    let others: Vec<_> = list.conversations.iter().filter(|conversation| conversation.name != "main").collect();
    let path = agent_path(&name);
    let main = html! {
        div.heading {
            h1 { (short(&agent.name, 64)) }
            a href=(format!("{path}/tree")) { "Tree" }
            a href=(format!("{}{}", at("/usage"), query(&[("agent", Some(&name))]))) { "Usage" }
        }
        @if let Some(problem) = &agent.problem { p.warning { (problem) } }
        div #agent data-live {
            ul.rows {
                (agent_rows(&agent, when))
                @for conversation in others { (conversation_row(&name, conversation, when)) }
            }
        }
        @if let Some(next) = list.next {
            p { a href=(query(&[("offset", Some(&next.to_string()))])) { "More conversations" } }
        }
        div.heading { h2.section { "Saved conversations" } span.none { (group_digits(history.total)) } }
        div #sessions data-live {
            @if history.sessions.is_empty() { p.none { "Nothing is saved yet." } }
            ul.rows { @for session in &history.sessions { (session_row(session, when)) } }
        }
        (layout::pages(history.page, history.pages, |page| query(&[("page", Some(&page.to_string()))])))
    };
    Ok(page(layout::page(&frame, &overview, &main)))
}
