//! Rows of lists: agents with their conversations, saved sessions.

use chorus_proto::methods::conversations::Conversation;
use chorus_proto::{Agent, ContextInfo, RunningTurn, Session, SessionSource};
use chorus_terminal_text::units::{count_messages, format_dollars, format_tokens};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};

use crate::text::{age, agent_path, live_path, session_path, short, title};

/// A moment and the time zone in which it is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct When<'a> {
    pub(crate) now: Timestamp,
    pub(crate) zone: &'a TimeZone,
}

/// Returns the rows of an agent: `main`, and its other conversations that are live.
pub(super) fn agent_rows(agent: &Agent, when: When<'_>) -> Markup {
    let link = match &agent.import_source {
        Some(_) => agent_path(&agent.name),
        None => live_path(&agent.name, None),
    };
    let cost =
        agent.today.as_ref().and_then(|today| today.cost_usd).map(|cost| format!("{} today", format_dollars(cost)));
    let model = agent.model.as_deref().map(|model| short(model, 60));
    html! {
        li {
            a.row data-item href=(link) {
                b.name { (short(&agent.name, 64)) }
                (state(agent.context.as_ref(), agent.turn.as_ref(), agent.approvals, agent))
                span.about {
                    @if let Some(context) = &agent.context { (facts(context, when)) }
                    @else if let Some(last) = &agent.last_session {
                        span { (title(last.description.as_deref(), last.summary.as_deref(), &last.session_id)) }
                        span { (age(last.held_at(), when.now, when.zone)) }
                    }
                    @if let Some(model) = model { span { (model) } }
                    @if let Some(cost) = cost { span { (cost) } }
                }
            }
        }
        @for conversation in &agent.conversations { (conversation_row(&agent.name, conversation, when)) }
    }
}

/// Returns the row of a conversation besides `main`.
pub(super) fn conversation_row(agent: &str, conversation: &Conversation, when: When<'_>) -> Markup {
    html! {
        li {
            a.row data-item href=(live_path(agent, Some(&conversation.name))) {
                b.name { (short(agent, 64)) " / " (short(&conversation.name, 64)) }
                @if conversation.turn.is_some() { span.badge.works { "working" } }
                @else if conversation.context.is_some() { span.badge.live { "live" } }
                @else if conversation.closed_at.is_some() { span.badge { "closed" } }
                @if let Some(text) = conversation.title.as_deref() { span.title { (short(text, 120)) } }
                span.about {
                    @if let Some(context) = &conversation.context { (facts(context, when)) }
                    @else { span { (age(conversation.created_at, when.now, when.zone)) } }
                }
            }
        }
    }
}

fn state(context: Option<&ContextInfo>, turn: Option<&RunningTurn>, approvals: u64, agent: &Agent) -> Markup {
    html! {
        @if approvals > 0 { span.badge.asks { "asks" } }
        @if turn.is_some() { span.badge.works { "working" } }
        @else if context.is_some() { span.badge.live { "live" } }
        @else if agent.import_source.is_some() { span.badge { "captured" } }
        @else if agent.unreachable { span.badge.asks { "unreachable" } }
        @else { span.badge { "idle" } }
    }
}

fn facts(context: &ContextInfo, when: When<'_>) -> Markup {
    html! {
        span { (count_messages(context.messages)) }
        span { (fullness(context)) }
        span { (age(context.last_activity_at, when.now, when.zone)) }
    }
}

/// Says how full the context is.
pub(super) fn fullness(context: &ContextInfo) -> String {
    let Some(meter) = context.meter else { return format!("{} tokens", format_tokens(context.token_estimate)) };
    match meter.window.filter(|window| *window > 0) {
        Some(window) => format!("{} % full", meter.used.saturating_mul(100) / window),
        None => format!("{} tokens", format_tokens(meter.used)),
    }
}

/// Returns the row of a saved session.
pub(super) fn session_row(session: &Session, when: When<'_>) -> Markup {
    let header = &session.header;
    let program = header.source.as_ref().and_then(SessionSource::known_program);
    html! {
        li {
            a.row data-item href=(session_path(header.id)) {
                span.title { (title(header.description.as_deref(), header.summary.as_deref(), &header.session_id)) }
                @if !session.available { span.badge.asks { "file missing" } }
                span.about {
                    span { (short(program.unwrap_or(&header.agent_name), 64)) }
                    @if let Some(conversation) = &header.conversation { span { (short(&conversation.name, 64)) } }
                    span { (count_messages(header.message_count)) }
                    @for tag in &header.tags { span.tag { "#" (short(tag, 40)) } }
                    span { (age(header.held_at(), when.now, when.zone)) }
                }
            }
        }
    }
}
