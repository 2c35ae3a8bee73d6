//! `/context history`: pages with buttons that say all they need, so that they work after a restart.

use chorus_proto::Session;
use chorus_proto::methods::context::HistoryParams;
use uuid::Uuid;

use super::call::{Asker, Call};
use super::reply::{Button, Reply, Style};
use super::words::{ago, code, count, plain, title};
use crate::agent::directory::Entry;
use crate::failure::{Failure, Result};
use crate::ops::context::history;
use crate::ops::select::meaning;

pub async fn history(call: &Call) -> Result<Reply> {
    let agent = call.by.agent(call.given.text("agent"))?;
    page(&call.by, &agent, call.given.number("page").unwrap_or(1)).await
}

/// The page that a button leads to.
pub async fn turn(by: &Asker, agent: Uuid, number: u64) -> Result<Reply> {
    let entry = by.ops().directory.by_id(agent).filter(|entry| by.is_here(entry));
    let gone = || Failure::new(chorus_proto::ErrorKind::AgentNotFound, "that agent is gone");
    let agent = by.agent(Some(&entry.ok_or_else(gone)?.facts.name))?;
    page(by, &agent, number).await
}

async fn page(by: &Asker, agent: &Entry, number: u64) -> Result<Reply> {
    let params = |page| HistoryParams {
        agent: Some(agent.facts.name.clone()),
        page: Some(page),
        limit: Some(super::PAGE),
        ..HistoryParams::default()
    };
    let who = &by.person.requester;
    let mut found = meaning(agent.facts.id, history::history_for(by.ops(), params(number.max(1)), who)).await?;
    if found.page > found.pages {
        // Sessions went since the page was shown.
        found = meaning(agent.facts.id, history::history_for(by.ops(), params(found.pages), who)).await?;
    }
    let name = plain(by, &agent.facts.name, 64);
    if found.sessions.is_empty() {
        return Ok(Reply::new(format!("**{name}** has no saved conversations yet. `/context save` makes one.")));
    }
    let first = (found.page - 1) * super::PAGE + 1;
    let mut lines =
        vec![format!("**{name}** · {} · page {} of {}", count(found.total, "session"), found.page, found.pages)];
    lines.extend((first..).zip(&found.sessions).map(|(number, session)| line(by, number, session)));
    let button = |label: &str, to: u64| Button {
        id: button_id(agent.facts.id, to),
        label: label.to_owned(),
        style: Style::Plain,
        disabled: !(1..=found.pages).contains(&to),
    };
    let buttons =
        if found.pages > 1 { vec![button("◀", found.page - 1), button("▶", found.page + 1)] } else { Vec::new() };
    Ok(Reply { buttons, ..Reply::new(lines.join("\n")) })
}

fn line(by: &Asker, number: u64, session: &Session) -> String {
    let header = &session.header;
    let amiss = match (&session.corrupt, session.available) {
        (Some(_), _) => " · unreadable",
        (None, false) => " · file gone",
        (None, true) => "",
    };
    format!(
        "{number}\\. {} · {} · {}{amiss} · {}",
        code(by, &session.short_id, 40),
        ago(header.saved_at),
        count(header.message_count, "message"),
        plain(by, &title(by, session, 70), 100),
    )
}

/// What a button is known by.
pub fn button_id(agent: Uuid, page: u64) -> String {
    format!("history:{agent}:{page}")
}
