//! Appends as calls of the database, and their rows as outcomes.

use chorus_base::error::{Error, Result};
use chorus_journal::{
    AppendRequest, JournalAppendOutcome, KnownTurn, Record, RecordPosition, TurnMark, message_records, to_nanos,
};
use chorus_proto::event::{Event, EventType};
use chorus_proto::methods::context::AppendResult;
use chorus_session::stored_message::{ContextNo, Totals};
use serde_json::json;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::batch::JobRows;
use crate::plain_append::PlainAppend;
use crate::rows::{count, to_bigint};
use crate::statement::call;
use crate::writer::Work;

/// The parts of a mark: whether it opens a turn, the turn, its key, its answer.
pub(crate) fn mark_parts(mark: Option<&TurnMark>) -> (Option<bool>, Option<Uuid>, Option<String>, Option<String>) {
    match mark {
        None => (None, None, None, None),
        Some(TurnMark::Open { turn, key }) => (Some(true), Some(*turn), key.clone(), None),
        Some(TurnMark::Close { turn, key, answer }) => (Some(false), Some(*turn), key.clone(), answer.clone()),
    }
}

/// Encodes records of `context`, numbered from `first`.
pub(crate) fn encode<'a>(
    context: ContextNo,
    first: u32,
    records: impl Iterator<Item = Record<'a>>,
) -> Result<Vec<Vec<u8>>> {
    (first..)
        .zip(records)
        .map(|(number, record)| record.encode(context, RecordPosition { before: None, number }))
        .collect()
}

/// Returns the work of an append: its call, and the one that finds its outcome later.
pub(crate) fn append_work(node: &str, append: &AppendRequest) -> Result<Work> {
    let AppendRequest { conversation, context, begin, first, at, deadline, key, mark, .. } = append;
    let envelopes = encode(*context, *first, message_records(&append.messages))?;
    let plain = PlainAppend::of(append, &envelopes);
    let totals = Totals::count(&append.messages);
    let (opens, turn, turn_key, turn_answer) = mark_parts(mark.as_ref());
    let find = call!(
        "SELECT * FROM find_append($1, $2, $3, $4, $5, $6, $7, $8)",
        conversation.id,
        context.0,
        i64::from(*first),
        to_bigint(totals.messages),
        key.clone(),
        opens,
        turn,
        turn_key.clone(),
    );
    let append = call!(
        "SELECT * FROM append_messages($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
             $19, $20, $21)",
        conversation.agent,
        conversation.id,
        conversation.stored_id(),
        context.0,
        to_nanos(begin.started_at),
        begin.idle_deadline_at.map(to_nanos),
        begin.parent,
        i64::from(*first),
        envelopes,
        to_bigint(totals.queries),
        to_bigint(totals.chars),
        to_nanos(*at),
        deadline.map(to_nanos),
        key.clone(),
        opens,
        turn,
        turn_key,
        turn_answer,
        node.to_owned(),
        append.agent_name.clone(),
        append.conversation_name.clone(),
    );
    Ok(Work { calls: vec![append], confirm: Some(find), plain })
}

fn only_row(rows: &JobRows) -> Result<&Row> {
    rows.first().and_then(|rows| rows.first()).ok_or_else(|| Error::internal("PostgreSQL returned no row"))
}

/// Reads the outcome of an append.
pub(crate) fn read_outcome(rows: &JobRows) -> Result<JournalAppendOutcome> {
    let row = only_row(rows)?;
    let counts =
        |row| AppendResult { appended: count(row, 1), messages: count(row, 2), secrets_found: None, note: None };
    match row.get(0) {
        "added" => Ok(JournalAppendOutcome::Added(counts(row))),
        "append" => Ok(JournalAppendOutcome::RepeatedAppend(counts(row))),
        "turn" => Ok(JournalAppendOutcome::RepeatedTurn(KnownTurn { turn: row.get(3), answer: row.get(4) })),
        other => Err(Error::internal(format!("PostgreSQL returned the outcome {other:?}"))),
    }
}

/// Reads the event of an append, if it has one.
pub(crate) fn read_append_event(
    rows: &JobRows,
    at: jiff::Timestamp,
    agent: String,
    conversation: Option<String>,
) -> Option<Event> {
    let row = only_row(rows).ok()?;
    let seq = u64::try_from(row.get::<_, Option<i64>>(5)?).ok()?;
    let data = json!({"appended": count(row, 1), "messages": count(row, 2)});
    Some(Event { seq, time: at, kind: EventType::MessageAppended, agent: Some(agent), conversation, data, node: None })
}
