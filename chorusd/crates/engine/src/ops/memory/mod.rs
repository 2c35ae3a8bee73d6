//! The operations `memory.*`.

pub mod add;
mod doc_passages;
pub mod edit;
pub mod list;
pub mod remove;
pub mod search;
mod word_matcher;

use std::sync::Arc;

use chorus_agent_core::window::MemoryBlock;
use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_catalog::{AuditDecision, Catalog, MemoryRow, MemoryTable, SessionTable};
use chorus_proto::ErrorKind;
use chorus_proto::methods::memory::{MemoryEntry, MemorySource};
use chorus_runtime::run_blocking;
use chorus_session::selector::MIN_PREFIX;
use jiff::Timestamp;
use uuid::Uuid;

use crate::agent::agent_index::AgentEntry;
use crate::agent::memory_prompt::{memory_block, memory_scope};

/// The limit on entries in a page, far below what fits in a frame.
pub const MAX_PAGE: u64 = 500;

/// The minimum length of a short id in hex digits.
const MIN_SHORT_ID: usize = 8;

/// All memories of an agent in the order in which its model sees them, and the part that fits into the prompt.
pub(super) struct AgentMemory {
    pub(super) rows: Vec<MemoryRow>,
    block: MemoryBlock,
}

pub(super) async fn load_memory(memories: &Arc<dyn MemoryTable>, agent: &AgentEntry) -> Result<AgentMemory> {
    let rows = memories.list_visible(memory_scope(&agent.settings)).await?;
    let shown = memory_block(agent.settings.id, &rows, rows.len() as u64);
    Ok(AgentMemory { rows, block: shown })
}

/// Converts rows into entries of the protocol.
pub(super) async fn to_entries(
    sessions: &Arc<dyn SessionTable>,
    agent: &AgentEntry,
    memory: &AgentMemory,
    some: Vec<MemoryRow>,
) -> Result<Vec<MemoryEntry>> {
    let moment = |row: &MemoryRow| Some((row.agent, row.at)).filter(|_| row.message.is_some());
    let moments: Vec<_> = some.iter().filter_map(moment).collect();
    let mut sessions = sessions.names_at(moments).await?.into_iter();
    let workspace = agent.settings.workspace();
    let paths: Vec<_> = some.iter().map(|row| row.path.as_ref().map(|path| workspace.join(path))).collect();
    let there = run_blocking(move || {
        let there = |path: &std::path::PathBuf| path.symlink_metadata().is_ok();
        Ok(paths.iter().map(|path| path.as_ref().map(there)).collect::<Vec<_>>())
    })
    .await?;
    let ids: Vec<String> = memory.rows.iter().map(|row| row.id.to_string()).collect();
    let is_shown = |id: Uuid| memory.rows.iter().take(memory.block.shown).any(|row| row.id == id);
    let entry = |(row, path_exists): (MemoryRow, Option<bool>)| MemoryEntry {
        short_id: short_id(&row.id.to_string(), &ids),
        shown: is_shown(row.id),
        session_id: row.message.is_some().then(|| sessions.next().flatten()).flatten(),
        id: row.id,
        text: row.text,
        path: row.path,
        path_exists,
        project: row.project,
        agent_name: row.agent_name,
        user: row.user,
        source: row.source,
        created_at: row.at,
        message_id: row.message,
    };
    Ok(some.into_iter().zip(there).map(entry).collect())
}

/// Converts one row into its current entry.
pub async fn to_entry(catalog: &Catalog, agent: &AgentEntry, row: MemoryRow) -> Result<Option<MemoryEntry>> {
    let memory = load_memory(&catalog.memories, agent).await?;
    Ok(to_entries(&catalog.sessions, agent, &memory, vec![row]).await?.pop())
}

/// Returns the shortest prefix of `id`, but at least the minimum length, that none of the other `ids` has.
fn short_id(id: &str, ids: &[String]) -> String {
    let alike = |length: &usize| ids.iter().filter(|other| other.starts_with(&id[..*length])).count() > 1;
    let length = (MIN_SHORT_ID..id.len()).find(|length| !alike(length)).unwrap_or(id.len());
    id[..length].to_owned()
}

/// Returns the rows whose id is or begins with `text`.
fn find_by_prefix<'a>(rows: &'a [MemoryRow], text: &str) -> Vec<&'a MemoryRow> {
    let text = text.to_ascii_lowercase();
    let begins = |row: &&MemoryRow| row.id.to_string().starts_with(&text);
    if text.len() < MIN_PREFIX { Vec::new() } else { rows.iter().filter(begins).collect() }
}

/// Returns the one row whose id is or begins with `text`.
///
/// # Errors
/// `not_found`, `ambiguous`.
fn find_one<'a>(agent: &AgentEntry, rows: &'a [MemoryRow], text: &str) -> Result<&'a MemoryRow> {
    let shown: String = text.chars().take(80).collect();
    match find_by_prefix(rows, text)[..] {
        [row] => Ok(row),
        [] => {
            let name = &agent.settings.name;
            Err(Error::new(ErrorKind::NotFound, format!("{name} has no memory entry {shown:?}"))
                .hint("list entries: chorusctl memory list (4 characters of an ID are enough)"))
        }
        ref several => {
            let ids: Vec<_> = several.iter().map(|row| row.id.to_string()).collect();
            Err(Error::new(ErrorKind::Ambiguous, format!("{shown:?} matches {} entries", ids.len()))
                .hint(format!("one of: {}", ids.join(", "))))
        }
    }
}

/// Builds the audit row for a change by a person, which is recorded because memories are part of the prompt.
pub fn audit_row_of_change(
    agent: &AgentEntry,
    verb: &str,
    (old, new): (Option<&str>, Option<&str>),
    now: Timestamp,
) -> AuditDecision {
    let json = |text: &str| serde_json::Value::from(text).to_string();
    AuditDecision {
        at: now,
        agent: agent.settings.id,
        agent_name: agent.settings.name.clone(),
        turn: None,
        action: format!("memory.{verb}"),
        decision: "changed".into(),
        rule: format!("memory {verb}"),
        user: Requester::Owner.to_string(),
        old: old.map(json),
        new: new.map(json),
    }
}

/// Shortens a text to one line.
fn abbreviate(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Builds the row of a memory that a person wrote.
fn new_row(
    agent: &AgentEntry,
    text: String,
    path: Option<String>,
    project: Option<String>,
    now: Timestamp,
) -> MemoryRow {
    MemoryRow {
        id: Uuid::new_v4(),
        agent: agent.settings.id,
        agent_name: agent.settings.name.clone(),
        project,
        text,
        path,
        at: now,
        user: Requester::Owner.to_string(),
        source: MemorySource::Hand,
        message: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_id_is_as_long_as_it_must_be() {
        let ids = ["11111111-1111-4111-8111-111111111111", "11111111-1112-4111-8111-111111111111"].map(str::to_owned);
        assert_eq!(short_id(&ids[0], &ids), "11111111-1111");
        assert_eq!(short_id(&ids[0], &ids[..1]), "11111111");
        assert_eq!(short_id(&ids[0], &[]), "11111111");
    }

    #[test]
    fn a_long_text_is_named_by_its_beginning() {
        assert_eq!(abbreviate("a\n b"), "a b");
        assert_eq!(abbreviate(&"日".repeat(61)), "日".repeat(60) + "…");
    }
}
