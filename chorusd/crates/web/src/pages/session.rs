//! A saved conversation.

use std::sync::Arc;

use axum::extract::State;
use chorus_proto::methods::session::{Get, GetParams, GetResult};
use chorus_proto::{Message, Trigger};
use chorus_session::export::html::MessageStyle;
use chorus_terminal_text::units::count_messages;
use jiff::SignedDuration;
use maud::html;
use serde::Deserialize;
use uuid::Uuid;

use super::messages::{MESSAGES, Page, PageBefore, render};
use crate::app::{App, Daemon, Overview};
use crate::extract::{PathParams, QueryParams};
use crate::failure_page::{PageResult, page};
use crate::layout::{self, Frame, Section};
use crate::text::{agent_path, clock, session_path, short, title};
use chorus_daemon_client::Failure;

/// A captured conversation that was not continued for so long is not looked at again while it is shown.
const GROWTH_LIMIT: SignedDuration = SignedDuration::from_hours(24);

#[derive(Debug, Deserialize)]
pub(crate) struct Params {
    from: Option<u64>,
    /// The number of the message after the page.
    before: Option<u64>,
    m: Option<u64>,
}

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    PathParams(id): PathParams<Uuid>,
    QueryParams(params): QueryParams<Params>,
) -> PageResult {
    let revision = app.hub.revision();
    let mut daemon = app.connect().await?;
    // Whoever names an agent, whichever it is, may read the sessions of all by their id.
    let overview = daemon.status(1).await?;
    let (shown, start) = match params.before {
        Some(before) => get_before(&mut daemon, &overview, id, before).await?,
        None => {
            let start = Page::find(u64::MAX, params.from, params.m, 0).start;
            get(&mut daemon, &overview, id, start).await?
        }
    };
    let header = &shown.session.header;
    let place = Page { start, total: header.message_count };
    let path = session_path(id);
    let name = title(header.description.as_deref(), header.summary.as_deref(), &header.session_id);
    let link = format!("{path}?m={{number}}");
    let style = MessageStyle { agent_name: &header.agent_name, link: &link, zone: &app.zone };
    let model = |message: &Message| match message.imported_from() {
        Some(_) if header.trigger != Trigger::Import => None,
        _ => header.model.as_deref(),
    };
    let last = format!("{path}?before={0}#m{1}", place.total + 1, place.total);
    let links = place.links(shown.messages.len() as u64, &path, &last);
    let agent = agent_path(&header.agent_name);
    // Another program may go on with it, without an event.
    let idle = overview.now.duration_since(header.held_at());
    let is_growing = header.trigger == Trigger::Import && idle < GROWTH_LIMIT;
    let on = is_growing.then_some("poll");
    let links = |id: &str| html! { div #(id) data-live[is_growing] data-on=[on] { (links) } };
    let main = html! {
        div.heading {
            h1 { (name) }
        }
        p #about .line data-live[is_growing] data-on=[on] {
            a href=(agent) { (short(&header.agent_name, 64)) }
            @if let Some(conversation) = &header.conversation { " · " (short(&conversation.name, 64)) }
            @if let Some(model) = &header.model { " · " (short(model, 64)) }
            " · " (count_messages(header.message_count))
            " · saved " (clock(header.saved_at, &app.zone)) ", " (header.trigger.reason())
            @for tag in &header.tags { " " span.tag { "#" (short(tag, 40)) } }
            " · " a href=(format!("{agent}/tree?of={id}#s{id}")) { "tree" }
        }
        @if let Some(summary) = header.summary.as_deref().filter(|_| header.description.is_some()) { p.summary { (short(summary, 2000)) } }
        @for warning in &shown.warnings { p.warning { (warning) } }
        (links("links"))
        section #messages data-live[is_growing] data-on=[on] { (render(&shown.messages, start + 1, &style, model)) }
        (links("links-below"))
        p.none { "Continue it: " code { "chorusctl restore " (shown.session.short_id) } }
    };
    let frame = Frame { revision, ..Frame::new(&app, &name, Section::Conversations) };
    Ok(page(layout::page(&frame, &overview, &main)))
}

fn get_params(overview: &Overview, id: Uuid, offset: u64, limit: u64) -> GetParams {
    GetParams {
        agent: overview.status.agents.first().map(|agent| agent.name.clone()),
        session: id.to_string(),
        offset: Some(offset),
        limit: Some(limit),
        ..Default::default()
    }
}

/// Reads the page of a session before the message with the number `before`, or the last one.
async fn get_before(
    daemon: &mut Daemon,
    overview: &Overview,
    id: Uuid,
    before: u64,
) -> Result<(GetResult, u64), Failure> {
    let header = daemon.call::<Get>(get_params(overview, id, 0, 0)).await?.session.header;
    let mut part = PageBefore::new(before, header.message_count);
    loop {
        let shown = daemon.call::<Get>(get_params(overview, id, part.start, part.limit())).await?;
        match part.after(shown.messages.len() as u64) {
            Some(next) => part = next,
            None => return Ok((shown, part.start)),
        }
    }
}

/// Reads a page of a session. A page after the end becomes the last one.
async fn get(daemon: &mut Daemon, overview: &Overview, id: Uuid, start: u64) -> Result<(GetResult, u64), Failure> {
    let params = |offset| get_params(overview, id, offset, MESSAGES);
    if start == 0 {
        return Ok((daemon.call::<Get>(params(0)).await?, 0));
    }
    let header = daemon.call::<Get>(GetParams { limit: Some(0), ..params(0) }).await?.session.header;
    let start = start.min(header.message_count.saturating_sub(1));
    Ok((daemon.call::<Get>(params(start)).await?, start))
}
