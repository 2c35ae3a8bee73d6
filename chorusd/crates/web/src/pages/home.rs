//! The first page: agents with their conversations, those that are live first, and saved conversations, the newest first.

use std::sync::Arc;

use axum::extract::State;
use chorus_proto::methods::agent;
use chorus_proto::methods::context::{History, HistoryParams};
use chorus_terminal_text::units::group_digits;
use maud::html;
use serde::Deserialize;

use super::rows::{When, agent_rows, session_row};
use crate::app::App;
use crate::extract::QueryParams;
use crate::failure_page::{PageResult, page};
use crate::layout::{self, Frame, Section};
use crate::text::query;

/// The agents that are listed at first, and at most.
const FEW_AGENTS: u64 = 20;
const MAX_AGENTS: u64 = 500;
/// Saved conversations on a page.
pub(super) const SESSIONS: u64 = 25;

#[derive(Debug, Deserialize)]
pub(crate) struct Params {
    agents: Option<u64>,
    /// Number of agents before those that are listed.
    agents_from: Option<u64>,
    page: Option<u64>,
}

/// Returns a link to as many agents as a page has, after the first `from`.
fn agents_link(from: u64) -> String {
    let from = (from > 0).then(|| from.to_string());
    query(&[("agents", Some(&MAX_AGENTS.to_string())), ("agents_from", from.as_deref())])
}

pub(crate) async fn show(State(app): State<Arc<App>>, QueryParams(params): QueryParams<Params>) -> PageResult {
    let frame = Frame::new(&app, "Conversations", Section::Conversations);
    let limit = params.agents.unwrap_or(FEW_AGENTS).clamp(1, MAX_AGENTS);
    let mut daemon = app.connect().await?;
    let mut overview = daemon.status(limit).await?;
    let mut from = 0;
    if params.agents.is_some() {
        // By name: which ones a status of some has depends on their number.
        let all = daemon.call::<agent::List>(agent::ListParams::default()).await?.agents;
        from = params.agents_from.unwrap_or_default().min((all.len() as u64).saturating_sub(1));
        let (skipped, limit) = (usize::try_from(from).unwrap_or(0), usize::try_from(limit).unwrap_or(usize::MAX));
        overview.status.agents = all.into_iter().skip(skipped).take(limit).collect();
    }
    let history = HistoryParams {
        all_agents: true,
        page: params.page,
        limit: Some(SESSIONS),
        keep_numbers: true,
        ..Default::default()
    };
    let history = daemon.call::<History>(history).await?;
    let when = When { now: overview.now, zone: &app.zone };
    let agents = overview.agents();
    let listed = overview.status.agents.len() as u64;
    let main = html! {
        @if history.page <= 1 {
            h1 { "Agents" }
            div #agents data-live {
                @if agents == 0 {
                    p.none { "No agents yet. Start a conversation: chorusctl chat. Keep those of other coding agents: chorusctl capture on." }
                }
                ul.rows { @for agent in &overview.status.agents { (agent_rows(agent, when)) } }
            }
            @if listed < agents {
                p.none {
                    @if from == 0 { (group_digits(listed)) } @else { (group_digits(from + 1)) "–" (group_digits(from + listed)) }
                    " of " (group_digits(agents)) " agents"
                    @if from > 0 { ", " a rel="prev" href=(agents_link(from.saturating_sub(MAX_AGENTS))) { "previous" } }
                    @if limit < MAX_AGENTS { ", " a href=(agents_link(0)) { "more" } }
                    @else if from + listed < agents { ", " a rel="next" href=(agents_link(from + listed)) { "more" } }
                }
            }
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
