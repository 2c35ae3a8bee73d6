//! Selects sessions by their project.

use uuid::Uuid;

/// Selects sessions by their project: those that one of its fields names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectFilter {
    /// The absolute path of a directory: imported conversations that were held in it or below it.
    pub directory: Option<String>,
    /// The last part of such a directory.
    pub name: Option<String>,
    /// Agents of the project: all their sessions.
    pub agents: Vec<Uuid>,
}
