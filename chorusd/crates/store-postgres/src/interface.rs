//! The trait [`Journal`] for PostgreSQL.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use chorus_base::error::{Error, Result};
use chorus_journal::{
    AppendRequest, ContextRow, Continuation, ConversationRow, EventPublisher, Journal, JournalAppendOutcome,
    JournalEdit, JournalRead, JournalWrite, KEY_RETENTION_DAYS, MAX_REPLAYED_EVENTS, NewContextRow, NewEvent,
    NumberedRecords, Record, RecordCursor, SessionReference, TrailingRecords, TurnMark, message_records, to_nanos,
};
use chorus_proto::event::{Event, EventType};
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::{ContextNo, StoredMessage, Totals};
use jiff::Timestamp;
use uuid::Uuid;

use crate::PostgresJournal;
use crate::append::{append_work, encode, mark_parts, read_append_event, read_outcome};
use crate::batch::JobRows;
use crate::calls::{END_CONTEXT, deselect, insert_context, insert_event, insert_records, start_context};
use crate::event_log::publish_stored;
use crate::record_reader::{self, NEWEST_RECORDS};
use crate::rows::{CONVERSATION_COLUMNS, count, read_conversation, read_event, to_bigint};
use crate::statement::call;

/// Records that are deleted in one commit when an ended context is trimmed.
const RECORDS_PER_TRIM: i64 = 2_000;

impl Journal for PostgresJournal {
    fn reserve_context_no(&self) -> ContextNo {
        ContextNo(self.next_context.fetch_add(1, Ordering::Relaxed))
    }

    fn live_contexts(&self) -> JournalRead<'_, Vec<ContextRow>> {
        Box::pin(self.read_live_contexts(self.grants.all()))
    }

    fn conversations(&self) -> JournalRead<'_, Vec<ConversationRow>> {
        Box::pin(async move {
            let sql = format!("SELECT {CONVERSATION_COLUMNS} FROM conversations WHERE agent_id = ANY ($1)");
            let rows = self.query(&sql, &[&self.grants.agents()]).await?;
            Ok(rows.iter().map(read_conversation).collect())
        })
    }

    fn store_conversation(&self, row: ConversationRow) -> JournalWrite<()> {
        let grant = self.grants.of_agent(row.key.agent);
        let mut calls = Vec::new();
        if row.is_selected {
            calls.push(deselect(row.key.agent));
        }
        calls.push(call!(
            "INSERT INTO conversations (id, agent_id, name, origin, title, created_at, closed_at, selected, worktree)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
             ON CONFLICT (id) DO UPDATE SET name = $3, origin = $4, title = $5, closed_at = $7, selected = $8,
                 worktree = $9",
            row.key.id,
            row.key.agent,
            row.name,
            row.origin,
            row.title,
            to_nanos(row.created_at),
            row.closed_at.map(to_nanos),
            row.is_selected,
            row.worktree,
        ));
        self.write(grant, calls)
    }

    fn select_main_conversation(&self, agent: Uuid) -> JournalWrite<()> {
        self.write(self.grants.of_agent(agent), vec![deselect(agent)])
    }

    fn append(&self, append: AppendRequest) -> JournalWrite<JournalAppendOutcome> {
        let grant = self.grants.of_append(append.context, append.first, append.conversation.agent);
        let work = match append_work(&self.node.id, &append) {
            Ok(work) => work,
            Err(failure) => return Box::pin(async move { Err(failure) }),
        };
        let publisher = self.publisher.clone();
        let AppendRequest { at, agent_name, conversation_name, .. } = append;
        self.writer.submit_work(grant.map(Some), work, read_outcome, move |rows| {
            publisher.publish(read_append_event(rows, at, agent_name, conversation_name).map(Arc::new));
        })
    }

    fn append_edit(&self, edit: JournalEdit) -> JournalWrite<()> {
        let JournalEdit { context, begin, number, record, totals, saved, deadline } = edit;
        let grant = self.grants.of_append(context, number, begin.conversation.agent);
        let envelopes = match encode(context, number, std::iter::once(record.as_record())) {
            Ok(envelopes) => envelopes,
            Err(failure) => return Box::pin(async move { Err(failure) }),
        };
        let calls = vec![
            insert_context(context, &begin),
            insert_records(context, number, envelopes, Totals::default(), None),
            call!(
                "UPDATE contexts SET messages = $2, queries = $3, chars = $4, saved_messages = $5, idle_deadline_at = $6
                 WHERE id = $1",
                context.0,
                to_bigint(totals.messages),
                to_bigint(totals.queries),
                to_bigint(totals.chars),
                to_bigint(saved),
                deadline.map(to_nanos),
            ),
        ];
        self.write(grant, calls)
    }

    fn append_compaction(
        &self,
        context: ContextNo,
        number: u32,
        compaction: Bytes,
        event: NewEvent,
    ) -> JournalWrite<()> {
        match encode(context, number, std::iter::once(Record::Compact { json: &compaction })) {
            Ok(envelopes) => {
                let calls = vec![insert_records(context, number, envelopes, Totals::default(), None)];
                self.write_and_publish(self.grants.of_context(context), calls, event)
            }
            Err(failure) => Box::pin(async move { Err(failure) }),
        }
    }

    fn append_working_set(&self, context: ContextNo, number: u32, working_set: Bytes) -> JournalWrite<()> {
        match encode(context, number, std::iter::once(Record::WorkingSet { json: &working_set })) {
            Ok(envelopes) => {
                let calls = vec![insert_records(context, number, envelopes, Totals::default(), None)];
                self.write(self.grants.of_context(context), calls)
            }
            Err(failure) => Box::pin(async move { Err(failure) }),
        }
    }

    fn start_from_session(
        &self,
        old: Option<ContextNo>,
        context: ContextNo,
        head: NewContextRow,
        reference: SessionReference,
    ) -> JournalWrite<()> {
        let session = Some((reference.session, reference.totals.messages));
        let (totals, restoration) = (reference.totals_with_added(), reference.restoration);
        match start_context(old, context, &head, reference.records(), totals, restoration, session) {
            Ok(calls) => self.write(self.grants.of_append(context, 0, head.conversation.agent), calls),
            Err(failure) => Box::pin(async move { Err(failure) }),
        }
    }

    fn start_continuation(&self, new: Continuation) -> JournalWrite<()> {
        match start_context(new.old, new.context, &new.head, new.records(), new.totals(), new.restoration, None) {
            Ok(calls) => {
                let grant = self.grants.of_append(new.context, 0, new.head.conversation.agent);
                self.write_and_publish(grant, calls, new.event)
            }
            Err(failure) => Box::pin(async move { Err(failure) }),
        }
    }

    fn materialise_messages(
        &self,
        context: ContextNo,
        messages: Vec<StoredMessage>,
        session: Uuid,
        behind: TrailingRecords,
    ) -> JournalWrite<()> {
        let envelopes = match encode(context, 0, message_records(&messages).chain(behind.records())) {
            Ok(envelopes) => envelopes,
            Err(failure) => return Box::pin(async move { Err(failure) }),
        };
        let calls = vec![
            call!("DELETE FROM records WHERE context_id = $1", context.0),
            call!(
                "UPDATE contexts SET last_record = -1, base_session = NULL, saved_session = nullif(saved_session, $2),
                     saved_messages = CASE WHEN saved_session = $2 THEN 0 ELSE saved_messages END WHERE id = $1",
                context.0,
                session,
            ),
            insert_records(context, 0, envelopes, Totals::default(), None),
        ];
        self.write(self.grants.of_context(context), calls)
    }

    fn mark_saved(&self, context: ContextNo, messages: u64, session: Uuid) -> JournalWrite<()> {
        let sql = "UPDATE contexts SET saved_messages = $2, saved_session = $3 WHERE id = $1";
        self.write(self.grants.of_context(context), vec![call!(sql, context.0, to_bigint(messages), session)])
    }

    fn set_deadline(&self, context: ContextNo, deadline: Option<Timestamp>) -> JournalWrite<()> {
        let sql = "UPDATE contexts SET idle_deadline_at = $2 WHERE id = $1";
        self.write(self.grants.of_context(context), vec![call!(sql, context.0, deadline.map(to_nanos))])
    }

    fn close_turn(
        &self,
        conversation: ConversationKey,
        context: ContextNo,
        mark: TurnMark,
        at: Timestamp,
    ) -> JournalWrite<()> {
        let (opens, turn, key, answer) = mark_parts(Some(&mark));
        let call = call!(
            "SELECT mark_turn($1, $2, $3, $4, $5, $6, $7)",
            conversation.id,
            context.0,
            opens,
            turn,
            key,
            answer,
            to_nanos(at),
        );
        self.write(self.grants.of_context(context), vec![call])
    }

    fn end_context(&self, context: ContextNo) -> JournalWrite<()> {
        self.write(self.grants.of_context(context), vec![call!(END_CONTEXT, context.0)])
    }

    fn ended_contexts(&self) -> JournalRead<'_, Vec<ContextNo>> {
        Box::pin(async move {
            let sql = "SELECT id, agent_id FROM contexts WHERE agent_id = ANY ($1) AND ended ORDER BY id";
            let rows = self.query(sql, &[&self.grants.agents()]).await?;
            rows.iter()
                .map(|row| {
                    let context = ContextNo(row.get(0));
                    self.grants.add_context(context, self.grants.of_agent(row.get(1))?);
                    Ok(context)
                })
                .collect()
        })
    }

    fn trim(&self, contexts: Vec<ContextNo>) -> JournalRead<'_, ()> {
        Box::pin(async move {
            let remains = "SELECT EXISTS (SELECT FROM contexts WHERE id = $1 AND ended)";
            for context in contexts {
                loop {
                    let calls = vec![
                        call!(
                            "DELETE FROM records WHERE context_id = $1 AND number IN (
                                 SELECT number FROM records WHERE context_id = $1
                                     AND EXISTS (SELECT FROM contexts WHERE id = $1 AND ended)
                                 ORDER BY number DESC LIMIT $2)",
                            context.0,
                            RECORDS_PER_TRIM,
                        ),
                        call!(
                            "DELETE FROM contexts WHERE id = $1 AND ended
                                 AND NOT EXISTS (SELECT FROM records WHERE context_id = $1)",
                            context.0,
                        ),
                        call!(remains, context.0),
                    ];
                    let grant = self.grants.of_context(context).map(Some);
                    let more = |rows: &JobRows| {
                        let row = rows.last().and_then(|rows| rows.first());
                        row.map(|row| row.get::<_, bool>(0)).ok_or_else(|| Error::internal("no row of a context"))
                    };
                    if !self.writer.submit(grant, calls, Some(call!(remains, context.0)), more, |_| ()).await? {
                        break;
                    }
                }
                self.grants.remove_context(context);
            }
            Ok(())
        })
    }

    fn newest_records(&self, context: ContextNo) -> JournalRead<'_, (NumberedRecords, Option<RecordCursor>)> {
        Box::pin(async move {
            let (client, route) = (self.reader().await?, self.readers.route());
            match record_reader::newest_number(&client, route, context).await? {
                Some(newest) => record_reader::read_batch(&client, route, context, newest, NEWEST_RECORDS).await,
                None => Ok((Vec::new(), None)),
            }
        })
    }

    fn records_before(&self, context: ContextNo, cursor: RecordCursor) -> JournalRead<'_, Vec<NumberedRecords>> {
        Box::pin(
            async move { record_reader::read_all(&self.reader().await?, self.readers.route(), context, cursor).await },
        )
    }

    fn has_turn_key(&self, conversation: ConversationKey, key: String) -> JournalRead<'_, bool> {
        Box::pin(async move {
            let sql = "SELECT FROM turn_keys WHERE conversation_id = $1 AND key = $2";
            Ok(!self.query(sql, &[&conversation.id, &key]).await?.is_empty())
        })
    }

    fn delete_turn_answers(&self, agent: Uuid) -> JournalWrite<()> {
        let sql = "UPDATE turn_keys SET answer = NULL
             WHERE conversation_id = ANY (ARRAY (SELECT id FROM conversations WHERE agent_id = $1) || $1::uuid)";
        self.write(self.grants.of_agent(agent), vec![call!(sql, agent)])
    }

    fn prune_keys(&self, now: Timestamp) -> JournalWrite<()> {
        let before = to_nanos(now) - KEY_RETENTION_DAYS * 86_400 * 1_000_000_000;
        let calls = vec![
            call!("DELETE FROM append_keys WHERE at < $1", before),
            call!("DELETE FROM turn_keys WHERE at < $1", before),
        ];
        self.writer.submit(Ok(None), calls, None, |_| Ok(()), |_| ())
    }

    fn emit(&self, events: Vec<NewEvent>) -> JournalWrite<()> {
        let calls = events.iter().map(|event| insert_event(&self.node.id, event)).collect();
        let publisher = self.publisher.clone();
        let publish = move |rows: &JobRows| publish_stored(&publisher, events, rows.iter());
        self.writer.submit(Ok(None), calls, None, |_| Ok(()), publish)
    }

    fn events_after(&self, after: u64, limit: u64) -> JournalRead<'_, (Vec<Event>, u64)> {
        Box::pin(async move {
            let newest = self.last_event().await?;
            let oldest = newest.saturating_sub(MAX_REPLAYED_EVENTS) + 1;
            let missed = oldest.saturating_sub(after.saturating_add(1)).min(newest.saturating_sub(after));
            let from = to_bigint(after.max(oldest - 1));
            let sql = "SELECT seq, at, type, agent, conversation, data FROM events WHERE node = $1 AND seq > $2
                 ORDER BY seq LIMIT $3";
            let rows = self.query(sql, &[&self.node.id, &from, &to_bigint(limit)]).await?;
            Ok((rows.iter().map(read_event).collect(), missed))
        })
    }

    fn last_event(&self) -> JournalRead<'_, u64> {
        Box::pin(async move {
            let rows = self.query("SELECT event FROM writers WHERE node = $1", &[&self.node.id]).await?;
            Ok(rows.first().map_or(0, |row| count(row, 0)))
        })
    }

    fn delete_events_of(&self, session: Uuid) -> JournalWrite<()> {
        let id = session.to_string();
        let short = id.get(..8).unwrap_or_default().to_owned();
        let notice = EventType::Notice.as_str().to_owned();
        let finished = EventType::ScheduleFinished.as_str().to_owned();
        // Replies to schedules may be of the session.
        let sql = "DELETE FROM events WHERE strpos(data, $1) > 0 OR (type = $2 AND strpos(data, $3) > 0)
             OR (type = $4 AND strpos(data, '\"reply\"') > 0)";
        self.writer.submit(Ok(None), vec![call!(sql, id, notice, short, finished)], None, |_| Ok(()), |_| ())
    }

    fn publisher(&self) -> &EventPublisher {
        &self.publisher
    }

    fn ping(&self) -> JournalWrite<()> {
        self.writer.submit(Ok(None), Vec::new(), None, |_| Ok(()), |_| ())
    }

    fn ensure_healthy(&self) -> Result<()> {
        self.writer.ensure_healthy()
    }

    fn flush(&self) -> JournalRead<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}
