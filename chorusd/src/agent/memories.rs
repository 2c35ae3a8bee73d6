//! What agents remember, on its way into their prompts.

use super::Facts;
use super::window::{MOST_REMEMBERED, Remembered, RememberedEntry, remembered};
use crate::failure::Result;
use crate::store::Catalog;
use crate::store::catalog::{MemoryRow, Whose};

/// Whose memory the agent is shown.
#[must_use]
pub fn whose(facts: &Facts) -> Whose {
    Whose { agent: facts.id, project: facts.project.clone() }
}

/// What each of these agents remembers as a model is shown it, in the order asked.
///
/// # Errors
/// A database that cannot be read.
pub async fn shown(catalog: &Catalog, agents: Vec<Whose>) -> Result<Vec<Option<String>>> {
    let ids: Vec<_> = agents.iter().map(|whose| whose.agent).collect();
    // One more than are shown has a name among those that are not.
    let all = catalog.first_memories(agents, MOST_REMEMBERED + 1).await?;
    Ok(ids.into_iter().zip(all).map(|(agent, (rows, total))| block(agent, &rows, total).text).collect())
}

/// The block that the model of `agent` is shown of the first `rows` of `total`.
#[must_use]
pub fn block(agent: uuid::Uuid, rows: &[MemoryRow], total: u64) -> Remembered {
    let entry = |row: &MemoryRow| RememberedEntry {
        text: row.text.clone(),
        path: row.path.clone(),
        by: (row.project.is_some() && row.agent != agent).then(|| row.agent_name.clone()),
    };
    remembered(&rows.iter().map(entry).collect::<Vec<_>>(), total)
}
