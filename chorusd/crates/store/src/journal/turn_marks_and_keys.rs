//! Turns in the journal: which context is in a turn, and the answers to idempotency keys of turns.

use chorus_journal::{KnownTurn, TurnMark, to_nanos};
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::ContextNo;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};
use uuid::Uuid;

use crate::sqlite::StoreResult;

/// Returns the earlier turn if `mark` opens a turn whose key is known.
pub(super) fn find_repeated(
    conn: &Connection,
    conversation: ConversationKey,
    mark: Option<&TurnMark>,
) -> StoreResult<Option<KnownTurn>> {
    let Some(TurnMark::Open { key: Some(key), .. }) = mark else { return Ok(None) };
    find_by_key(conn, conversation, key)
}

/// Returns the turn that was started with `key`.
pub(super) fn find_by_key(
    conn: &Connection,
    conversation: ConversationKey,
    key: &str,
) -> StoreResult<Option<KnownTurn>> {
    let known = conn
        .prepare_cached("SELECT turn, answer FROM turn_keys WHERE conversation_id = ?1 AND key = ?2")?
        .query_row(params![conversation.id.as_bytes(), key], |row| {
            Ok(KnownTurn { turn: Uuid::from_bytes(row.get(0)?), answer: row.get(1)? })
        })
        .optional()?;
    Ok(known)
}

/// Stores the start or end of a turn.
pub(super) fn store_mark(
    conn: &Connection,
    conversation: ConversationKey,
    context: ContextNo,
    mark: &TurnMark,
    at: Timestamp,
) -> StoreResult<()> {
    let set = |turn: Option<&Uuid>| -> StoreResult<()> {
        conn.prepare_cached("UPDATE contexts SET turn = ?2 WHERE id = ?1")?
            .execute(params![context.0, turn.map(Uuid::as_bytes)])?;
        Ok(())
    };
    match mark {
        TurnMark::Open { turn, key } => {
            set(Some(turn))?;
            if let Some(key) = key {
                conn.prepare_cached("INSERT INTO turn_keys (conversation_id, key, turn, at) VALUES (?1, ?2, ?3, ?4)")?
                    .execute(params![conversation.id.as_bytes(), key, turn.as_bytes(), to_nanos(at)])?;
            }
        }
        TurnMark::Close { key, answer, .. } => {
            set(None)?;
            if let (Some(key), Some(answer)) = (key, answer) {
                conn.prepare_cached("UPDATE turn_keys SET answer = ?3 WHERE conversation_id = ?1 AND key = ?2")?
                    .execute(params![conversation.id.as_bytes(), key, answer])?;
            }
        }
    }
    Ok(())
}

/// Deletes the answers to the keys of all conversations of an agent; the keys stay known.
pub(super) fn delete_answers(conn: &Connection, agent: Uuid) -> StoreResult<()> {
    conn.prepare_cached(
        "UPDATE turn_keys SET answer = NULL
         WHERE conversation_id = ?1 OR conversation_id IN (SELECT id FROM conversations WHERE agent_id = ?1)",
    )?
    .execute([agent.as_bytes()])?;
    Ok(())
}
