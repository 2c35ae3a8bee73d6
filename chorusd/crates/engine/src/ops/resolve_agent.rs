//! Resolves the names of agents in requests.

use std::sync::Arc;

use chorus_base::closest_match;
use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use uuid::Uuid;

use super::hints;
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

/// Checks that the name in a request still belongs to the agent whose permissions the caller has checked.
pub(super) fn check_expected_agent(found: Arc<AgentEntry>) -> Result<Arc<AgentEntry>> {
    if EXPECTED_AGENT.try_with(|meant| *meant != found.settings.id).unwrap_or(false) {
        return Err(Error::new(
            ErrorKind::AgentNotFound,
            format!("{} now refers to another agent", found.settings.name),
        )
        .hint("nothing was changed; check the name and try again"));
    }
    Ok(found)
}

/// Returns the error for an agent that does not exist.
pub fn unknown_agent_error(agents: &AgentIndex, name: &str) -> Error {
    let names = agents.names();
    let shown: String = name.chars().take(80).collect();
    let failure = Error::new(ErrorKind::AgentNotFound, format!("no agent {shown:?}"));
    match closest_match(name, names.iter().map(String::as_str)) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
        None if names.is_empty() => failure.hint("create one: chorusctl agent init NAME"),
        None => failure.hint(format!("agents: {}", join_names(&names))),
    }
}

/// Returns the error if no agent is named, and none is implied. `captures` tells if capture is on.
pub(super) fn no_agent_error(agents: &AgentIndex, captures: bool) -> Error {
    let names = agents.own_names();
    let imported: Vec<_> = agents.import_agents().into_iter().map(|agent| agent.settings.name.clone()).collect();
    if names.is_empty() && !imported.is_empty() {
        let message = format!("no agent yet that could do this, only conversations of {}", join_names(&imported));
        return Error::new(ErrorKind::NoAgent, message)
            .hint("list them: chorusctl history; or create an agent: chorusctl agent init NAME");
    }
    if names.is_empty() {
        let capture = match captures {
            true => "conversations with other coding agents appear as they are written",
            false => "keep conversations with other coding agents: chorusctl capture on",
        };
        return Error::new(ErrorKind::NoAgent, "no agents and no captured conversations yet")
            .hint(format!("create an agent: chorusctl agent init NAME; or {capture}"));
    }
    Error::new(ErrorKind::NoAgent, format!("several agents ({}): which one?", join_names(&names)))
        .hint(hints::NAME_AGENT)
}

fn join_names(names: &[String]) -> String {
    const MAX_NAMES: usize = 12;
    let mut text = names.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > MAX_NAMES {
        text.push_str(&format!(" and {} more", names.len() - MAX_NAMES));
    }
    text
}
