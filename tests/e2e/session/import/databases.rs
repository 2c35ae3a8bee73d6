//! Conversations in the databases of coding tools, which have what is new only in their write-ahead logs.

use std::fs;
use std::path::{Path, PathBuf};

use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, Home};
use rusqlite::Connection;
use serde_json::Value;

use crate::home;

/// Creates a database, and leaves it open as its tool does. Nothing of it is in the file itself.
fn database(home: &Home, name: &str, statements: &str) -> (PathBuf, Connection) {
    let path = home.temp_dir().join(name);
    let tool = Connection::open(&path).expect("a database");
    tool.execute_batch(&format!("pragma journal_mode = wal; pragma wal_autocheckpoint = 0; {statements}"))
        .expect("written");
    (path, tool)
}

fn import(home: &Home, path: &Path) -> String {
    chorusctl(home, ["import", path.to_str().expect("UTF-8")]).expect_success()
}

fn sessions(home: &Home, program: &str) -> Vec<Value> {
    let listed = chorusctl(home, ["history", "--json", "--source", program]).expect_json();
    listed["sessions"].as_array().expect("a list").clone()
}

#[test]
fn conversations_of_opencode_are_read_while_it_runs() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let text = |role: &str| {
        format!("{{\"role\":\"{role}\",\"time\":{{\"created\":1772355600000}},\"providerID\":\"p\",\"modelID\":\"m\"}}")
    };
    let (path, tool) = database(
        &home,
        "opencode.db",
        &format!(
            "create table session (id text primary key, parent_id text, directory text, title text, version text, time_created integer, time_updated integer);
             create table message (id text primary key, session_id text, time_created integer, time_updated integer, data text);
             create table part (id text primary key, message_id text, session_id text, time_created integer, time_updated integer, data text);
             insert into session values ('ses_1', null, '/srv/shop', 'The files', '1', 1772355600000, 1), ('ses_2', 'ses_1', '/srv/shop', 'Count', '1', 1772355601000, 1), ('ses_3', null, '/srv/shop', 'Empty', '1', 1772355602000, 1);
             insert into message values ('msg_1', 'ses_1', 1, 1, '{user}'), ('msg_2', 'ses_2', 1, 1, '{user}');
             insert into part values ('prt_1', 'msg_1', 'ses_1', 1, 1, '{{\"type\":\"text\",\"text\":\"List them\"}}'), ('prt_2', 'msg_2', 'ses_2', 1, 1, '{{\"type\":\"text\",\"text\":\"Count\"}}');",
            user = text("user"),
        ),
    );
    import(&home, &path);
    let found = sessions(&home, "opencode");
    assert_eq!(found.len(), 2, "{found:?}");
    let main = found.iter().find(|one| one["description"] == "The files").expect("the conversation");
    let child = found.iter().find(|one| one["description"] == "Count").expect("the subagent");
    assert_eq!((&child["parent_id"], main["source"]["project"].as_str()), (&main["id"], Some("/srv/shop")));
    tool.execute_batch(&format!(
        "insert into message values ('msg_3', 'ses_1', 2, 2, '{}'); \
         insert into part values ('prt_3', 'msg_3', 'ses_1', 2, 2, '{{\"type\":\"text\",\"text\":\"a.py\"}}');",
        text("assistant")
    ))
    .expect("written");
    let told = import(&home, &path);
    assert!(told.contains("added 1 message"), "{told}");
    assert!(import(&home, &path).contains("up to date"));
    let shown = chorusctl(&home, ["show", main["id"].as_str().expect("an id")]).expect_success();
    assert!(shown.contains("a.py"), "{shown}");
}

#[test]
fn conversations_of_goose_and_hermes_are_read() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let (goose, _tool) = database(
        &home,
        "sessions.db",
        "create table sessions (id text primary key, name text, description text, session_type text, working_dir text, created_at text, updated_at text, parent_session_id text);
         create table messages (id integer primary key autoincrement, session_id text, role text, content_json text, created_timestamp integer, message_id text, metadata_json text);
         insert into sessions values ('20260301_1', 'The files', '', 'user', '/srv/shop', '2026-03-01 09:00:00', 'x', null), ('20260301_2', 'Delegated task', '', 'sub_agent', '/srv/shop', '2026-03-01 09:01:00', 'x', '20260301_1'), ('20260301_3', 'x', '', 'hidden', '/srv/shop', '2026-03-01 09:02:00', 'x', null);
         insert into messages (session_id, role, content_json, created_timestamp, message_id) values
         ('20260301_1', 'user', '[{\"type\":\"text\",\"text\":\"List them\"}]', 1772355600, 'm1'), ('20260301_2', 'user', '[{\"type\":\"text\",\"text\":\"Count\"}]', 1772355660, 'm2'), ('20260301_3', 'user', '[{\"type\":\"text\",\"text\":\"Hidden\"}]', 1772355720, 'm3');",
    );
    import(&home, &goose);
    let found = sessions(&home, "goose");
    let main = found.iter().find(|one| one["description"] == "The files").expect("the conversation");
    let child = found.iter().find(|one| one["description"] == "Delegated task").expect("the subagent");
    assert_eq!((found.len(), &child["parent_id"]), (2, &main["id"]));
    let (hermes, tool) = database(
        &home,
        "state.db",
        "create table sessions (id text primary key, source text, model text, started_at real, cwd text, title text);
         create table messages (id integer primary key, session_id text, role text, content text, tool_call_id text, tool_calls text, timestamp real, active integer default 1, compacted integer default 0);
         insert into sessions values ('s1', 'cli', 'm', 1772355600.25, '/srv/shop', 'The files');
         insert into messages (session_id, role, content, timestamp) values ('s1', 'user', 'List them', 1772355601), ('s1', 'assistant', 'a.py', 1772355602);",
    );
    import(&home, &hermes);
    // A compaction: the rows stay, and the summary and a copy of the last row follow.
    tool.execute_batch(
        "update messages set active = 0, compacted = 1;
         insert into messages (session_id, role, content, timestamp) values ('s1', 'assistant', '[CONTEXT COMPACTION — REFERENCE ONLY] Listed.', 1772355700), ('s1', 'assistant', 'a.py', 1772355700), ('s1', 'user', 'Thanks', 1772355800);",
    )
    .expect("written");
    let told = import(&home, &hermes);
    assert!(told.contains("added 2 messages to 1 conversation"), "{told}");
    assert_eq!(sessions(&home, "hermes").len(), 1);
}

#[test]
fn conversations_of_cursor_are_read() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let (path, tool) = database(
        &home,
        "state.vscdb",
        r#"create table ItemTable (key text unique on conflict replace, value blob);
         create table cursorDiskKV (key text unique on conflict replace, value blob);
         insert into cursorDiskKV values
         ('composerData:1', '{"name":"The files","createdAt":1772355600000,"workspaceIdentifier":{"uri":{"fsPath":"/srv/shop"}},"fullConversationHeadersOnly":[{"bubbleId":"a","type":1}]}'),
         ('composerData:2', '{"name":"Empty","fullConversationHeadersOnly":[]}'), ('bubbleId:1:a', '{"type":1,"bubbleId":"a","text":"List them"}');"#,
    );
    import(&home, &path);
    tool.execute_batch(
        r#"insert into cursorDiskKV values ('bubbleId:1:b', '{"type":2,"bubbleId":"b","text":"a.py"}');
         update cursorDiskKV set value = replace(value, '[{"bubbleId":"a","type":1}', '[{"bubbleId":"a","type":1},{"bubbleId":"b","type":2}') where key = 'composerData:1';"#,
    )
    .expect("written");
    let told = import(&home, &path);
    assert!(told.contains("added 1 message"), "{told}");
    assert!(import(&home, &path).contains("up to date"));
    let found = sessions(&home, "cursor");
    assert_eq!((found.len(), found[0]["description"].as_str()), (1, Some("The files")));
    assert_eq!(found[0]["source"]["project"], "/srv/shop");
}

#[test]
fn a_transcript_of_a_conversation_that_is_in_the_database_of_cursor_is_a_copy() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let editor = home.user_home.join(".config/Cursor/User/globalStorage");
    fs::create_dir_all(&editor).expect("a directory");
    let (in_editor, elsewhere) = ("7d444840-9dc0-41d1-b245-5ffdce74fad2", "39297bd7-7b95-4d7c-9d48-64bcd97e4e82");
    let tool = Connection::open(editor.join("state.vscdb")).expect("a database");
    // Of the other conversation, the messages are only in the transcript.
    tool.execute_batch(&format!(
        r#"create table ItemTable (key text unique on conflict replace, value blob);
         create table cursorDiskKV (key text unique on conflict replace, value blob);
         insert into cursorDiskKV values
         ('composerData:{in_editor}', '{{"name":"The files","fullConversationHeadersOnly":[{{"bubbleId":"a","type":1}}]}}'),
         ('composerData:{elsewhere}', '{{"name":"Others","fullConversationHeadersOnly":[{{"bubbleId":"b","type":1}}]}}'),
         ('bubbleId:{in_editor}:a', '{{"type":1,"bubbleId":"a","text":"List them"}}');"#
    ))
    .expect("written");
    for id in [in_editor, elsewhere] {
        let dir = home.user_home.join(format!(".cursor/projects/srv-shop/agent-transcripts/{id}"));
        fs::create_dir_all(&dir).expect("a directory");
        let line =
            r#"{"role":"user","message":{"content":[{"type":"text","text":"<user_query>List them</user_query>"}]}}"#;
        fs::write(dir.join(format!("{id}.jsonl")), format!("{line}\n")).expect("written");
    }
    let told = chorusctl(&home, ["import", "--yes"]).expect_success();
    assert!(told.contains("imported 2 conversations (2 messages) from 2 files"), "{told}");
    let found = sessions(&home, "cursor");
    let mut ids: Vec<_> = found.iter().filter_map(|session| session["source"]["conversation"].as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [elsewhere, in_editor]);
}

#[test]
fn another_database_is_refused() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let (path, _tool) = database(&home, "diary.db", "create table diary (day text)");
    let failed = chorusctl(&home, ["import", path.to_str().expect("UTF-8")]);
    assert!(failed.stderr.contains("not a database of opencode, goose, Hermes, OpenClaw or Cursor"), "{failed:?}");
}
