//! Converts effects of the state machine to records of the journal, and the journal's answers back.

use bytes::Bytes;
use chorus_agent_core::context::Context;
use chorus_agent_core::effect::{Append, ContextEdit, ContextHead, Edit, TurnMarker};
use chorus_agent_core::event::{AppendOutcome, PriorTurn};
use chorus_journal as journal;
use chorus_journal::{EditRecord, NewContextRow, TrailingRecords, TurnMark};
use chorus_proto::TokenPair;
use chorus_session::conversation::ConversationKey;
use serde::Serialize;

pub(super) fn to_json_bytes(what: &impl Serialize) -> Bytes {
    // Strings and numbers always serialise.
    serde_json::to_vec(what).unwrap_or_default().into()
}

/// Builds the records that follow the messages of a materialised context, so that its compactions can still be undone
/// after a reload.
pub(super) fn trailing_records(context: &Context) -> TrailingRecords {
    let before = context.compactions.first().map(|first| {
        let mut set = context.working_set.clone();
        first.previous.clone().apply_to(&mut set);
        to_json_bytes(&set)
    });
    let compactions = context.compactions.iter().map(|done| to_json_bytes(&done.compaction)).collect();
    let restoration = Some(context.restoration).filter(|cost| *cost != TokenPair::default());
    let compaction = context.begun_by_compaction.as_deref().map(to_json_bytes);
    TrailingRecords {
        initial_working_set: before,
        compactions,
        working_set: Some(to_json_bytes(&context.working_set)),
        restoration,
        compaction,
    }
}

pub(super) fn to_journal_marker(mark: TurnMarker) -> TurnMark {
    match mark {
        TurnMarker::Open { turn, key } => TurnMark::Open { turn, key },
        TurnMarker::Close { turn, key, answer } => {
            TurnMark::Close { turn, key, answer: answer.and_then(|answer| serde_json::to_string(&answer).ok()) }
        }
    }
}

pub(super) fn to_journal_edit(change: Edit, conversation: ConversationKey) -> journal::JournalEdit {
    journal::JournalEdit {
        context: change.head.context,
        begin: to_journal_head(&change.head, conversation),
        number: change.record_number,
        record: match change.edit {
            ContextEdit::WorkingSet(set) => EditRecord::WorkingSet(to_json_bytes(&set)),
            ContextEdit::Notes(changes) => EditRecord::Notes(to_json_bytes(&changes)),
            ContextEdit::Rewind { keep, saved } => EditRecord::Rewind { keep, saved },
            ContextEdit::Unrewind => EditRecord::Unrewind,
            ContextEdit::Uncompact => EditRecord::Uncompact,
        },
        totals: change.totals,
        saved: change.saved,
        deadline: change.deadline.map(|deadline| deadline.at),
    }
}

pub(super) fn to_journal_head(begin: &ContextHead, conversation: ConversationKey) -> NewContextRow {
    NewContextRow {
        conversation,
        started_at: begin.started_at,
        idle_deadline_at: begin.deadline.map(|deadline| deadline.at),
        parent: begin.parent,
    }
}

pub(super) fn to_journal_append(
    append: Append,
    conversation: ConversationKey,
    conversation_name: Option<String>,
) -> journal::AppendRequest {
    journal::AppendRequest {
        conversation,
        agent_name: append.agent_name,
        conversation_name,
        context: append.head.context,
        begin: to_journal_head(&append.head, conversation),
        first: append.first_record,
        messages: append.messages,
        at: append.at,
        deadline: append.deadline.map(|deadline| deadline.at),
        key: append.key,
        mark: append.marker.map(to_journal_marker),
    }
}

pub(super) fn from_journal_outcome(appended: journal::JournalAppendOutcome) -> AppendOutcome {
    match appended {
        journal::JournalAppendOutcome::Added(answer) => AppendOutcome::Added(answer),
        journal::JournalAppendOutcome::RepeatedAppend(answer) => AppendOutcome::Duplicate(answer),
        journal::JournalAppendOutcome::RepeatedTurn(known) => AppendOutcome::DuplicateTurn(PriorTurn {
            turn: known.turn,
            result: known.answer.and_then(|answer| serde_json::from_str(&answer).ok()),
        }),
    }
}
