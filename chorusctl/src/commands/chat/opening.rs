//! How a conversation begins: with what it goes on.

use chorus_proto::methods::approvals::{List, ListParams};
use chorus_proto::methods::context::{Clear, ClearParams, Show, ShowParams, ShowResult};
use chorus_proto::{ContextInfo, Message, Role};
use jiff::Timestamp;

use super::Begin;
use crate::app::App;
use crate::commands::{approvals, context, describe};
use crate::error::Failure;
use crate::ui::words::count;
use crate::ui::{Style, safe, text};

/// Messages that are shown again, and how many lines of each.
const SHOWN: u64 = 2;
const LINES: usize = 4;
const WIDEST: usize = 100;

/// What is gone on with.
#[derive(Debug)]
pub struct Opened {
    pub agent: String,
    /// When the live context began; `None`: there is none.
    pub since: Option<Timestamp>,
}

/// Looks what there is, and says so, after it was put away where that is asked for.
///
/// # Errors
/// Why there is nothing to go on with.
pub fn open(app: &mut App, begin: Begin<'_>, person: bool) -> Result<Opened, Failure> {
    match begin {
        Begin::GoOn => {}
        Begin::New => begin_anew(app)?,
        Begin::Resume(session) => context::resume::beside(session, app)?,
    }
    let last = if person { SHOWN } else { 0 };
    let shown = app.call::<Show>(&look(app.agent(), last))?;
    if !app.out.quiet() {
        tell(app, &shown, person);
    }
    if person {
        tell_asked(app, &shown.agent_name);
    }
    Ok(Opened { since: since(shown.context.as_ref()), agent: shown.agent_name })
}

/// When the live context began, as it is now.
///
/// # Errors
/// [`Failure`]: no connection, or what the daemon says.
pub fn now(app: &mut App) -> Result<Option<Timestamp>, Failure> {
    let shown = app.call::<Show>(&look(app.agent(), 0))?;
    Ok(since(shown.context.as_ref()))
}

/// Saves what is unsaved, and clears.
///
/// # Errors
/// Why it was not cleared.
pub fn begin_anew(app: &mut App) -> Result<(), Failure> {
    let cleared = app.call::<Clear>(&ClearParams { agent: app.agent(), save: true })?;
    if let Some(session) = &cleared.saved {
        let line = format!("the conversation before is kept: {}", describe::plain(session));
        note(app, &line);
    }
    Ok(())
}

fn look(agent: Option<String>, last: u64) -> ShowParams {
    let limit = (last == 0).then_some(0);
    ShowParams { agent, last: (last > 0).then_some(last), limit, ..ShowParams::default() }
}

fn since(context: Option<&ContextInfo>) -> Option<Timestamp> {
    context.filter(|context| context.messages > 0).map(|context| context.started_at)
}

fn tell(app: &mut App, shown: &ShowResult, person: bool) {
    let agent = safe::one_line(&shown.agent_name);
    let help = if person { "; /help lists the commands" } else { "" };
    let Some(context) = shown.context.as_ref().filter(|context| context.messages > 0) else {
        return note(app, &format!("{agent} · a new conversation{help}"));
    };
    let began = app.out.clock().local(context.started_at);
    let messages = count(context.messages, "message");
    note(app, &format!("{agent} · going on with {messages} since {began}{help}"));
    for message in &shown.messages {
        for line in lines(message, &agent, app.out.width().unwrap_or(WIDEST).min(WIDEST)) {
            app.notes.styled(Style::Faint, &line);
        }
    }
}

/// A turn that was begun elsewhere may wait for an answer, and with it all that is said here.
fn tell_asked(app: &mut App, agent: &str) {
    let params = ListParams { agent: Some(agent.to_owned()), ..ListParams::default() };
    // What cannot be told here is no reason not to talk.
    let open = app.call::<List>(&params).map_or(0, |found| found.approvals.len());
    if open > 0 {
        app.notes.line(&approvals::shown::waiting(open as u64));
    }
}

/// The beginning of a message.
fn lines(message: &Message, agent: &str, width: usize) -> Vec<String> {
    let who = match message.role {
        Role::User => "you",
        Role::Assistant => agent,
        Role::System => "system",
        Role::ToolResult => "result",
    };
    let calls = message.tool_calls.iter().map(|call| format!("→ {}", safe::one_line(&call.name)));
    let said = Some(message.content.trim()).filter(|said| !said.is_empty()).map(|said| safe::clean(said).into_owned());
    let told: Vec<String> = said.into_iter().chain(calls).collect();
    let told = format!("{who}: {}", told.join("\n"));
    let wrapped = text::wrap(&told, width.saturating_sub(2));
    let more = wrapped.len() > LINES;
    let mut lines: Vec<String> = wrapped.into_iter().take(LINES).map(|line| format!("  {line}")).collect();
    if let Some(last) = lines.last_mut().filter(|_| more) {
        last.push_str(" …");
    }
    lines
}

fn note(app: &App, line: &str) {
    if !app.out.quiet() {
        app.notes.line(line);
    }
}
