//! A live conversation as it continues.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};
use axum::response::IntoResponse as _;
use chorus_base::new_id;
use chorus_daemon_client::Failure;
use chorus_proto::Agent;
use chorus_proto::RunningTurn;
use chorus_proto::methods::approvals;
use chorus_proto::methods::context::{Show, ShowParams, ShowResult};
use chorus_session::export::html::MessageStyle;
use chorus_terminal_text::units::count_messages;
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;

use super::approvals::render_approval;
use super::messages::{MESSAGES, Page, PageBefore, render};
use super::rows::{When, fullness};
use crate::app::{App, Daemon};
use crate::extract::{PathParams, QueryParams};
use crate::failure_page::{PageResult, page, respond};
use crate::layout::{self, Frame, Section};
use crate::text::{age, agent_path, live_path, query, short};

/// Approvals that are shown at the conversation that asks.
const MAX_APPROVALS: u64 = 100;

#[derive(Debug, Deserialize)]
pub(crate) struct Params {
    from: Option<u64>,
    /// The number of the message after the page.
    before: Option<u64>,
    m: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct NewParams {
    /// The messages that the page has.
    after: u64,
    /// When the context that they belong to was started.
    context: Option<Timestamp>,
    /// The id of the last one of them.
    last: Option<String>,
}

/// A conversation of an agent, as the address names it.
#[derive(Debug)]
struct Target {
    agent: String,
    conversation: Option<String>,
}

impl Target {
    fn new((agent, conversation): (String, String)) -> Self {
        Self { agent, conversation: Some(conversation).filter(|name| name != "main") }
    }

    fn path(&self) -> String {
        live_path(&self.agent, self.conversation.as_deref())
    }

    fn name(&self) -> String {
        match &self.conversation {
            Some(conversation) => format!("{} / {}", short(&self.agent, 64), short(conversation, 64)),
            None => short(&self.agent, 64),
        }
    }

    async fn read(&self, daemon: &mut Daemon, params: ShowParams) -> Result<ShowResult, Failure> {
        let (agent, conversation) = (Some(self.agent.clone()), self.conversation.clone());
        daemon.call::<Show>(ShowParams { agent, conversation, ..params }).await
    }
}

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    PathParams(place): PathParams<(String, String)>,
    QueryParams(params): QueryParams<Params>,
) -> PageResult {
    let revision = app.hub.revision();
    let target = Target::new(place);
    let mut daemon = app.connect().await?;
    let overview = daemon.status(0).await?;
    let is_last = params.from.is_none() && params.m.is_none();
    let (shown, start) = match (params.before, is_last) {
        (Some(before), _) => {
            let total = total_of(&target.read(&mut daemon, ShowParams { limit: Some(0), ..Default::default() }).await?);
            let mut part = PageBefore::new(before, total);
            loop {
                let (offset, limit) = (Some(part.start), Some(part.limit()));
                let shown = target.read(&mut daemon, ShowParams { offset, limit, ..Default::default() }).await?;
                match part.after(shown.messages.len() as u64) {
                    Some(next) => part = next,
                    None => break (shown, part.start),
                }
            }
        }
        (None, true) => {
            let shown = target.read(&mut daemon, ShowParams { last: Some(MESSAGES), ..Default::default() }).await?;
            let start = total_of(&shown).saturating_sub(shown.messages.len() as u64);
            (shown, start)
        }
        (None, false) => {
            // Which page has the message follows from its number; past the end the last one is shown.
            let start = Page::find(u64::MAX, params.from, params.m, 0).start;
            let part = |offset| ShowParams { offset: Some(offset), limit: Some(MESSAGES), ..Default::default() };
            let shown = target.read(&mut daemon, part(start)).await?;
            match total_of(&shown) {
                total if start < total || start == 0 => (shown, start),
                total => {
                    let start = total.saturating_sub(MESSAGES);
                    (target.read(&mut daemon, part(start)).await?, start)
                }
            }
        }
    };
    let state = render_state(&app, &target, &mut daemon).await?;
    let total = total_of(&shown);
    let end = start + shown.messages.len() as u64;
    let path = target.path();
    let name = target.name();
    let context = shown.context.as_ref().map(|context| context.started_at.to_string());
    let place = Page { start, total };
    let links = place.links(shown.messages.len() as u64, &path, &path);
    // Only the end of the conversation grows.
    let follows = end == total;
    let main = html! {
        div.heading {
            h1 { (name) }
            a href=(agent_path(&target.agent)) { "Saved" }
            a href=(format!("{}/tree", agent_path(&target.agent))) { "Tree" }
        }
        (links)
        section #messages data-follow=[follows.then(|| format!("{path}/new"))] data-count=(end) data-context=[context]
            data-last=[shown.messages.last().map(|message| &message.id)] {
            (render_messages(&app, &target, &shown, start + 1))
        }
        @if shown.messages.is_empty() { p.none #empty { "Nothing was said yet." } }
        @if follows { div #partial aria-live="polite" {} }
        @if !follows { (links) }
        (state)
        @if !app.is_read_only && follows { (render_box(&path)) }
    };
    let stream = query(&[("agent", Some(&target.agent)), ("conversation", target.conversation.as_deref())]);
    let frame = Frame { revision, stream, ..Frame::new(&app, &name, Section::Conversations) };
    Ok(page(layout::page(&frame, &overview, &main)))
}

/// The messages since those that a page has, without the rest of the page; `409` if it has to be read again.
pub(crate) async fn show_new(
    State(app): State<Arc<App>>,
    PathParams(place): PathParams<(String, String)>,
    QueryParams(params): QueryParams<NewParams>,
) -> PageResult {
    let target = Target::new(place);
    let mut daemon = app.connect().await?;
    // With the last one that the page has, which an undo may have replaced.
    let offset = params.after.saturating_sub(1);
    let part = ShowParams { offset: Some(offset), limit: Some(MESSAGES + 1), ..Default::default() };
    let mut shown = target.read(&mut daemon, part).await?;
    let context = shown.context.as_ref().map(|context| context.started_at);
    let is_other = params.context.is_some_and(|before| context != Some(before)) || total_of(&shown) < params.after;
    let known = (params.after > 0 && !shown.messages.is_empty()).then(|| shown.messages.remove(0).id);
    let is_replaced = params.last.is_some() && known != params.last;
    if shown.messages.is_empty() && params.after < total_of(&shown) && !is_replaced {
        // That one alone filled the answer of the daemon.
        let part = ShowParams { offset: Some(params.after), limit: Some(MESSAGES), ..Default::default() };
        shown = target.read(&mut daemon, part).await?;
    }
    if is_other || is_replaced || params.context.is_none() && params.after > 0 {
        return Ok((StatusCode::CONFLICT, "the conversation is another one now\n").into_response());
    }
    let mut response = respond(StatusCode::OK, render_messages(&app, &target, &shown, params.after + 1));
    let last = shown.messages.last().map(|message| message.id.clone()).or(known);
    let about = [
        ("x-context", context.map(|at| at.to_string())),
        ("x-last", last),
        ("x-total", Some(total_of(&shown).to_string())),
    ];
    for (name, value) in about {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}

/// The state of the conversation, without the rest of the page.
pub(crate) async fn show_state(
    State(app): State<Arc<App>>,
    PathParams(place): PathParams<(String, String)>,
) -> PageResult {
    let target = Target::new(place);
    let mut daemon = app.connect().await?;
    Ok(page(render_state(&app, &target, &mut daemon).await?))
}

fn total_of(shown: &ShowResult) -> u64 {
    shown.context.as_ref().map_or(0, |context| context.messages)
}

fn render_messages(app: &App, target: &Target, shown: &ShowResult, first: u64) -> Markup {
    let link = format!("{}?m={{number}}", target.path());
    let style = MessageStyle { agent_name: &target.agent, link: &link, zone: &app.zone };
    render(&shown.messages, first, &style, |_| None)
}

/// Renders the pending approvals of the conversation, the running turn, and how full the context is.
async fn render_state(app: &App, target: &Target, daemon: &mut Daemon) -> Result<Markup, Failure> {
    let agent = daemon.agent(&target.agent).await?;
    let list =
        approvals::ListParams { agent: Some(target.agent.clone()), limit: Some(MAX_APPROVALS), ..Default::default() };
    let asked = match agent.approvals {
        0 => Vec::new(),
        _ => daemon.call::<approvals::List>(list).await?.approvals,
    };
    let asked = asked.iter().filter(|approval| approval.conversation == target.conversation);
    let now = Timestamp::now();
    let when = When { now, zone: &app.zone };
    let path = target.path();
    let (context, turn) = parts(&agent, target);
    Ok(html! {
        div #state data-live data-src=(format!("{path}/state")) data-on="approval. context. turn." {
            @for approval in asked { (render_approval(app, approval, now, &path)) }
            @if let Some(turn) = turn { (render_turn(app, turn, &path)) }
            p.line.about {
                @if let Some(context) = context {
                    span { (count_messages(context.messages)) }
                    span { (fullness(context)) }
                    span { (age(context.last_activity_at, when.now, when.zone)) }
                    @if context.unsaved > 0 { span { (context.unsaved) " unsaved" } }
                }
                @if let Some(model) = &agent.model { span { (short(model, 64)) } }
                @if let Some(blocked) = &agent.blocked { span.bad { (short(&blocked.reason, 300)) } }
            }
        }
    })
}

fn parts<'a>(agent: &'a Agent, target: &Target) -> (Option<&'a chorus_proto::ContextInfo>, Option<&'a RunningTurn>) {
    match &target.conversation {
        None => (agent.context.as_ref(), agent.turn.as_ref()),
        Some(name) => {
            let found = agent.conversations.iter().find(|conversation| conversation.name == *name);
            (found.and_then(|found| found.context.as_ref()), found.and_then(|found| found.turn.as_ref()))
        }
    }
}

fn render_turn(app: &App, turn: &RunningTurn, path: &str) -> Markup {
    html! {
        form.turn method="post" action=(format!("{path}/cancel")) data-post {
            input type="hidden" name="turn" value=(turn.turn_id);
            span.badge.works { "working" }
            @if turn.waiting > 0 { span { (turn.waiting) " queued" } }
            @if !app.is_read_only { button { "Cancel" } }
            p.problem role="alert" {}
        }
    }
}

fn render_box(path: &str) -> Markup {
    html! {
        form.answer #answer method="post" action=(format!("{path}/send")) data-post data-clear {
            input type="hidden" name="key" value=(format!("web:{}", new_id()));
            textarea #text name="text" rows="3" required placeholder="Write a message" aria-label="Message" {}
            div.send {
                p.problem role="alert" {}
                button { "Send" }
            }
        }
    }
}
