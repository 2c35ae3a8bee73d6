//! The fields of a session that a file for another tool needs.

use chorus_proto::Trigger;
use jiff::Timestamp;
use serde::Deserialize;
use uuid::Uuid;

use super::CodingTool;
use crate::commands::session::export::ExportSession;

/// A session that is exported for a coding agent.
#[derive(Debug, Deserialize)]
pub struct ToolSession {
    #[serde(flatten)]
    pub base: ExportSession,
    pub description: Option<String>,
    pub started_at: Timestamp,
    pub trigger: Trigger,
    #[serde(default)]
    pub(super) source: Option<SourceFields>,
}

/// The conversation of another program that an imported session holds.
#[derive(Debug, Deserialize)]
pub(super) struct SourceFields {
    pub program: String,
    pub conversation: String,
    #[serde(default)]
    pub project: Option<String>,
}

impl ToolSession {
    /// Returns the id of the conversation in `tool`, if it came from there.
    #[must_use]
    pub fn own_id(&self, tool: CodingTool) -> Option<String> {
        let name = tool.format().as_str();
        match &self.source {
            Some(source) if source.program != name => None,
            Some(SourceFields { conversation, .. }) if tool == CodingTool::Opencode => {
                Some(conversation.clone()).filter(|id| id.starts_with("ses_"))
            }
            Some(source) => Uuid::try_parse(&source.conversation).ok().map(|id| id.to_string()),
            // Sessions that an earlier release imported have the id of their conversation.
            None if tool == CodingTool::Opencode => None,
            None => {
                let is_its = self.trigger == Trigger::Import && self.base.agent_name == name;
                is_its.then(|| self.base.id.to_string())
            }
        }
    }
}
