//! Lists the agents for one of them.

use std::fmt::Write as _;

use uuid::Uuid;

use crate::ops::Ops;

/// The limit on listed agents.
const MAX_AGENTS: usize = 200;

/// Describes each agent in a line: its name, its model, and whether it is in a conversation.
pub(super) async fn describe_agents(ops: &Ops, asker: Uuid) -> String {
    let all = ops.agents.all();
    let mut text = String::new();
    for entry in all.iter().take(MAX_AGENTS) {
        let model = entry.settings.model.as_deref().unwrap_or("no model");
        let is_live = !ops.registry.context_infos_of(entry.settings.id).is_empty();
        let state = if is_live { "active" } else { "idle" };
        let own = if entry.settings.id == asker { " (you)" } else { "" };
        let _ = writeln!(text, "{}{own}: {model}, {state}", entry.settings.name);
    }
    if all.len() > MAX_AGENTS {
        let _ = writeln!(text, "and {} more", all.len() - MAX_AGENTS);
    }
    text
}
