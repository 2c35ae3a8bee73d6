//! Appends messages to a context, with an event and the start or end of a turn, in one transaction.

use std::sync::Arc;

use chorus_journal::{AppendRequest, JournalAppendOutcome, NewEvent, message_records, to_nanos};
use chorus_proto::methods::context::AppendResult;
use chorus_proto::{Event, EventType};
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::Totals;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::json;

use super::record_list::RecordChain;
use super::{contexts_table, events, turn_marks_and_keys};
use crate::sqlite::StoreResult;

pub(super) fn append_in_transaction(
    conn: &Connection,
    append: &AppendRequest,
) -> StoreResult<(JournalAppendOutcome, Option<Arc<Event>>)> {
    if let Some(key) = &append.key
        && let Some(answer) = find_repeated_append(conn, append.conversation, key)?
    {
        return Ok((JournalAppendOutcome::RepeatedAppend(answer), None));
    }
    if let Some(known) = turn_marks_and_keys::find_repeated(conn, append.conversation, append.mark.as_ref())? {
        return Ok((JournalAppendOutcome::RepeatedTurn(known), None));
    }
    let mut chain = RecordChain::open_or_create(conn, append.context, &append.begin)?;
    chain.append_all(conn, append.first, message_records(&append.messages))?;
    let totals = Totals::count(&append.messages);
    let messages =
        contexts_table::add_totals(conn, append.context, totals, append.at, append.deadline, chain.newest())?;
    let answer = AppendResult { appended: totals.messages, messages, secrets_found: None, note: None };
    if let Some(mark) = &append.mark {
        turn_marks_and_keys::store_mark(conn, append.conversation, append.context, mark, append.at)?;
    }
    if let Some(key) = &append.key {
        conn.prepare_cached(
            "INSERT INTO append_keys (conversation_id, key, appended, messages, at) VALUES (?1,?2,?3,?4,?5)",
        )?
        .execute(params![
            append.conversation.id.as_bytes(),
            key,
            answer.appended,
            answer.messages,
            to_nanos(append.at)
        ])?;
    }
    // The turn concerns a message that is stored already.
    if append.messages.is_empty() {
        return Ok((JournalAppendOutcome::Added(answer), None));
    }
    // The message and its event are stored in the same commit.
    let new_event = NewEvent {
        at: append.at,
        kind: EventType::MessageAppended,
        agent: Some(append.agent_name.clone()),
        conversation: append.conversation_name.clone(),
        data: json!({"appended": answer.appended, "messages": answer.messages}),
    };
    let event = events::insert(conn, new_event)?;
    Ok((JournalAppendOutcome::Added(answer), Some(Arc::new(event))))
}

fn find_repeated_append(
    conn: &Connection,
    conversation: ConversationKey,
    key: &str,
) -> StoreResult<Option<AppendResult>> {
    Ok(conn
        .prepare_cached("SELECT appended, messages FROM append_keys WHERE conversation_id = ?1 AND key = ?2")?
        .query_row(params![conversation.id.as_bytes(), key], |row| {
            Ok(AppendResult { appended: row.get(0)?, messages: row.get(1)?, secrets_found: None, note: None })
        })
        .optional()?)
}
