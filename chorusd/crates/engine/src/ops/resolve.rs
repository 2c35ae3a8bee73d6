//! Resolves the names and selectors in requests to agents and sessions.

use std::sync::Arc;

use chorus_base::closest_match;
use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_proto::ErrorKind;
use chorus_session::Selector;
use chorus_session::selector::MIN_PREFIX;
use chorus_store::catalog::SessionRow;
use uuid::Uuid;

use super::Ops;
use crate::agent::agent_index::{AgentEntry, AgentIndex};

tokio::task_local! {
    /// The agent whose permissions the caller has checked.
    static EXPECTED_AGENT: Uuid;
}

/// Runs `work`, which may only resolve the agent with this id. If the name in the request belongs to another agent by
/// now, it fails. For front ends that check permissions first, because names can change owners.
pub async fn with_expected_agent<T>(agent: Uuid, work: impl Future<Output = Result<T>>) -> Result<T> {
    EXPECTED_AGENT.scope(agent, work).await
}

/// Returns the agent called `name`, or the implied agent if there is no name.
///
/// # Errors
/// `agent_not_found`, or `no_agent` with a list of the agents.
pub async fn agent(ops: &Ops, name: Option<&str>) -> Result<Arc<AgentEntry>> {
    ops.agent_resolver.resolve(name).await
}

/// Checks that the name in a request still belongs to the agent whose permissions the caller has checked.
pub(super) fn check_expected_agent(found: Arc<AgentEntry>) -> Result<Arc<AgentEntry>> {
    if EXPECTED_AGENT.try_with(|meant| *meant != found.settings.id).unwrap_or(false) {
        return Err(Error::new(ErrorKind::AgentNotFound, format!("{} is another agent by now", found.settings.name))
            .hint("nothing was done; look again"));
    }
    Ok(found)
}

/// Returns the agent with this id, whatever its name is now; fails with `agent_not_found`.
pub async fn agent_by_id(ops: &Ops, id: Uuid) -> Result<Arc<AgentEntry>> {
    ops.agent_resolver.resolve_by_id(id).await
}

/// Returns the error for an agent that does not exist.
pub fn unknown_agent_error(agents: &AgentIndex, name: &str) -> Error {
    let names = agents.names();
    let shown: String = name.chars().take(80).collect();
    let failure = Error::new(ErrorKind::AgentNotFound, format!("there is no agent {shown:?}"));
    match closest_match(name, names.iter().map(String::as_str)) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
        None if names.is_empty() => failure.hint("make one: chorusctl agent init NAME"),
        None => failure.hint(format!("agents: {}", join_names(&names))),
    }
}

pub(super) fn no_agent_error(agents: &AgentIndex) -> Error {
    let names = agents.names();
    if names.is_empty() {
        return Error::new(ErrorKind::NoAgent, "there are no agents yet").hint("make one: chorusctl agent init NAME");
    }
    Error::new(ErrorKind::NoAgent, format!("which agent? there are {}: {}", names.len(), join_names(&names)))
        .hint("name one with --agent, or choose one with `chorusctl agent use NAME`")
}

fn join_names(names: &[String]) -> String {
    const MAX_NAMES: usize = 12;
    let mut text = names.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > MAX_NAMES {
        text.push_str(&format!(" and {} more", names.len() - MAX_NAMES));
    }
    text
}

/// Returns the session that `text` selects for `agent`. A session of another agent is found by its name or UUID, and
/// may be used only if the caller named the agent (`agent_said`), so that nothing is mixed up by mistake.
///
/// # Errors
/// `session_not_found`, `ambiguous` with the candidates, `denied` for a session of another agent.
pub async fn session(ops: &Ops, agent: &AgentEntry, agent_said: bool, text: &str) -> Result<SessionRow> {
    session_as(ops, &Requester::Owner, agent, agent_said, text).await
}

/// Like [`session`], on behalf of `by`: numbers refer to the history that `by` was shown. Members in channels find only
/// sessions of the agent itself; for others the error does not reveal whether they exist.
pub async fn session_as(
    ops: &Ops,
    by: &Requester,
    agent: &AgentEntry,
    agent_said: bool,
    text: &str,
) -> Result<SessionRow> {
    let own = agent.settings.id;
    let owner = *by == Requester::Owner;
    let row = match Selector::parse(text) {
        Selector::Latest(n) => ops.store.catalog.sessions.nth_newest(own, n).await?,
        Selector::Id(id) => ops.store.catalog.sessions.get(id).await?,
        Selector::Number(number, digits) => match ops.history_numbers.find(by, own, number) {
            Some(id) => ops.store.catalog.sessions.get(id).await?,
            None if digits.len() >= MIN_PREFIX => session_by_text(ops, own, owner, &digits).await?,
            None => {
                return Err(Error::new(
                    ErrorKind::SessionNotFound,
                    format!("no history of {} with a number {digits} was shown", agent.settings.name),
                )
                .hint("run `chorusctl context history` first, or use the name of the session"));
            }
        },
        Selector::Text(text) => session_by_text(ops, own, owner, &text).await?,
    };
    let shown: String = text.chars().take(80).collect();
    let row = row.filter(|row| owner || row.header.agent_id == own).ok_or_else(|| {
        Error::new(ErrorKind::SessionNotFound, format!("{} has no session {shown:?}", agent.settings.name))
            .hint("`chorusctl context history` shows them")
    })?;
    if row.header.agent_id != own && !agent_said {
        return Err(Error::new(
            ErrorKind::Denied,
            format!("the session {} is one of {}", row.header.session_id, row.header.agent_name),
        )
        .hint("name the agent that is to use it: --agent NAME"));
    }
    Ok(row)
}

/// Finds a session by its exact name, then by a unique prefix. The agent's own sessions come before those of others,
/// which are considered only if `others`.
async fn session_by_text(ops: &Ops, own: Uuid, others: bool, text: &str) -> Result<Option<SessionRow>> {
    let catalog = &ops.store.catalog;
    let looked_in = &[Some(own), None][..if others { 2 } else { 1 }];
    for &agent in looked_in {
        let named = catalog.sessions.list_named(agent, text.to_owned()).await?;
        if !named.is_empty() {
            return ensure_unique(text, named);
        }
    }
    if text.chars().count() < MIN_PREFIX {
        return Ok(None);
    }
    for &agent in looked_in {
        let beginning = catalog.sessions.list_with_prefix(agent, text.to_owned()).await?;
        if !beginning.is_empty() {
            return ensure_unique(text, beginning);
        }
    }
    Ok(None)
}

fn ensure_unique(text: &str, mut rows: Vec<SessionRow>) -> Result<Option<SessionRow>> {
    if rows.len() == 1 {
        return Ok(rows.pop());
    }
    let candidates: Vec<String> =
        rows.iter().map(|row| format!("{} ({})", row.header.session_id, row.header.id)).collect();
    let shown: String = text.chars().take(80).collect();
    Err(Error::new(ErrorKind::Ambiguous, format!("{shown:?} is the beginning of {} sessions", rows.len()))
        .hint(format!("one of: {}", candidates.join(", "))))
}
