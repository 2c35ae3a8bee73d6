//! The contract of a journal, whatever keeps it: the same requests have the same results in SQLite and in PostgreSQL.

use std::fmt::Debug;
use std::sync::Arc;

use chorus_base::Durability;
use chorus_base::error::Result as JournalResult;
use chorus_journal::{
    AppendRequest, ContextRow, Continuation, ConversationRow, EditRecord, Journal, JournalEdit, KEY_RETENTION_DAYS,
    NewContextRow, NewEvent, SessionReference, TrailingRecords, TurnMark,
};
use chorus_proto::TokenPair;
use chorus_proto::event::{Event, EventType};
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::{ContextNo, Totals};
use chorus_store::Store;
use serde_json::json;
use uuid::Uuid;

use super::{Result, at, begin, claim, message, open_at, request};
use chorus_tests::pgbouncer::PoolMode;
use chorus_tests::postgres::Database;

const AGENT: Uuid = Uuid::from_u128(0xa);
const OTHER: Uuid = Uuid::from_u128(0xb);
const SESSION: Uuid = Uuid::from_u128(0x5e55_1000_0000_0000_0000_0000_0000_0001);

/// The results of a journal, one a line. Contexts have numbers of their own, because each journal numbers them as it likes.
struct Script<'a> {
    journal: &'a dyn Journal,
    contexts: Vec<ContextNo>,
    lines: Vec<String>,
}

impl Script<'_> {
    fn note(&mut self, what: &str, result: &impl Debug) {
        self.lines.push(format!("{what}: {result:?}"));
    }

    fn note_outcome<T: Debug>(&mut self, what: &str, result: JournalResult<T>) {
        match result {
            Ok(value) => self.note(what, &value),
            Err(_) => self.note(what, &"refused"),
        }
    }

    fn context(&mut self) -> ContextNo {
        let context = self.journal.reserve_context_no();
        self.contexts.push(context);
        context
    }

    fn place(&self, context: ContextNo) -> i64 {
        let place = self.contexts.iter().position(|known| *known == context);
        place.and_then(|place| i64::try_from(place).ok()).unwrap_or(-1)
    }

    async fn append(&mut self, what: &str, append: AppendRequest) {
        let outcome = self.journal.append(append).await;
        self.note_outcome(what, outcome);
    }

    /// Notes everything that can be read of all live contexts.
    async fn note_contexts(&mut self, what: &str) -> Result {
        for row in self.journal.live_contexts().await? {
            let context = row.context;
            let row = ContextRow { context: ContextNo(self.place(context)), ..row };
            self.note(what, &row);
            self.note_records(what, context).await?;
        }
        Ok(())
    }

    async fn note_records(&mut self, what: &str, context: ContextNo) -> Result {
        let (newest, cursor) = self.journal.newest_records(context).await?;
        let mut records = match cursor {
            Some(cursor) => self.journal.records_before(context, cursor).await?.into_iter().flatten().collect(),
            None => Vec::new(),
        };
        records.extend(newest);
        self.note(what, &records);
        Ok(())
    }

    async fn note_events(&mut self, what: &str, after: u64, limit: u64) -> Result {
        let events = self.journal.events_after(after, limit).await?;
        self.note(what, &events);
        self.note(what, &self.journal.last_event().await?);
        Ok(())
    }
}

fn row(conversation: u128, name: &str, is_selected: bool) -> ConversationRow {
    ConversationRow {
        key: ConversationKey { agent: AGENT, id: Uuid::from_u128(conversation) },
        name: name.to_owned(),
        origin: (conversation == 1).then(|| "thread 1".to_owned()),
        title: None,
        created_at: at(0),
        closed_at: (conversation == 3).then(|| at(9)),
        is_selected,
        worktree: (conversation == 2).then(|| "tree".to_owned()),
    }
}

fn event(text: &str) -> NewEvent {
    NewEvent {
        at: at(5),
        kind: EventType::Notice,
        agent: Some("a".into()),
        conversation: Some("thread".into()),
        data: json!({"text": text}),
    }
}

fn texts(count: u32) -> Vec<String> {
    (0..count).map(|number| format!("text {number}, with an umlaut: \u{e4}")).collect()
}

async fn appends(script: &mut Script<'_>) -> Result {
    let (one, two) = (script.context(), script.context());
    script.append("first", request(AGENT, one, 0, &texts(3))?).await;
    script.append("next", request(AGENT, one, 3, &texts(1))?).await;
    script.append("nothing", request(AGENT, one, 4, &[])?).await;
    let mut keyed = request(OTHER, two, 0, &texts(2))?;
    keyed.key = Some("k".into());
    script.append("with a key", keyed.clone()).await;
    keyed.first = 7;
    script.append("repeated", keyed.clone()).await;
    // The same key in another conversation is another key.
    let thread = ConversationKey { agent: OTHER, id: Uuid::from_u128(7) };
    let three = script.context();
    keyed = AppendRequest {
        conversation: thread,
        conversation_name: Some("thread".into()),
        context: three,
        begin: NewContextRow { conversation: thread, parent: Some(SESSION), idle_deadline_at: None, ..begin(OTHER) },
        first: 0,
        deadline: None,
        ..keyed
    };
    script.append("elsewhere", keyed).await;
    // After a repeated request its number stays unused.
    script.append("behind a gap", request(OTHER, two, 9, &texts(1))?).await;
    script.note_contexts("appends").await
}

async fn turns(script: &mut Script<'_>) -> Result {
    let context = script.context();
    let main = ConversationKey::main(AGENT);
    let turn = Uuid::from_u128(0x7);
    let key = Some("turn key".to_owned());
    let mut start = request(AGENT, context, 0, &texts(1))?;
    start.mark = Some(TurnMark::Open { turn, key: key.clone() });
    script.append("open", start.clone()).await;
    script.note_contexts("in a turn").await?;
    start.first = 1;
    start.mark = Some(TurnMark::Open { turn: Uuid::from_u128(0x8), key: key.clone() });
    script.append("again", start.clone()).await;
    let mut end = request(AGENT, context, 1, &texts(1))?;
    end.mark = Some(TurnMark::Close { turn, key: key.clone(), answer: Some(r#"{"text":"done"}"#.into()) });
    script.append("close", end).await;
    start.first = 2;
    script.append("and again", start.clone()).await;
    start.mark = Some(TurnMark::Open { turn: Uuid::from_u128(0x9), key: None });
    start.messages.clear();
    script.append("of a stored message", start.clone()).await;
    script.note_contexts("in another turn").await?;
    let mark = TurnMark::Close { turn: Uuid::from_u128(0x9), key: None, answer: None };
    script.note_outcome("ended", script.journal.close_turn(main, context, mark, at(3)).await);
    script.note_outcome("known", script.journal.has_turn_key(main, "turn key".into()).await);
    script.note_outcome("unknown", script.journal.has_turn_key(main, "other".into()).await);
    script.note_outcome("forget", script.journal.delete_turn_answers(AGENT).await);
    start.mark = Some(TurnMark::Open { turn: Uuid::from_u128(0x8), key });
    script.append("without an answer", start.clone()).await;
    let late = at(KEY_RETENTION_DAYS * 86_400 + 2);
    script.note_outcome("prune", script.journal.prune_keys(late).await);
    script.append("as if new", start).await;
    script.note_contexts("turns").await
}

async fn edits(script: &mut Script<'_>) -> Result {
    let journal = script.journal;
    let context = script.context();
    let edit = |number, record, totals| JournalEdit {
        context,
        begin: begin(AGENT),
        number,
        record,
        totals,
        saved: 1,
        deadline: Some(at(70)),
    };
    let pins = EditRecord::WorkingSet(r#"{"topics":[]}"#.into());
    script.note_outcome("pins", journal.append_edit(edit(0, pins, Totals::default())).await);
    script.append("after pins", request(AGENT, context, 1, &texts(4))?).await;
    let totals = Totals { messages: 2, queries: 2, chars: 9 };
    let rewind = EditRecord::Rewind { keep: 2, saved: 1 };
    script.note_outcome("rewind", journal.append_edit(edit(5, rewind, totals)).await);
    script.note_contexts("rewound").await?;
    script.note_outcome("undo", journal.append_edit(edit(6, EditRecord::Unrewind, totals)).await);
    script.note_outcome("notes", journal.append_edit(edit(7, EditRecord::Notes("[]".into()), totals)).await);
    script.note_outcome("uncompact", journal.append_edit(edit(8, EditRecord::Uncompact, totals)).await);
    let compaction = journal.append_compaction(context, 9, r#"{"kept":1}"#.into(), event("compacted"));
    script.note_outcome("compaction", compaction.await);
    script.note_outcome("set", journal.append_working_set(context, 10, "{}".into()).await);
    script.note_outcome("deadline", journal.set_deadline(context, None).await);
    script.note_outcome("saved", journal.mark_saved(context, 2, SESSION).await);
    script.note_contexts("edits").await
}

async fn replacements(script: &mut Script<'_>) -> Result {
    let journal = script.journal;
    let (old, new, last) = (script.context(), script.context(), script.context());
    script.append("old", request(AGENT, old, 0, &texts(2))?).await;
    let reference = SessionReference {
        session: SESSION,
        totals: Totals { messages: 40, queries: 20, chars: 4000 },
        working_set: "{}".into(),
        restoration: TokenPair { input: 7, output: 3 },
        added: vec![message("of its own")?],
    };
    let started = journal.start_from_session(Some(old), new, begin(AGENT), reference.clone()).await;
    script.note_outcome("restored", started);
    script.note_contexts("restored").await?;
    script.append("behind it", request(AGENT, new, 4, &texts(1))?).await;
    let behind = TrailingRecords {
        initial_working_set: Some("{}".into()),
        compactions: vec!["{}".into(), r#"{"kept":2}"#.into()],
        working_set: Some(r#"{"decisions":[]}"#.into()),
        restoration: Some(TokenPair { input: 7, output: 3 }),
        compaction: Some("{}".into()),
    };
    let whole = texts(3).iter().map(|text| message(text)).collect::<Result<_>>()?;
    script.note_outcome("own messages", journal.materialise_messages(new, whole, SESSION, behind).await);
    script.note_contexts("materialised").await?;
    let continuation = Continuation {
        old: Some(new),
        context: last,
        head: NewContextRow { parent: Some(SESSION), ..begin(AGENT) },
        working_set: "{}".into(),
        messages: vec![message("tail")?],
        restoration: TokenPair { input: 1, output: 2 },
        compaction: Some("{}".into()),
        event: event("continued"),
    };
    script.note_outcome("continued", journal.start_continuation(continuation).await);
    script.note_contexts("continued").await?;
    let ended = journal.ended_contexts().await?;
    script.note("ended", &ended.iter().map(|context| script.place(*context)).collect::<Vec<_>>());
    script.note_outcome("trim", journal.trim(ended).await);
    script.note("none ended", &journal.ended_contexts().await?.len());
    script.note_records("nothing left", old).await?;
    script.note_outcome("end", journal.end_context(last).await);
    script.note_contexts("nothing live").await
}

async fn conversations(script: &mut Script<'_>) -> Result {
    let journal = script.journal;
    for (conversation, name, selected) in [(1, "one", true), (2, "two", true), (3, "three", false)] {
        script.note_outcome(name, journal.store_conversation(row(conversation, name, selected)).await);
    }
    script.note_outcome("name in use", journal.store_conversation(row(4, "one", false)).await);
    let same_origin = ConversationRow { key: row(5, "", false).key, name: "five".into(), ..row(1, "", true) };
    script.note_outcome("origin in use", journal.store_conversation(same_origin).await);
    let renamed = ConversationRow { title: Some("T".into()), ..row(1, "renamed", false) };
    script.note_outcome("renamed", journal.store_conversation(renamed).await);
    script.note_outcome("main", journal.select_main_conversation(AGENT).await);
    let mut rows = journal.conversations().await?;
    rows.sort_by_key(|row| row.key.id);
    script.note("conversations", &rows);
    Ok(())
}

async fn events(script: &mut Script<'_>) -> Result {
    let journal = script.journal;
    script.note_events("none", 0, 10).await?;
    let mut told = journal.subscribe();
    script.note_outcome("two", journal.emit(vec![event("one"), event(&format!("saved {SESSION}"))]).await);
    let context = script.context();
    script.append("with an event", request(AGENT, context, 0, &texts(2))?).await;
    script.note_outcome("short", journal.emit(vec![event("saved 5e551000"), event("last")]).await);
    for _ in 0..5 {
        script.note("told", &told.recv().await?);
    }
    journal.publisher().publish_transient(|| event("not stored"));
    script.note("told", &told.recv().await?);
    script.note_events("all", 0, 100).await?;
    script.note_events("page", 1, 2).await?;
    script.note_events("after the last", 5, 2).await?;
    script.note_events("beyond", u64::MAX, 2).await?;
    script.note_outcome("delete", journal.delete_events_of(SESSION).await);
    script.note_events("deleted", 0, 100).await?;
    let many = (0..11_200).map(|number| event(&number.to_string())).collect::<Vec<_>>();
    for part in many.chunks(700) {
        script.note_outcome("many", journal.emit(part.to_vec()).await);
    }
    let (kept, missed): (Vec<Event>, u64) = journal.events_after(0, 20_000).await?;
    let seqs = kept.first().map(|event| event.seq).zip(kept.last().map(|event| event.seq));
    script.note("kept", &(kept.len(), seqs, missed));
    script.note_outcome("ping", journal.ping().await);
    script.note_outcome("flush", journal.flush().await);
    script.note_outcome("healthy", journal.ensure_healthy());
    Ok(())
}

/// A context of several batches, with an edit somewhere.
async fn large_contexts(script: &mut Script<'_>) -> Result {
    let context = script.context();
    let mut first = 0;
    for _ in 0..7 {
        script.append("many", request(AGENT, context, first, &texts(1500))?).await;
        first += 1500;
    }
    let (newest, cursor) = script.journal.newest_records(context).await?;
    let before = script.journal.records_before(context, cursor.ok_or("no cursor")?).await?;
    let numbers: Vec<u32> = before.iter().flatten().chain(&newest).map(|(number, _)| *number).collect();
    assert!(numbers.iter().copied().eq(0..first));
    script.note("newest", &newest.len());
    script.journal.end_context(context).await?;
    script.journal.trim(vec![context]).await?;
    script.note("trimmed", &script.journal.ended_contexts().await?.len());
    script.note_records("trimmed", context).await
}

/// Runs the same script against both journals, PostgreSQL reached directly and through pgbouncer.
macro_rules! same_in_both {
    ($($name:ident = $script:ident),* $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() -> Result {
            let home = tempfile::tempdir()?;
            std::fs::create_dir(home.path().join("db"))?;
            let redactor = Arc::new(chorus_redact::Redactor::new(|| [0; 32]));
            let on_fatal: chorus_store::OnFatal = Arc::new(|_| ());
            let store = Store::open(home.path(), Durability::Always, &on_fatal, at(0), redactor)?;
            let mut sqlite = Script { journal: &*store.journal, contexts: Vec::new(), lines: Vec::new() };
            $script(&mut sqlite).await?;
            assert!(sqlite.lines.len() > 2);
            for pooler in [None, Some(PoolMode::Transaction), Some(PoolMode::Session)] {
                let Some(database) = Database::create().await? else { return Ok(()) };
                let port = match pooler {
                    Some(mode) => database.port_through(mode)?,
                    None => Some(database.port()),
                };
                let Some(port) = port else { continue };
                let (journal, _) = open_at(&database, port, "a").await?;
                claim(&journal, AGENT).await?;
                claim(&journal, OTHER).await?;
                let mut postgres = Script { journal: &journal, contexts: Vec::new(), lines: Vec::new() };
                $script(&mut postgres).await?;
                for (sqlite, postgres) in sqlite.lines.iter().zip(&postgres.lines) {
                    assert_eq!(sqlite, postgres, "{pooler:?}");
                }
                assert_eq!(sqlite.lines.len(), postgres.lines.len(), "{pooler:?}");
            }
            store.close().await?;
            Ok(())
        })*
    };
}

same_in_both! {
    appends_and_idempotency_keys = appends,
    turns_and_their_keys = turns,
    edits_and_compactions = edits,
    contexts_that_replace_others = replacements,
    conversations_and_their_names = conversations,
    events_and_what_is_deleted_of_them = events,
    contexts_of_many_records = large_contexts,
}
