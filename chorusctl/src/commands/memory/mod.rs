//! `chorusctl memory`: one module per subcommand.

use chorus_proto::methods::memory::{MemoryEntry, MemorySource};

use crate::error::Error;
use crate::ui::{Cell, Column, Stdout, Style, Table, sanitize};

pub mod add;
pub mod list;
pub mod remove;
pub mod search;

group! {
    /// Manage what an agent always remembers
    enum Verb or list {
        /// Add a memory
        Add(add::Args),
        /// List an agent's memories, in the order in which its model sees them (default)
        List(list::Args),
        /// Search an agent's memories
        Search(search::Args),
        /// Move a memory to the trash
        Remove(remove::Args),
    }
}

const COLUMNS: [Column; 6] = [
    Column::new("ID").whole(),
    Column::new("WHEN").whole(),
    Column::new("BY"),
    Column::new("PROJECT").optional(),
    Column::new("SHOWN"),
    Column::new("WHAT").flexible(),
];

/// Writes memory entries as a table.
fn write_table(mut table: Table, entries: &[MemoryEntry], out: &mut Stdout) -> Result<(), Error> {
    let all = entries.iter().all(|entry| entry.shown);
    for entry in entries {
        let by = match entry.source {
            MemorySource::Hand => "hand".to_owned(),
            MemorySource::Tool => sanitize::one_line(&entry.agent_name),
        };
        let shown = if all {
            ""
        } else if entry.shown {
            "yes"
        } else {
            "no"
        };
        table.add_row([
            Cell::new(Style::Id, sanitize::one_line(&entry.short_id)),
            Cell::from(out.clock().ago(entry.created_at)).sorted_by_time(entry.created_at),
            by.into(),
            sanitize::one_line(entry.project.as_deref().unwrap_or_default()).into(),
            shown.into(),
            entry_summary(entry).into(),
        ]);
    }
    table.write(out)
}

/// Formats an entry's text, path and session as one line.
fn entry_summary(entry: &MemoryEntry) -> String {
    let gone = if entry.path_exists == Some(false) { ", missing" } else { "" };
    let path = entry.path.as_ref().map(|path| format!("{}{gone}", sanitize::one_line(path)));
    let from = entry.session_id.as_ref().map(|session| format!("from {}", sanitize::one_line(session)));
    let about: Vec<String> = path.into_iter().chain(from).collect();
    let text = sanitize::one_line(&entry.text);
    if about.is_empty() { text } else { format!("{text} ({})", about.join("; ")) }
}
