//! Formats sessions and agents in the words that several commands share.

use std::path::{Path, PathBuf};

use chorus_proto::{
    Agent, AgentState, ContextInfo, ConversationRef, Meter, RunningTurn, Session, SummarySource, TokenPair,
    TokenSource, ToolsShown,
};

use crate::error::Error;
use crate::ui::meter::{self, BarStyle};
use crate::ui::units::{format_token_count, format_tokens, group_digits, pluralize};
use crate::ui::{Cell, Stdout, Style, sanitize, terminal, text, time};

/// Formats `2026-11-21_before-the-migration (1f3a9c02, 47 messages)`.
#[must_use]
pub fn session(out: &Stdout, session: &Session) -> String {
    let named = session_name(out, session);
    format!("{}, {})", named.trim_end_matches(')'), pluralize(session.header.message_count, "message"))
}

/// Formats `2026-11-21_before-the-migration (1f3a9c02)`.
#[must_use]
pub fn session_name(out: &Stdout, session: &Session) -> String {
    format!(
        "{} ({})",
        out.style(Style::Strong, &sanitize::one_line(&session.header.session_id)),
        out.style(Style::Id, &sanitize::one_line(&session.short_id)),
    )
}

/// Formats `api`, or `api · review` for the conversation `review` of `api`.
#[must_use]
pub fn agent_and_conversation(agent: &str, conversation: Option<&ConversationRef>) -> String {
    let agent = sanitize::one_line(agent);
    match conversation {
        Some(conversation) => format!("{agent} · {}", sanitize::one_line(&conversation.name)),
        None => agent,
    }
}

/// Formats `api`, or `api (review)` for the conversation `review` of `api`, within a sentence.
#[must_use]
pub fn who(agent: &str, conversation: Option<&str>) -> String {
    let agent = sanitize::one_line(agent);
    match conversation {
        Some(conversation) => format!("{agent} ({})", sanitize::one_line(conversation)),
        None => agent,
    }
}

/// Formats ` into the new conversation review`; empty for `None`.
#[must_use]
pub fn into_conversation(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!(" into the new conversation {}", sanitize::one_line(name)))
}

/// Prints how to continue in the new conversation `name`; nothing for `None`.
pub fn print_destination(out: &mut Stdout, name: Option<&str>) -> Result<(), Error> {
    let Some(name) = name else { return Ok(()) };
    out.status_line(&format!("  continue there: chorusctl -C {} chat", sanitize::one_line(name)))
}

/// Says who wrote a summary; empty if nobody did.
#[must_use]
pub fn summary_author(source: SummarySource) -> &'static str {
    match source {
        SummarySource::Llm => "the model",
        SummarySource::Extractive => "the built-in summarizer",
        SummarySource::Given => "the import or a person",
        SummarySource::None => "",
    }
}

/// Formats `found 2 secrets and kept them`.
#[must_use]
pub fn found_secrets(number: u64) -> String {
    format!("found {} and kept {}", pluralize(number, "secret"), if number == 1 { "it" } else { "them" })
}

/// Prints which session holds the live context that was replaced, if one was saved.
pub fn print_saved_first(out: &mut Stdout, saved: Option<&Session>) -> Result<(), Error> {
    let Some(saved) = saved else { return Ok(()) };
    let line = format!("saved the previous conversation as {}", session(out, saved));
    out.status_line(&line)
}

/// Formats how many of a session's messages a live context of `live` messages has: `47 messages`, `the first 12 of 47
/// messages`.
#[must_use]
pub fn loaded_messages(live: u64, session: &Session) -> String {
    match session.header.message_count {
        all if live == all => pluralize(live, "message"),
        all => format!("the first {} of {} messages", group_digits(live), group_digits(all)),
    }
}

/// Formats [`session_name`] without colours. Standard error shows escape sequences instead of passing them on.
#[must_use]
pub fn plain_session_name(session: &Session) -> String {
    format!("{} ({})", sanitize::one_line(&session.header.session_id), sanitize::one_line(&session.short_id))
}

/// Formats [`session`] without colours.
#[must_use]
pub fn plain_session(session: &Session) -> String {
    let named = plain_session_name(session);
    format!("{}, {})", named.trim_end_matches(')'), pluralize(session.header.message_count, "message"))
}

/// Returns the title of a session on one line: its description, else the start of its summary, else its name.
#[must_use]
pub fn title(description: Option<&str>, summary: Option<&str>, name: &str) -> String {
    let texts = [description, summary, Some(name)].into_iter().flatten().map(sanitize::one_line);
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

/// Joins description and summary of a session into one line.
#[must_use]
pub fn subject(description: Option<&str>, summary: Option<&str>) -> String {
    let [description, summary] = [description, summary].map(|text| sanitize::one_line(text.unwrap_or_default()));
    // Skip a description that repeats the beginning of the summary.
    let told = description.trim_end_matches(['.', '…', '!', '?']);
    match (description.is_empty(), summary.is_empty()) {
        (_, true) => description,
        (true, _) => summary,
        _ if summary.starts_with(told) => summary,
        _ => format!("{description} – {summary}"),
    }
}

/// Prints a paragraph indented by two columns and wrapped to the terminal; nothing with --quiet.
pub fn print_paragraph(out: &mut Stdout, paragraph: &str) -> Result<(), Error> {
    if out.is_quiet() || paragraph.trim().is_empty() {
        return Ok(());
    }
    let paragraph = sanitize::multi_line(paragraph.trim());
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

/// Prints that a session was saved, and its summary.
pub fn print_saved(out: &mut Stdout, saved: &Session) -> Result<(), Error> {
    let line = format!("saved {}", session(out, saved));
    out.status_line(&line)?;
    print_paragraph(out, saved.header.summary.as_deref().unwrap_or_default())
}

/// Formats an agent's state as a table cell; `active` is green.
#[must_use]
pub fn state_cell(state: AgentState) -> Cell {
    match state {
        AgentState::Active => Cell::new(Style::Good, "active"),
        AgentState::Idle => Cell::new(Style::Plain, "idle"),
        AgentState::Destroyed => Cell::new(Style::Bad, "destroyed"),
    }
}

/// Formats an agent's state as [`state_cell`] does; `unreachable` if its node does not answer, and `unclaimed` if no node has it.
#[must_use]
pub fn agent_state_cell(agent: &Agent) -> Cell {
    match agent {
        Agent { unreachable: true, .. } => Cell::new(Style::Bad, "unreachable"),
        Agent { unclaimed: true, .. } => Cell::new(Style::Faint, "unclaimed"),
        _ => state_cell(agent.state),
    }
}

/// Returns whether agents are those of a cluster, so that they have a node, or none at the moment.
#[must_use]
pub fn have_nodes(agents: &[Agent]) -> bool {
    agents.iter().any(|agent| agent.node.is_some() || agent.unclaimed)
}

/// Formats the node of a cluster that has an agent; `-` if none has it.
#[must_use]
pub fn node(agent: &Agent) -> String {
    let none = if agent.unclaimed { "-" } else { "" };
    sanitize::one_line(agent.node.as_deref().unwrap_or(none))
}

/// Formats how long a turn has been running, or waiting for other turns of its agent, as a table cell.
#[must_use]
pub fn running_cell(turn: &RunningTurn) -> Cell {
    let (style, verb) = if turn.waits_for_slot { (Style::Plain, "waiting") } else { (Style::Good, "running") };
    Cell::new(style, format!("{verb} {}", time::format_two_units(turn.seconds)))
}

/// Formats `step 3, 42 s, 1 waiting`.
#[must_use]
pub fn turn(turn: &RunningTurn) -> String {
    let for_slot = if turn.waits_for_slot { ", waiting for other turns (concurrent_turns)" } else { "" };
    let waiting = if turn.waiting == 0 { String::new() } else { format!(", {} waiting", turn.waiting) };
    format!("step {}, {}{for_slot}{waiting}", turn.step, time::format_two_units(turn.seconds))
}

/// Returns the directory in which the tools of an agent work.
#[must_use]
pub fn workspace_path(agent: &Agent) -> PathBuf {
    agent.workspace.as_ref().map_or_else(|| Path::new(&agent.path).join("workspace"), PathBuf::from)
}

/// Returns the directory in which the tools of an agent work, with `~` for the user's home.
#[must_use]
pub fn workspace(agent: &Agent) -> String {
    let path = workspace_path(agent);
    let home = std::env::home_dir().filter(|home| home.parent().is_some());
    let short = home.and_then(|home| Some(Path::new("~").join(path.strip_prefix(home).ok()?)));
    sanitize::one_line(&short.unwrap_or(path).to_string_lossy())
}

/// Formats `47 messages, ~12k tokens, 3 unsaved`.
#[must_use]
pub fn context(context: &ContextInfo) -> String {
    let mut told =
        format!("{}, {}", pluralize(context.messages, "message"), format_token_count(context.token_estimate));
    match context.unsaved {
        0 if context.messages > 0 => told.push_str(", no unsaved messages"),
        0 => {}
        unsaved => told.push_str(&format!(", {unsaved} unsaved")),
    }
    if !context.restoration_tokens.is_zero() {
        told.push_str(&format!(", {}", restoration_cost(context.restoration_tokens)));
    }
    if let Some(meter) = &context.meter {
        told.push_str(&format!(", next request {}", prompt_size(meter)));
    }
    told
}

/// Formats `resuming cost 135 tokens`.
#[must_use]
pub fn restoration_cost(cost: TokenPair) -> String {
    format!("resume costs {}", format_token_count(cost.input.saturating_add(cost.output)))
}

/// Formats `~12k of 200k tokens (estimated)`: tokens of the next request, the model's context length, and how the tokens
/// were found. Adds `few tools` or `no tools` if the context length is too small for all tools.
#[must_use]
pub fn prompt_size(meter: &Meter) -> String {
    let source = meter.source.map(|source| match source {
        TokenSource::Exact => "exact",
        TokenSource::Provider => "counted by the provider",
        TokenSource::Estimated => "estimated",
    });
    let notes: Vec<&str> = source.into_iter().chain(tools_note(meter)).collect();
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    let used = format_tokens(meter.used);
    match meter.window {
        Some(window) => format!("{used} of {} tokens{notes}", format_tokens(window).trim_start_matches('~')),
        None => format!("{used} tokens{notes}"),
    }
}

/// Formats the same for a table: `12k/200k exact`, `~12k/200k` if it is an estimate.
#[must_use]
pub fn short_prompt_size(meter: &Meter) -> String {
    let source = match meter.source {
        Some(TokenSource::Exact) => " exact",
        Some(TokenSource::Provider) => " counted",
        Some(TokenSource::Estimated) | None => "",
    };
    let tools = tools_note(meter).map(|note| format!(", {note}")).unwrap_or_default();
    let used = format_tokens(meter.used);
    match meter.window {
        Some(window) => format!("{used}/{}{source}{tools}", format_tokens(window).trim_start_matches('~')),
        None => format!("{used}{source}"),
    }
}

/// Formats how full the context is, as a bar with its percentage in `columns` columns of a terminal; `None` if its length is not
/// known.
#[must_use]
pub fn context_meter(meter: &Meter, columns: usize) -> Option<String> {
    meter::percent_used(meter)?;
    Some(meter::format_meter(meter, columns, BarStyle::new(terminal::has_box_drawing())))
}

fn tools_note(meter: &Meter) -> Option<&'static str> {
    meter.window.and(meter.tools).map(|tools| match tools {
        ToolsShown::Few => "few tools",
        ToolsShown::None => "no tools",
    })
}

/// Formats the name of a permission profile, or `custom`; empty if unknown.
#[must_use]
pub fn permissions(permissions: &serde_json::Value) -> String {
    if permissions.is_null() {
        return String::new();
    }
    permissions.as_str().map_or_else(|| "custom".to_owned(), sanitize::one_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_tells_the_window_where_it_is_known() {
        let meter = |used, window| Meter { used, window, calibrated: false, tools: None, source: None };
        let told = |used, window| prompt_size(&meter(used, window));
        assert_eq!([told(11_800, Some(200_000)), told(950, Some(8192))], ["~11k of 200k tokens", "950 of 8.1k tokens"]);
        assert_eq!(told(11_800, None), "~11k tokens");
        let small = Meter { tools: Some(ToolsShown::Few), ..meter(950, Some(2048)) };
        assert_eq!(prompt_size(&small), "950 of 2.0k tokens (few tools)");
        assert_eq!(short_prompt_size(&small), "950/2.0k, few tools");
        let counted = Meter { source: Some(TokenSource::Exact), ..meter(11_800, Some(200_000)) };
        assert_eq!(prompt_size(&counted), "~11k of 200k tokens (exact)");
        assert_eq!(short_prompt_size(&counted), "~11k/200k exact");
    }

    #[test]
    fn a_subject_says_nothing_twice() {
        assert_eq!(subject(Some("before lunch"), Some("We ate.")), "before lunch – We ate.");
        assert_eq!(subject(Some("We ate…"), Some("We ate. It was good.")), "We ate. It was good.");
        assert_eq!(subject(Some(" a\nb "), None), "a b");
        assert_eq!(subject(None, Some("We ate.")), "We ate.");
        assert_eq!(subject(None, Some(" ")), "");
    }
}
