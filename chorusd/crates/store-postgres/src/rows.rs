//! Rows of the database as rows of the journal.

use chorus_journal::{ContextRow, ConversationRow, from_nanos};
use chorus_proto::TokenPair;
use chorus_proto::event::{Event, EventType};
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::{ContextNo, Totals};
use tokio_postgres::Row;

/// Columns that [`read_context`] reads, in order.
pub(crate) const CONTEXT_COLUMNS: &str =
    "id, agent_id, conversation_id, started_at, last_activity_at, idle_deadline_at,
    messages, queries, chars, parent_id, saved_messages, saved_session, base_session, turn, restored_input,
    restored_output";

/// Columns that [`read_conversation`] reads, in order.
pub(crate) const CONVERSATION_COLUMNS: &str =
    "id, agent_id, name, origin, title, created_at, closed_at, selected, worktree";

pub(crate) fn read_context(row: &Row) -> ContextRow {
    ContextRow {
        context: ContextNo(row.get(0)),
        conversation: ConversationKey::from_stored(row.get(1), row.get(2)),
        started_at: from_nanos(row.get(3)),
        last_activity_at: from_nanos(row.get(4)),
        idle_deadline_at: row.get::<_, Option<i64>>(5).map(from_nanos),
        totals: Totals { messages: count(row, 6), queries: count(row, 7), chars: count(row, 8) },
        parent: row.get(9),
        saved_messages: count(row, 10),
        saved_session: row.get(11),
        base_session: row.get(12),
        turn: row.get(13),
        restoration: TokenPair { input: count(row, 14), output: count(row, 15) },
    }
}

pub(crate) fn read_conversation(row: &Row) -> ConversationRow {
    ConversationRow {
        key: ConversationKey { agent: row.get(1), id: row.get(0) },
        name: row.get(2),
        origin: row.get(3),
        title: row.get(4),
        created_at: from_nanos(row.get(5)),
        closed_at: row.get::<_, Option<i64>>(6).map(from_nanos),
        is_selected: row.get(7),
        worktree: row.get(8),
    }
}

/// Reads an event from the columns seq, at, type, agent, conversation, data.
pub(crate) fn read_event(row: &Row) -> Event {
    Event {
        seq: count(row, 0),
        time: from_nanos(row.get(1)),
        kind: EventType::parse(row.get(2)),
        agent: row.get(3),
        conversation: row.get(4),
        data: serde_json::from_str(row.get(5)).unwrap_or_default(),
        node: None,
    }
}

/// Reads a number that is never negative.
pub(crate) fn count(row: &Row, column: usize) -> u64 {
    u64::try_from(row.get::<_, i64>(column)).unwrap_or(0)
}

/// Converts a number for the database.
pub(crate) fn to_bigint(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
