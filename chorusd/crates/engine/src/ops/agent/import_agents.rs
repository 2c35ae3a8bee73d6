//! The agents that hold the imported conversations of other programs.

use std::sync::Arc;

use chorus_base::error::Result;
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
    /// Returns the agent for transcripts of this format. A session file of Chorus belongs to the implied agent, if there
    /// is one.
    pub async fn find_or_create(&self, format: ImportFormat) -> Result<Uuid> {
        if format == ImportFormat::Chorus
            && let Some(entry) = self.editor.agents.index.default_agent()
        {
            return Ok(entry.settings.id);
        }
        let source = source_name(format);
        Ok(init::ensure_import_agent(&self.editor, &self.catalog_sync, source).await?.settings.id)
    }
}

/// Returns the name of the program that writes this format.
fn source_name(format: ImportFormat) -> &'static str {
    match format {
        ImportFormat::ClaudeCode => "claude-code",
        ImportFormat::Codex => "codex",
        ImportFormat::Chatgpt => "chatgpt",
        ImportFormat::Goose => "goose",
        ImportFormat::Openai | ImportFormat::Markdown | ImportFormat::Chorus | ImportFormat::Auto => OTHER_SOURCE,
    }
}
