//! Agents, settings, and what is recorded of agents.

use crate::table::{Column, Derived, File, Table};
use crate::value::Kind::{Bool, Bytes, Hashes, Id, Ids, Int, Real, Text, TextAsBytes};
use crate::value::Value;

const fn table(name: &'static str, key: usize, columns: &'static [Column]) -> Table {
    Table::new(name, File::Catalog, key, columns)
}

pub(super) const TABLES: &[Table] = &[
    table(
        "agents",
        1,
        &[
            Column::new("id", Id),
            Column::new("name", Text),
            Column::new("status", Text),
            Column::new("created_at", Int),
            Column::new("destroyed_at", Int),
            Column::new("dir", Text),
            Column::new("config", Text),
            Column::new("stamp", Text),
        ],
    ),
    // PostgreSQL has two of them in `discord_nodes`.
    table("settings", 1, &[Column::new("key", Text), Column::new("value", Text)])
        .sqlite_where("key NOT IN ('discord.events', 'discord.starts')")
        .postgres_where("node IN ('', {node})")
        .derived(Derived {
            columns: &[("node", Text)],
            values: |row, node| {
                let concerns_node = row[0].as_text().is_some_and(chorus_catalog::is_node_setting);
                Ok(vec![Value::Text(if concerns_node { node.to_owned() } else { String::new() })])
            },
        }),
    table(
        "usage",
        1,
        &[
            Column::new("id", Int),
            Column::new("at", Int),
            Column::new("agent_id", Id),
            Column::new("agent_name", Text),
            Column::new("context", Int),
            Column::new("conversation_id", Id),
            Column::new("turn_id", Id),
            Column::new("model", Text),
            Column::new("kind", Text),
            Column::new("input", Int),
            // Estimates of early versions are not compared with what providers count.
            Column::new("estimated", Int).read_sqlite(
                "CASE WHEN id > coalesce((SELECT value FROM counters WHERE name = 'usage_estimated_by_length'), 0)
                 THEN estimated ELSE 0 END",
            ),
            Column::new("output", Int),
            Column::new("cache_read", Int),
            Column::new("cache_write", Int),
            Column::new("by_estimate", Bool),
            Column::new("cost_usd", Real),
            Column::new("duration_ms", Int),
        ],
    )
    .constants(&[("node", "{node}"), ("write_id", "gen_random_uuid()")]),
    table(
        "imported_usage",
        3,
        &[
            Column::new("session_id", Id),
            Column::new("model", TextAsBytes),
            Column::new("quarter_hour", Int),
            Column::new("calls", Int),
            Column::new("input", Int),
            Column::new("output", Int),
            Column::new("cache_read", Int),
            Column::new("cache_write", Int),
            Column::new("cost_usd", Real),
            Column::new("with_cost", Int),
            Column::new("lower_bound", Int),
        ],
    ),
    table(
        "imported_calls",
        1,
        &[
            Column::new("session_id", Id),
            Column::new("agent_id", Id),
            Column::new("first", Int),
            Column::new("digest", Bytes),
            Column::new("calls", Hashes),
        ],
    ),
    // The hashes chain the rows of one node.
    table(
        "audit_log",
        1,
        &[
            Column::renamed("id", "number", Int),
            Column::new("at", Int),
            Column::new("agent_id", Id),
            Column::new("agent_name", Text),
            Column::new("turn_id", Id),
            Column::new("action", TextAsBytes),
            Column::new("decision", Text),
            Column::new("rule", TextAsBytes),
            Column::renamed("user", "requester", TextAsBytes),
            Column::new("old", TextAsBytes),
            Column::new("new", TextAsBytes),
            Column::new("hash", Bytes),
        ],
    )
    .postgres_where("node = {node}")
    .constants(&[("node", "{node}"), ("position", "c0")]),
    table(
        "approvals",
        1,
        &[
            Column::new("id", Text),
            Column::new("agent_id", Id),
            Column::new("agent_name", Text),
            Column::new("conversation", Text),
            Column::new("turn_id", Id),
            Column::new("call_id", Text),
            Column::new("action", TextAsBytes),
            Column::new("action_hash", Bytes),
            Column::new("nonce", Id),
            Column::new("verdict", Text),
            Column::new("not_always", Text),
            Column::new("requester", Text),
            Column::new("asked_at", Int),
            Column::new("expires_at", Int),
            Column::new("status", Text),
            Column::new("decided_at", Int),
            Column::new("decided_by", Text),
        ],
    ),
    table(
        "tasks",
        1,
        &[
            Column::new("id", Text),
            Column::new("agent_id", Id),
            Column::new("conversation_id", Id),
            Column::new("agent_name", Text),
            Column::new("command", Text),
            Column::new("pid", Int),
            Column::new("pid_started", Int),
            Column::new("boot", Text),
            Column::new("status", Text),
            Column::new("exit_code", Int),
            Column::new("signal", Int),
            Column::new("started_at", Int),
            Column::new("ended_at", Int),
            Column::new("log_path", Text),
            Column::renamed("told", "reported", Bool),
        ],
    ),
    table(
        "memories",
        1,
        &[
            Column::renamed("id", "number", Int),
            Column::renamed("uid", "id", Id),
            Column::new("agent_id", Id),
            Column::new("agent_name", Text),
            Column::new("project", Text),
            Column::new("text", Text),
            Column::new("path", Text),
            Column::new("created_at", Int),
            Column::renamed("user", "requester", Text),
            Column::new("source", Text),
            Column::new("message_id", Text),
        ],
    )
    .in_sqlite("memory")
    .constants(&[("write_id", "gen_random_uuid()")]),
    table(
        "schedules",
        1,
        &[
            Column::new("id", Id),
            Column::new("agent_id", Id),
            Column::new("name", Text),
            Column::new("cron", Text),
            Column::new("every_seconds", Int),
            Column::new("once_at", Int),
            Column::new("time_zone", Text),
            Column::new("message", Text),
            Column::new("missed", Text),
            Column::new("created_at", Int),
            Column::new("created_by", Text),
            Column::new("state", Text),
            Column::new("next_at", Int),
            Column::new("pending_at", Int),
            Column::new("overdue_at", Int),
            Column::new("runs", Text),
            Column::new("version", Int),
        ],
    ),
    table(
        "file_writes",
        3,
        &[
            Column::new("agent_id", Id),
            Column::new("path", Text),
            Column::new("conversation_id", Id),
            Column::new("hash", Bytes),
            Column::new("at", Int),
        ],
    ),
    table("workspace_commands", 2, &[Column::new("agent_id", Id), Column::new("conversation_id", Id)]),
    table(
        "captured_files",
        1,
        &[
            Column::new("path", Bytes),
            Column::new("source", Text),
            Column::new("device", Int),
            Column::new("inode", Int),
            Column::new("read_bytes", Int),
            Column::new("size", Int),
            Column::new("modified_at", Int),
            Column::new("conversations", Int),
            Column::new("messages", Int),
            Column::new("sessions", Ids),
            Column::new("skipped_lines", Int),
            Column::new("skipped_line", Int),
            Column::new("skipped_reason", TextAsBytes),
            Column::new("marker", TextAsBytes),
            Column::new("failure", TextAsBytes),
            Column::new("unsaved", Bool),
        ],
    )
    .postgres_where("node = {node}")
    .constants(&[("node", "{node}")]),
    table("capture_tombstones", 1, &[Column::new("conversation", Text)]),
    table(
        "tool_exports",
        1,
        &[
            Column::new("conversation", Text),
            Column::new("session_id", Id),
            Column::new("origin", Text),
            Column::new("last_message_at", Int),
        ],
    ),
];
