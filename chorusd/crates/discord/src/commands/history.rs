//! `/context history`: pages with buttons whose ids hold agent and page, so that they work after a restart.

use chorus_base::error::{Error, Result};
use chorus_engine::agent::agent_index::AgentEntry;
use chorus_engine::ops::context::history;
use chorus_engine::ops::resolve_agent::with_expected_agent;
use chorus_proto::Session;
use chorus_proto::methods::context::HistoryParams;
use chorus_proto::pluralize::pluralize;
use uuid::Uuid;

use super::invocation::{Caller, Invocation};
use super::response::{Button, Response, Style};
use super::text_format::{inline_code, inline_text, relative_time, session_title};

pub(super) async fn history(call: &Invocation) -> Result<Response> {
    let agent = call.caller.resolve_agent(call.args.text("agent"))?;
    page_response(&call.caller, &agent, call.args.number("page").unwrap_or(1)).await
}

/// Shows the page that a button leads to.
pub(super) async fn show_page(by: &Caller, agent: Uuid, number: u64) -> Result<Response> {
    let entry = by.ops().agents.by_id(agent).filter(|entry| by.is_guild_agent(entry));
    let gone = || Error::new(chorus_proto::ErrorKind::AgentNotFound, "This agent was deleted");
    let agent = by.resolve_agent(Some(&entry.ok_or_else(gone)?.settings.name))?;
    page_response(by, &agent, number).await
}

async fn page_response(by: &Caller, agent: &AgentEntry, number: u64) -> Result<Response> {
    let params = |page| HistoryParams {
        agent: Some(agent.settings.name.clone()),
        page: Some(page),
        limit: Some(super::HISTORY_PAGE_SIZE),
        ..HistoryParams::default()
    };
    let (ops, who, viewer) = (by.ops(), &by.member.requester, by.session_viewer(agent)?);
    let page = |number| {
        let page =
            history::history_as(&ops.agent_resolver, &ops.sessions, &ops.clock, params(number), who, Some(viewer));
        with_expected_agent(agent.settings.id, page)
    };
    let mut found = page(number.max(1)).await?;
    if found.page > found.pages {
        // Sessions were deleted since the page was shown.
        found = page(found.pages).await?;
    }
    let name = inline_text(by, &agent.settings.name, 64);
    if found.sessions.is_empty() {
        return Ok(Response::new(format!("**{name}** has no saved conversations yet. Save one with `/context save`.")));
    }
    let first = (found.page - 1) * super::HISTORY_PAGE_SIZE + 1;
    let mut lines =
        vec![format!("**{name}** · {} · page {} of {}", pluralize(found.total, "session"), found.page, found.pages)];
    lines.extend((first..).zip(&found.sessions).map(|(number, session)| session_line(by, number, session)));
    let button = |label: &str, to: u64| Button {
        id: page_button_id(agent.settings.id, to),
        label: label.to_owned(),
        style: Style::Secondary,
        disabled: !(1..=found.pages).contains(&to),
    };
    let buttons =
        if found.pages > 1 { vec![button("◀", found.page - 1), button("▶", found.page + 1)] } else { Vec::new() };
    Ok(Response { buttons, ..Response::new(lines.join("\n")) })
}

fn session_line(by: &Caller, number: u64, session: &Session) -> String {
    let header = &session.header;
    let amiss = match (&session.corrupt, session.available) {
        (Some(_), _) => " · unreadable",
        (None, false) => " · file missing",
        (None, true) => "",
    };
    format!(
        "{number}\\. {} · {} · {}{amiss} · {}",
        inline_code(by, &session.short_id, 40),
        relative_time(header.saved_at),
        pluralize(header.message_count, "message"),
        inline_text(by, &session_title(by, session, 70), 100),
    )
}

/// Returns the custom id of the button that leads to a page.
pub(super) fn page_button_id(agent: Uuid, page: u64) -> String {
    format!("history:{agent}:{page}")
}
