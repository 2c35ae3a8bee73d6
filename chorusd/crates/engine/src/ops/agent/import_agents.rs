//! The agents that hold the imported conversations of other programs.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_config::agent::check_name;
use chorus_proto::methods::import::ImportFormat;
use uuid::Uuid;

use super::{AgentEditor, init};
use crate::ops::catalog_sync::CatalogSync;

/// The agent of transcripts that do not say which program wrote them.
const OTHER_SOURCE: &str = "imported";

/// Finds or creates the agents that imported conversations belong to, one for each program.
#[derive(Debug)]
pub struct ImportAgents {
    pub editor: Arc<AgentEditor>,
    pub catalog_sync: Arc<CatalogSync>,
}

impl ImportAgents {
    /// Returns the agent for conversations of this program. One from a session file of Chorus belongs to the implied agent,
    /// if there is one and Chorus has not imported it from another program.
    pub async fn find_or_create(&self, format: ImportFormat, program: &str) -> Result<Uuid> {
        if format == ImportFormat::Chorus
            && is_format(program)
            && let Some(entry) = self.editor.agents.index.default_agent()
        {
            return Ok(entry.settings.id);
        }
        let source = if is_format(program) { OTHER_SOURCE } else { program };
        Ok(init::ensure_import_agent(&self.editor, &self.catalog_sync, source).await?.settings.id)
    }
}

/// Returns true for the name of a format that does not tell which program has written a transcript.
fn is_format(program: &str) -> bool {
    ["chorus", "markdown", "openai"].contains(&program) || check_name(program).is_err()
}
