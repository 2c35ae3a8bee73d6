//! All tables, in the order in which they are copied.

mod catalog;
mod discord;
mod journal;
pub(crate) mod sessions;

use crate::table::Table;

/// The tables. What is derived from others is not among them: counts of sessions, tags, the owners of agents.
pub(crate) fn all() -> impl Iterator<Item = &'static Table> + Clone {
    [catalog::TABLES, journal::TABLES, sessions::TABLES, discord::TABLES].into_iter().flatten()
}

/// Tables of PostgreSQL that are not copied: the nodes and what they own, and what is derived from other tables.
const NOT_COPIED: &[&str] = &[
    "cluster",
    "migrations",
    "nodes",
    "writers",
    "heads",
    "session_counts",
    "session_totals",
    "write_results",
    "discord_leases",
    "discord_handed",
    "discord_members",
    // About copies on other machines.
    "deleted_sessions",
    // The files are the truth in SQLite.
    "agent_files",
    // They are made again: the workspaces are on the machine that copies.
    "workspace_bundles",
    crate::marker::TABLE,
];

/// Names of the tables of PostgreSQL that are copied, or left out on purpose.
pub(crate) fn known() -> impl Iterator<Item = &'static str> {
    all().map(|table| table.postgres).chain(NOT_COPIED.iter().copied())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chorus_base::Durability;
    use chorus_store::{CATALOG_FILE, DB_DIR, JOURNAL_FILE, Store};
    use rusqlite::Connection;

    use super::*;
    use crate::table::File;

    /// Columns of SQLite that are made again: counts, derived ones, and those that contexts which end have.
    const LEFT_OUT: &[&str] = &[
        "agents.sessions",
        "contexts.ended",
        "contexts.last_record",
        "records.id",
        "sessions.source_program",
        "sessions.source_conversation",
        "sessions.project",
        "session_tags.id",
        "session_tags.tag",
        "counters.name",
        "counters.value",
        "marks.name",
        "marks.value",
    ];

    #[tokio::test]
    async fn each_column_of_sqlite_is_copied_or_left_out_on_purpose() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(DB_DIR)).unwrap();
        let redactor = Arc::new(chorus_redact::Redactor::new(|| unreachable!("no secrets here")));
        let on_fatal: chorus_store::OnFatal = Arc::new(|_| {});
        let store = Store::open(home.path(), Durability::Always, &on_fatal, jiff::Timestamp::UNIX_EPOCH, redactor);
        store.unwrap().close().await.unwrap();
        for (name, file) in [(JOURNAL_FILE, File::Journal), (CATALOG_FILE, File::Catalog)] {
            let conn = Connection::open(home.path().join(DB_DIR).join(name)).unwrap();
            let sql = "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c
                 WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%'";
            let mut statement = conn.prepare(sql).unwrap();
            let columns = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            for (table, column) in columns.map(rusqlite::Result::<(String, String)>::unwrap) {
                let copied = all().filter(|known| known.file == file && known.sqlite == table);
                let is_copied = copied.flat_map(|known| known.columns).any(|known| known.sqlite == column);
                let name = format!("{table}.{column}");
                assert_ne!(is_copied, LEFT_OUT.contains(&&*name), "{name}");
            }
        }
    }
}
