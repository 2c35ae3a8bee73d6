//! What agents remember, on its way into their prompts.

use uuid::Uuid;

use super::window::{REMEMBERED, remembered};
use crate::failure::Result;
use crate::store::Catalog;

/// What each of these agents remembers as a model is shown it, in the order asked.
///
/// # Errors
/// A database that cannot be read.
pub async fn shown(catalog: &Catalog, agents: Vec<Uuid>) -> Result<Vec<Option<String>>> {
    let all = catalog.memories(agents, REMEMBERED).await?;
    let block = |memories: Vec<crate::store::catalog::Memory>| {
        let memories: Vec<_> = memories.into_iter().map(|memory| (memory.text, memory.path)).collect();
        remembered(&memories)
    };
    Ok(all.into_iter().map(block).collect())
}
