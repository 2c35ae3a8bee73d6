//! Calls that several requests of the journal consist of.

use chorus_base::error::Result;
use chorus_journal::{NewContextRow, NewEvent, Record, to_nanos};
use chorus_proto::TokenPair;
use chorus_session::stored_message::{ContextNo, Totals};
use jiff::Timestamp;
use uuid::Uuid;

use crate::append::encode;
use crate::rows::to_bigint;
use crate::statement::{Call, call};

pub(crate) const END_CONTEXT: &str = "UPDATE contexts SET ended = true WHERE id = $1";

/// Inserts the row of a context, if it has none.
pub(crate) fn insert_context(context: ContextNo, head: &NewContextRow) -> Call {
    call!(
        "SELECT insert_context($1, $2, $3, $4, $5, $6)",
        context.0,
        head.conversation.agent,
        head.conversation.stored_id(),
        to_nanos(head.started_at),
        head.idle_deadline_at.map(to_nanos),
        head.parent,
    )
}

/// Adds records and totals; `activity` is the time of the last activity and the deadline.
pub(crate) fn insert_records(
    context: ContextNo,
    first: u32,
    envelopes: Vec<Vec<u8>>,
    totals: Totals,
    activity: Option<(Timestamp, Option<Timestamp>)>,
) -> Call {
    call!(
        "SELECT insert_records($1, $2, $3, $4, $5, $6, $7, $8)",
        context.0,
        i64::from(first),
        envelopes,
        to_bigint(totals.messages),
        to_bigint(totals.queries),
        to_bigint(totals.chars),
        activity.map(|(at, _)| to_nanos(at)),
        activity.and_then(|(_, deadline)| deadline).map(to_nanos),
    )
}

/// Stores an event of a node.
pub(crate) fn insert_event(node: &str, event: &NewEvent) -> Call {
    call!(
        "SELECT insert_event($1, $2, $3, $4, $5, $6)",
        node.to_owned(),
        to_nanos(event.at),
        event.kind.as_str().to_owned(),
        event.agent.clone(),
        event.conversation.clone(),
        event.data.to_string(),
    )
}

/// Begins a context in an ownership, and ends another. Returns the calls, or the error of encoding.
pub(crate) fn start_context<'a>(
    old: Option<ContextNo>,
    context: ContextNo,
    head: &NewContextRow,
    records: impl Iterator<Item = Record<'a>>,
    totals: Totals,
    restoration: TokenPair,
    session: Option<(Uuid, u64)>,
) -> Result<Vec<Call>> {
    let envelopes = encode(context, 0, records)?;
    let mut calls: Vec<Call> = old.map(|old| call!(END_CONTEXT, old.0)).into_iter().collect();
    calls.push(insert_context(context, head));
    calls.push(insert_records(context, 0, envelopes, totals, Some((head.started_at, head.idle_deadline_at))));
    calls.push(call!(
        "UPDATE contexts SET base_session = $2, saved_session = $2, saved_messages = $3, restored_input = $4,
             restored_output = $5 WHERE id = $1",
        context.0,
        session.map(|(id, _)| id),
        to_bigint(session.map_or(0, |(_, messages)| messages)),
        to_bigint(restoration.input),
        to_bigint(restoration.output),
    ));
    Ok(calls)
}

/// Makes `main` the selected conversation of an agent.
pub(crate) fn deselect(agent: Uuid) -> Call {
    call!("UPDATE conversations SET selected = false WHERE agent_id = $1 AND selected", agent)
}
