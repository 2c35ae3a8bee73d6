//! Start of a chat: prepares the context and prints a recap of it.

use chorus_proto::methods::approvals::{List, ListParams};
use chorus_proto::methods::context::{Clear, ClearParams, Show, ShowParams, ShowResult};
use chorus_proto::methods::{agent, conversations};
use chorus_proto::{ContextInfo, ConversationRef, Message, Meter, Role};
use jiff::Timestamp;

use super::StartMode;
use crate::app::App;
use crate::commands::{approvals, context, format};
use crate::error::Error;
use crate::ui::units::pluralize;
use crate::ui::{Style, sanitize, text};

/// Number of messages in the recap, lines of each, and columns.
const RECAP_MESSAGES: u64 = 2;
const MAX_LINES_PER_MESSAGE: usize = 4;
const MAX_RECAP_WIDTH: usize = 100;

/// The conversation that a chat continues.
#[derive(Debug)]
pub(super) struct ConversationStart {
    pub agent: String,
    /// `None` for `main`.
    pub conversation: Option<ConversationRef>,
    pub position: Position,
}

/// Position of the live conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// When it began; `None` if it is empty.
    pub started_at: Option<Timestamp>,
    pub messages: u64,
    /// How full the model's window would be with the next request.
    pub meter: Option<Meter>,
}

/// Prepares the context as `begin` says and prints what the chat continues.
pub(super) fn open_conversation(app: &mut App, begin: StartMode<'_>, person: bool) -> Result<ConversationStart, Error> {
    match begin {
        StartMode::Continue => {}
        StartMode::New => start_new(app)?,
        StartMode::Resume(session) => context::resume::run_for_chat(session, app)?,
    }
    let last = if person { RECAP_MESSAGES } else { 0 };
    let shown = app.call::<Show>(&show_params(app, last))?;
    if !app.stdout.is_quiet() {
        print_recap(app, &shown, person);
    }
    if person {
        print_open_approvals(app, &shown.agent_name);
    }
    Ok(ConversationStart {
        position: position(shown.context.as_ref()),
        agent: shown.agent_name,
        conversation: shown.conversation,
    })
}

/// Asks the daemon where the live conversation stands.
pub(super) fn fetch_position(app: &mut App) -> Result<Position, Error> {
    let shown = app.call::<Show>(&show_params(app, 0))?;
    Ok(position(shown.context.as_ref()))
}

/// Saves unsaved messages, then clears the context.
pub(super) fn start_new(app: &mut App) -> Result<(), Error> {
    let cleared =
        app.call::<Clear>(&ClearParams { conversation: app.conversation(), agent: app.agent(), save: true })?;
    if let Some(session) = &cleared.saved {
        let line = format!("saved the previous conversation as {}", format::plain_session(session));
        print_note(app, &line);
    }
    Ok(())
}

fn show_params(app: &App, last: u64) -> ShowParams {
    let (agent, conversation) = (app.agent(), app.conversation());
    let limit = (last == 0).then_some(0);
    ShowParams { agent, conversation, last: (last > 0).then_some(last), limit, ..ShowParams::default() }
}

fn position(context: Option<&ContextInfo>) -> Position {
    let context = context.filter(|context| context.messages > 0);
    Position {
        started_at: context.map(|context| context.started_at),
        messages: context.map_or(0, |context| context.messages),
        meter: context.and_then(|context| context.meter),
    }
}

fn print_recap(app: &mut App, shown: &ShowResult, person: bool) {
    let agent = sanitize::one_line(&shown.agent_name);
    let heading = format::agent_and_conversation(&shown.agent_name, shown.conversation.as_ref());
    let help = if person { "; type /help for commands" } else { "" };
    let Some(context) = shown.context.as_ref().filter(|context| context.messages > 0) else {
        let state = match &shown.conversation {
            Some(conversation) if is_closed(app, conversation) => {
                "closed; a message reopens it; its earlier messages: chorusctl restore latest"
            }
            _ => "new conversation",
        };
        print_note(app, &format!("{heading} · {state}{help}"));
        return print_workspace(app, &shown.agent_name, person);
    };
    let last = shown.messages.last().map_or(context.last_activity_at, |message| message.timestamp);
    let last = app.stdout.clock().local_date_time(last);
    let messages = pluralize(context.messages, "message");
    print_note(app, &format!("{heading} · continuing ({messages}, last {last}){help}"));
    print_workspace(app, &shown.agent_name, person);
    for message in &shown.messages {
        for line in recap_lines(message, &agent, app.stdout.width().unwrap_or(MAX_RECAP_WIDTH).min(MAX_RECAP_WIDTH)) {
            app.stderr.quoted_line(Style::Faint, &line);
        }
    }
}

/// Returns true if the conversation was closed after its messages were saved.
fn is_closed(app: &mut App, conversation: &ConversationRef) -> bool {
    let params = conversations::ListParams { agent: app.agent(), all: true, ..conversations::ListParams::default() };
    // Not essential: on an error the chat starts without it.
    let all = app.call::<conversations::List>(&params).map(|listed| listed.conversations).unwrap_or_default();
    all.iter().any(|one| one.id == conversation.id && one.closed_at.is_some() && one.last_session.is_some())
}

/// Tells a person where the agent's tools work.
fn print_workspace(app: &mut App, agent: &str, person: bool) {
    if !person {
        return;
    }
    // Not essential: on an error the chat starts without it.
    if let Ok(shown) = app.call::<agent::Show>(&agent::ShowParams { name: Some(agent.to_owned()) }) {
        let has_worktrees = shown.config.get("workspace").and_then(|mode| mode.as_str()) == Some("worktree");
        let worktrees = if has_worktrees { " (main) and its git worktrees (other conversations)" } else { "" };
        let line = format!("its tools work in {}{worktrees}", format::workspace(&shown.agent));
        app.stderr.styled_line(Style::Faint, &line);
    }
}

/// Prints how many approvals are open. A turn that was started elsewhere may wait for one, and messages from here wait
/// behind that turn.
fn print_open_approvals(app: &mut App, agent: &str) {
    let params = ListParams { agent: Some(agent.to_owned()), ..ListParams::default() };
    // Not essential: on an error the chat starts without it.
    let open = app.call::<List>(&params).map_or(0, |found| found.approvals.len());
    if open > 0 {
        app.stderr.line(&approvals::format::format_waiting(open as u64));
    }
}

/// Formats the first lines of a message for the recap.
fn recap_lines(message: &Message, agent: &str, width: usize) -> Vec<String> {
    let who = match message.role {
        Role::User => "you",
        Role::Assistant => agent,
        Role::System => "system",
        Role::ToolResult => "result",
    };
    message_lines(message, who, width)
}

/// Formats the first lines of what somebody wrote.
pub(super) fn message_lines(message: &Message, who: &str, width: usize) -> Vec<String> {
    let calls = message.tool_calls.iter().map(|call| format!("→ {}", sanitize::one_line(&call.name)));
    let said = Some(message.content.trim())
        .filter(|said| !said.is_empty())
        .map(|said| sanitize::multi_line(said).into_owned());
    let told: Vec<String> = said.into_iter().chain(calls).collect();
    text_lines(who, &told.join("\n"), width)
}

/// Formats the first lines of a text that somebody wrote.
pub(super) fn text_lines(who: &str, said: &str, width: usize) -> Vec<String> {
    let told = format!("{who}: {}", sanitize::multi_line(said.trim()));
    let wrapped = text::wrap(&told, width.saturating_sub(2));
    let more = wrapped.len() > MAX_LINES_PER_MESSAGE;
    let mut lines: Vec<String> =
        wrapped.into_iter().take(MAX_LINES_PER_MESSAGE).map(|line| format!("  {line}")).collect();
    if let Some(last) = lines.last_mut().filter(|_| more) {
        last.push_str(" …");
    }
    lines
}

fn print_note(app: &App, line: &str) {
    if !app.stdout.is_quiet() {
        app.stderr.line(line);
    }
}
