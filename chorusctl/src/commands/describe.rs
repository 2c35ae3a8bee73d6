//! Sessions and agents in a line or two; several verbs tell of them in the same words.

use chorus_proto::{AgentState, ContextInfo, Session};

use crate::error::Failure;
use crate::ui::words::{count, tokens};
use crate::ui::{Cell, Out, Style, safe, text};

/// `2026-11-21_before-the-migration (1f3a9c02, 47 messages)`.
#[must_use]
pub fn session(out: &Out, session: &Session) -> String {
    let short = safe::one_line(&session.short_id);
    format!(
        "{} ({}, {})",
        out.paint(Style::Strong, &safe::one_line(&session.header.session_id)),
        out.paint(Style::Id, &short),
        count(session.header.message_count, "message"),
    )
}

/// What a session was about, in one line: its description and its summary.
#[must_use]
pub fn subject(description: Option<&str>, summary: Option<&str>) -> String {
    let shown = [description, summary].into_iter().flatten().map(safe::one_line).filter(|text| !text.is_empty());
    shown.collect::<Vec<_>>().join(" – ")
}

/// A paragraph indented by two, within the terminal; silent when asked to be quiet.
///
/// # Errors
/// [`Failure`] when standard output does not take it.
pub fn paragraph(out: &mut Out, paragraph: &str) -> Result<(), Failure> {
    if out.quiet() || paragraph.trim().is_empty() {
        return Ok(());
    }
    let paragraph = safe::clean(paragraph.trim());
    match out.width() {
        Some(width) => {
            for line in text::wrap(&paragraph, width.min(100) - 2) {
                writeln!(out, "  {line}")?;
            }
        }
        None => {
            for line in paragraph.lines() {
                writeln!(out, "  {line}")?;
            }
        }
    }
    Ok(())
}

/// Tells that a session was saved, and what it was about.
///
/// # Errors
/// [`Failure`] when standard output does not take it.
pub fn saved(out: &mut Out, saved: &Session) -> Result<(), Failure> {
    let line = format!("saved {}", session(out, saved));
    out.done(&line)?;
    paragraph(out, saved.header.summary.as_deref().unwrap_or_default())
}

/// `active`, green, or `idle`.
#[must_use]
pub fn state(state: AgentState) -> Cell {
    match state {
        AgentState::Active => Cell::new(Style::Good, "active"),
        AgentState::Idle => Cell::new(Style::Plain, "idle"),
        AgentState::Destroyed => Cell::new(Style::Bad, "destroyed"),
    }
}

/// `47 messages, ~12k tokens, 3 unsaved`.
#[must_use]
pub fn context(context: &ContextInfo) -> String {
    let mut told = format!("{}, {} tokens", count(context.messages, "message"), tokens(context.token_estimate));
    match context.unsaved {
        0 if context.messages > 0 => told.push_str(", all saved"),
        0 => {}
        unsaved => told.push_str(&format!(", {unsaved} unsaved")),
    }
    told
}

/// The name of a permission profile, or `custom`.
#[must_use]
pub fn permissions(permissions: &serde_json::Value) -> String {
    permissions.as_str().map_or_else(|| "custom".to_owned(), safe::one_line)
}
