//! Tests with databases of the same shape as the tools write, whose contents are only in the write-ahead log.

use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::{ConversationDatabase, DatabaseError, Tool};

/// A database that its tool has open.
struct Live {
    writer: Connection,
    dir: tempfile::TempDir,
}

impl Live {
    fn new(schema: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let writer = Connection::open(dir.path().join("a.db")).expect("a database");
        writer
            .execute_batch(&format!("pragma journal_mode = wal; pragma wal_autocheckpoint = 0; {schema}"))
            .expect("written");
        Self { writer, dir }
    }

    fn run(&self, statements: &str) {
        self.writer.execute_batch(statements).expect("written");
    }

    fn open(&self, tool: Tool) -> ConversationDatabase {
        let database = ConversationDatabase::open(&self.dir.path().join("a.db")).expect("opened");
        assert_eq!(database.tool(), tool);
        database
    }
}

fn text(database: &ConversationDatabase, id: &str) -> String {
    let mut out = Vec::new();
    database.write_document(id, &mut out).expect("a document");
    String::from_utf8(out).expect("UTF-8")
}

fn document(database: &ConversationDatabase, id: &str) -> Value {
    serde_json::from_str(&text(database, id)).expect("JSON")
}

/// Returns the ids, and whether the marker of the first conversation is another one after `change`.
fn changes(live: &Live, tool: Tool, change: &str) -> (Vec<String>, bool) {
    let before = live.open(tool).list().expect("a list");
    live.run(change);
    let after = live.open(tool).list().expect("a list");
    (after.iter().map(|one| one.id.clone()).collect(), before[0].changed != after[0].changed)
}

#[test]
fn opencode_writes_its_export() {
    let live = Live::new(
        "create table session (id text primary key, parent_id text, directory text, title text, version text, time_created integer, time_updated integer);
         create table message (id text primary key, session_id text, time_created integer, time_updated integer, data text);
         create table part (id text primary key, message_id text, session_id text, time_created integer, time_updated integer, data text);
         create table credential (secret text);
         insert into session values ('ses_1', null, '/srv/shop', 'The files', '1.2', 1, 2), ('ses_2', 'ses_1', '/srv/shop', 'x', '1.2', 3, 4);
         insert into message values ('msg_2', 'ses_1', 2, 2, '{\"role\":\"assistant\",\"n\":1.10}'), ('msg_1', 'ses_1', 1, 1, ' { \"role\":\"user\"}'), ('msg_3', 'ses_1', 3, 3, 'broken'), ('msg_4', 'ses_1', 4, 4, '{}');
         insert into part values ('prt_2', 'msg_1', 'ses_1', 1, 1, '{\"type\":\"text\",\"text\":\"b\"}'), ('prt_1', 'msg_1', 'ses_1', 1, 1, '{\"type\":\"text\",\"text\":\"a\"}');
         insert into credential values ('sk-secret');",
    );
    let database = live.open(Tool::Opencode);
    let found = document(&database, "ses_1");
    assert_eq!((&found["info"]["directory"], &found["info"]["time"]["created"]), (&json!("/srv/shop"), &json!(1)));
    let messages: Vec<_> = found["messages"].as_array().expect("a list").iter().map(|one| &one["info"]["id"]).collect();
    assert_eq!(messages, ["msg_1", "msg_2", "msg_3", "msg_4"]);
    assert_eq!(
        found["messages"][0]["parts"],
        json!([{"id": "prt_1", "type": "text", "text": "a"}, {"id": "prt_2", "type": "text", "text": "b"}])
    );
    let whole = text(&database, "ses_1");
    assert!(whole.contains("\"n\":1.10") && !whole.contains("secret"), "{whole}");
    assert_eq!(document(&database, "ses_2")["info"]["parentID"], "ses_1");
    assert!(matches!(database.write_document("ses_9", &mut Vec::new()), Err(DatabaseError::NoConversation(_))));
    let changed = changes(&live, Tool::Opencode, "update part set time_updated = 9 where id = 'prt_1'");
    assert_eq!(changed, (vec!["ses_1".into(), "ses_2".into()], true));
    assert!(!changes(&live, Tool::Opencode, "update session set time_updated = 9 where id = 'ses_2'").1);
}

#[test]
fn goose_writes_its_export_of_any_version() {
    let messages = "create table messages (id integer primary key autoincrement, session_id text, role text, content_json text, created_timestamp integer, message_id text, metadata_json text);
         insert into messages (session_id, role, content_json, created_timestamp, message_id, metadata_json) values
         ('1', 'assistant', '[{\"type\":\"text\",\"text\":\"a.py\"}]', 2, 'm2', null), ('1', 'user', '[{\"type\":\"text\",\"text\":\"List\"}]', 1, 'm1', '{\"userVisible\":true}'),
         ('1', 'user', '[]', 1, 'm0', '{\"turnContext\":true}'), ('1', 'user', 'broken', 3, 'm3', null);";
    let new = Live::new(&format!(
        "create table sessions (id text primary key, name text, description text, session_type text, working_dir text, created_at text, updated_at text, model_config_json text, parent_session_id text);
         insert into sessions values ('1', 'The files', '', 'user', '/srv/shop', '2026-11-26 20:52:18', 'x', '{{\"model_name\":\"m\"}}', null), ('2', 'n', '', 'hidden', '/', '2026-11-27', 'x', null, null), ('3', 'n', '', 'sub_agent', '/', '2026-11-28', 'x', null, '1');
         {messages}"
    ));
    let database = new.open(Tool::Goose);
    let found = document(&database, "1");
    assert_eq!((&found["name"], &found["model_config"]["model_name"]), (&json!("The files"), &json!("m")));
    let ids: Vec<_> = found["conversation"].as_array().expect("a list").iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, ["m1", "m2", "m3"]);
    assert_eq!(
        found["conversation"][1],
        json!({"id": "m2", "role": "assistant", "created": 2, "content": [{"type": "text", "text": "a.py"}]})
    );
    assert_eq!(found["conversation"][2]["content"], "broken");
    let child = document(&database, "3");
    assert_eq!(
        (&child["parent_session_id"], &child["parent_created_at"]),
        (&json!("1"), &json!("2026-11-26 20:52:18"))
    );
    let again = "delete from messages where message_id = 'm3'; insert into messages (session_id, role, content_json, created_timestamp) values ('1', 'user', '[]', 3)";
    assert_eq!(changes(&new, Tool::Goose, again), (vec!["1".into(), "3".into()], true));
    let old = Live::new(&format!(
        "create table sessions (id text primary key, description text, working_dir text, created_at text, updated_at text);
         insert into sessions values ('1', 'The files', '/srv/shop', '2025-09-01', 'x'); {messages}"
    ));
    assert_eq!(document(&old.open(Tool::Goose), "1")["description"], "The files");
    assert_eq!(old.open(Tool::Goose).list().expect("a list").len(), 1);
}

#[test]
fn hermes_writes_what_is_left_after_an_undo() {
    let live = Live::new(
        "create table sessions (id text primary key, source text, model text, started_at real, cwd text, title text);
         create table messages (id integer primary key, session_id text, role text, content text, tool_calls text, timestamp real, active integer default 1, compacted integer default 0);
         insert into sessions values ('1', 'cli', 'm', 1772355600.25, '/srv/shop', 'The files');
         insert into messages (session_id, role, content, tool_calls, timestamp, active, compacted) values
         ('1', 'user', 'List', null, 1.5, 0, 1), ('1', 'assistant', 'a', '[{\"id\":\"c1\"}]', 2.5, 1, 0), ('1', 'user', 'undone', null, 3, 0, 0);",
    );
    let found = document(&live.open(Tool::Hermes), "1");
    assert_eq!((&found["cwd"], &found["started_at"]), (&json!("/srv/shop"), &json!(1_772_355_600.25)));
    let texts: Vec<_> = found["messages"].as_array().expect("a list").iter().map(|one| &one["content"]).collect();
    assert_eq!(texts, ["List", "a"]);
    assert_eq!(found["messages"][1]["tool_calls"][0]["id"], "c1");
    assert!(changes(&live, Tool::Hermes, "update messages set active = 0 where content = 'a'").1);
    // Contents with a NUL are read to their end.
    live.run(
        "insert into messages (session_id, role, content, timestamp) values ('1', 'user', char(0) || 'json:[1]', 4)",
    );
    assert_eq!(document(&live.open(Tool::Hermes), "1")["messages"][1]["content"], "\0json:[1]");
}

#[test]
fn openclaw_writes_the_lines_of_its_transcripts() {
    let live = Live::new(
        "create table session_windows (session_id text primary key, created_at integer);
         create table transcript_events (session_id text, seq integer, event_json text, event_zstd blob, primary key (session_id, seq));
         insert into session_windows values ('s', 1), ('empty', 2);
         insert into transcript_events values ('s', 1, '{\"type\":\"message\",\n\"n\":1}', null), ('s', 0, '{\"type\":\"session\"}', null), ('s', 2, null, x'00');",
    );
    let database = live.open(Tool::OpenClaw);
    assert_eq!(
        text(&database, "s"),
        "{\"type\":\"session\"}\n{\"type\":\"message\", \"n\":1}\n{\"type\":\"compressed\"}\n"
    );
    let (ids, is_other) = changes(&live, Tool::OpenClaw, "insert into transcript_events values ('s', 3, '{}', null)");
    assert_eq!((ids, is_other), (vec!["s".to_owned()], true));
}

#[test]
fn other_databases_are_refused() {
    let live = Live::new("create table diary (day text)");
    let error = ConversationDatabase::open(&live.dir.path().join("a.db")).expect_err("refused");
    assert!(matches!(error, DatabaseError::UnknownTool), "{error}");
    assert!(ConversationDatabase::open(Path::new("/nonexistent/a.db")).is_err());
    assert!(super::is_database(b"SQLite format 3\0more") && !super::is_database(b"SQLite"));
}

#[test]
fn cursor_writes_a_conversation_without_what_else_its_database_has() {
    let live = Live::new(
        r#"create table ItemTable (key text unique on conflict replace, value blob);
         create table cursorDiskKV (key text unique on conflict replace, value blob);
         create table composerHeaders (composerId text primary key, value text);
         insert into ItemTable values ('cursorAuth/accessToken', 'secret');
         insert into composerHeaders values ('1', '{"workspaceIdentifier":{"uri":{"fsPath":"/srv/shop"}}}');
         insert into cursorDiskKV values
         ('composerData:1', cast('{"name":"The files","lastUpdatedAt":5,"secret":"x","fullConversationHeadersOnly":[{"bubbleId":"b","type":1},{"bubbleId":"gone","type":2},{"bubbleId":"a","type":2}]}' as blob)),
         ('composerData:2', '{"name":"Empty","fullConversationHeadersOnly":[]}'), ('composerData:3', 'broken'), ('composerData:4', null),
         ('composerData:5', '{"conversation":[{"type":1,"text":"old"}]}'),
         ('bubbleId:1:a', cast('{"type":2,"text":"a.py"}' as blob)), ('bubbleId:1:b', '{"type":1,"text":"List them"}'), ('bubbleId:10:b', '{}'),
         ('checkpointId:1:a', '{}');"#,
    );
    let database = live.open(Tool::Cursor);
    let due = json!({
        "cursor": {"id": "1", "header": {"workspaceIdentifier": {"uri": {"fsPath": "/srv/shop"}}}, "name": "The files", "lastUpdatedAt": 5},
        "bubbles": [{"type": 1, "text": "List them"}, {"type": 2, "text": "a.py"}],
    });
    assert_eq!(document(&database, "1"), due);
    assert_eq!(document(&database, "5")["bubbles"], json!([{"type": 1, "text": "old"}]));
    assert!(matches!(database.write_document("7", &mut Vec::new()), Err(DatabaseError::NoConversation(_))));
    let change = "update cursorDiskKV set value = replace(cast(value as text), '\"lastUpdatedAt\":5', '\"lastUpdatedAt\":6') where key = 'composerData:1'";
    assert_eq!(changes(&live, Tool::Cursor, change), (vec!["1".into(), "5".into()], true));
}
