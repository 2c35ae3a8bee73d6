//! The connection to Discord. Leases belong to nodes, and are not copied.

use crate::table::{Column, File, Form, Table};
use crate::value::Kind::{Bool, Id, Int, Text};

const fn table(name: &'static str, key: usize, columns: &'static [Column]) -> Table {
    Table::new(name, File::Catalog, key, columns)
}

pub(super) const TABLES: &[Table] = &[
    table(
        "discord_channels",
        1,
        &[
            Column::new("channel_id", Int),
            Column::new("guild_id", Int),
            Column::new("agent_id", Id),
            Column::new("made", Bool),
            Column::new("seen", Int),
            Column::new("skipped", Int),
            Column::new("parent_id", Int),
            Column::new("user_id", Int),
            Column::new("threads_after", Int),
        ],
    ),
    table(
        "discord_claims",
        1,
        &[
            Column::new("message_id", Int),
            Column::new("channel_id", Int),
            Column::new("agent_id", Id),
            Column::new("state", Text),
            Column::renamed("asked", "request", Text),
            Column::new("claimed_at", Int),
        ],
    )
    .in_sqlite("claims"),
    table(
        "discord_outbox",
        1,
        &[
            Column::new("id", Int),
            Column::new("channel_id", Int),
            Column::new("about", Text),
            Column::new("body", Text),
            Column::new("nonce", Text),
            Column::new("changes", Int),
            Column::new("tried_at", Int),
            Column::new("after_id", Int),
            Column::new("sent_id", Int),
            Column::new("notice_at", Int),
        ],
    ),
    table("discord_identifies", 1, &[Column::renamed("rowid", "id", Int), Column::new("at", Int)]),
    table(
        "discord_nodes",
        0,
        &[
            Column::new("last_event", Int)
                .read_sqlite("(SELECT CAST(value AS INTEGER) FROM settings WHERE key = 'discord.events')")
                .read_postgres("(SELECT last_event FROM discord_nodes WHERE node = {node})"),
            Column::new("last_starts", Text)
                .read_sqlite("(SELECT value FROM settings WHERE key = 'discord.starts')")
                .read_postgres("(SELECT last_starts FROM discord_nodes WHERE node = {node})"),
            Column::new("dropped_notices", Int)
                .read_sqlite("coalesce((SELECT value FROM counters WHERE name = 'notices_dropped'), 0)")
                .read_postgres("coalesce((SELECT dropped_notices FROM discord_nodes WHERE node = {node}), 0)"),
            Column::new("dropped_at", Int)
                .read_sqlite("(SELECT nullif(value, 0) FROM counters WHERE name = 'notices_dropped_at')")
                .read_postgres("(SELECT dropped_at FROM discord_nodes WHERE node = {node})"),
        ],
    )
    .in_sqlite("(SELECT 1)")
    .postgres_where("node = {node}")
    .constants(&[("node", "{node}")])
    .form(Form::DiscordState),
];
