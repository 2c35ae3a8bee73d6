//! Live contexts, conversations, keys of requests, and events.

use crate::table::{Column, File, Form, Table};
use crate::value::Kind::{Bool, Bytes, Id, Int, Text};

const fn table(name: &'static str, key: usize, columns: &'static [Column]) -> Table {
    Table::new(name, File::Journal, key, columns)
}

pub(super) const TABLES: &[Table] = &[
    table(
        "conversations",
        1,
        &[
            Column::new("id", Id),
            Column::new("agent_id", Id),
            Column::new("name", Text),
            Column::new("origin", Text),
            Column::new("title", Text),
            Column::new("created_at", Int),
            Column::new("closed_at", Int),
            Column::new("selected", Bool),
            Column::new("worktree", Text),
        ],
    ),
    // The newest record of each comes with its records.
    table(
        "contexts",
        1,
        &[
            Column::new("id", Int),
            Column::new("agent_id", Id),
            Column::new("conversation_id", Id),
            Column::new("started_at", Int),
            Column::new("last_activity_at", Int),
            Column::new("idle_deadline_at", Int),
            Column::new("messages", Int),
            Column::new("queries", Int),
            Column::new("chars", Int),
            Column::new("parent_id", Id),
            Column::new("saved_messages", Int),
            Column::new("saved_session", Id),
            Column::new("base_session", Id),
            Column::new("turn", Id),
            Column::new("restored_input", Int),
            Column::new("restored_output", Int),
        ],
    )
    .sqlite_where("NOT ended")
    .postgres_where("NOT ended"),
    table(
        "records",
        2,
        &[
            Column::new("context_id", Int),
            Column::new("number", Int),
            Column::new("before", Int),
            Column::new("envelope", Bytes),
        ],
    )
    .form(Form::Records),
    // Which records a key has added serves only a node whose answer was lost.
    table(
        "append_keys",
        2,
        &[
            Column::new("conversation_id", Id),
            Column::new("key", Text),
            Column::new("appended", Int),
            Column::new("messages", Int),
            Column::new("at", Int),
        ],
    )
    .constants(&[("context_id", "0"), ("first_record", "0")]),
    table(
        "turn_keys",
        2,
        &[
            Column::new("conversation_id", Id),
            Column::new("key", Text),
            Column::new("turn", Id),
            Column::new("answer", Text),
            Column::new("at", Int),
        ],
    ),
    table(
        "events",
        1,
        &[
            Column::new("seq", Int),
            Column::new("at", Int),
            Column::new("type", Text),
            Column::new("agent", Text),
            Column::new("conversation", Text),
            Column::new("data", Text),
        ],
    )
    .postgres_where("node = {node}")
    .constants(&[("node", "{node}")]),
];
