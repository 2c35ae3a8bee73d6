//! Every program that can be captured, from files of the shape that it writes, in the places where it writes them.

use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use chorus_tests::{DEADLINE, Daemon, wait_until};
use rusqlite::Connection;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;

/// A program that writes lines: its name, the place of a transcript, how that begins and what is added.
type Lines = (&'static str, &'static str, Vec<Value>, Vec<Value>);

fn programs_with_lines() -> Vec<Lines> {
    let at = |second: u32| format!("2026-03-01T09:00:{second:02}.000Z");
    let gemini =
        |id: &str, kind: &str, text: Value| json!({"id": id, "timestamp": at(1), "type": kind, "content": text});
    let copilot = |kind: &str, id: &str, parent: Value, data: Value| json!({"type": kind, "id": id, "parentId": parent, "timestamp": at(1), "data": data});
    let pi = |id: &str, parent: Value, role: &str, text: &str| {
        let message =
            json!({"role": role, "content": [{"type": "text", "text": text}], "timestamp": 1_772_355_600_000_i64});
        json!({"type": "message", "id": id, "parentId": parent, "timestamp": at(1), "message": message})
    };
    let pi_start = || json!({"type": "session", "version": 3, "id": "7d444840-9dc0-41d1-b245-5ffdce74fad2", "timestamp": at(0), "cwd": "/srv/shop"});
    let of_openclaw =
        json!({"type": "custom", "customType": "openclaw.cache-ttl", "data": {}, "id": "b", "parentId": "a"});
    let codex = |role: &str, kind: &str, text: &str| {
        let payload = json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
        json!({"timestamp": at(1), "type": "response_item", "payload": payload})
    };
    let codex_start = json!({"timestamp": at(0), "type": "session_meta", "payload": {"id": "7d444840-9dc0-41d1-b245-5ffdce74fad2", "timestamp": at(0), "cwd": "/srv/shop", "originator": "codex_cli_rs", "cli_version": "0.140.0"}});
    let goose = |role: &str, text: &str| json!({"role": role, "created": 1_772_355_600, "content": [{"type": "text", "text": text}]});
    vec![
        (
            "codex",
            ".codex/sessions/2026/03/01/rollout-2026-03-01T09-00-00-7d444840-9dc0-41d1-b245-5ffdce74fad2.jsonl",
            vec![codex_start, codex("user", "input_text", "List them")],
            vec![codex("assistant", "output_text", "a.py")],
        ),
        (
            "gemini",
            ".gemini/tmp/shop/chats/session-2026-03-01T09-00-7d444840.jsonl",
            vec![
                json!({"sessionId": "7d444840-9dc0-41d1-b245-5ffdce74fad2", "projectHash": "x", "startTime": at(0), "kind": "main"}),
                gemini("1", "user", json!([{"text": "List them"}])),
            ],
            vec![gemini("2", "gemini", json!("a.py"))],
        ),
        (
            "copilot",
            ".copilot/session-state/7d444840-9dc0-41d1-b245-5ffdce74fad2/events.jsonl",
            vec![
                copilot(
                    "session.start",
                    "1",
                    Value::Null,
                    json!({"sessionId": "7d444840-9dc0-41d1-b245-5ffdce74fad2", "startTime": at(0), "context": {"cwd": "/srv/shop"}}),
                ),
                copilot("user.message", "2", json!("1"), json!({"content": "List them"})),
            ],
            vec![copilot(
                "assistant.message",
                "3",
                json!("2"),
                json!({"messageId": "m", "content": "a.py", "toolRequests": []}),
            )],
        ),
        (
            "pi",
            ".pi/agent/sessions/--srv-shop--/2026-03-01T09-00-00-000Z_7d444840.jsonl",
            vec![pi_start(), pi("a", Value::Null, "user", "List them")],
            vec![pi("c", json!("a"), "assistant", "a.py")],
        ),
        (
            "openclaw",
            ".openclaw/agents/main/sessions/7d444840-9dc0-41d1-b245-5ffdce74fad2.jsonl",
            vec![pi_start(), pi("a", Value::Null, "user", "List them"), of_openclaw],
            vec![pi("c", json!("b"), "assistant", "a.py")],
        ),
        (
            "goose",
            ".local/share/goose/sessions/20260301_090000.jsonl",
            vec![
                json!({"working_dir": "/srv/shop", "description": "The files", "message_count": 1}),
                goose("user", "List them"),
            ],
            vec![goose("assistant", "a.py")],
        ),
    ]
}

fn lines(of: &[Value]) -> String {
    of.iter().map(|line| format!("{line}\n")).collect()
}

/// Waits until the only conversation of a program has these messages.
fn wait_until_has(client: &mut Client, program: &str, texts: &[&str]) -> Session {
    let what = format!("{texts:?} of {program}");
    wait_until(&what, DEADLINE, || {
        let of_program =
            |session: &Session| session.header.source.as_ref().is_some_and(|source| source.program == program);
        let mut sessions = captured(client).into_iter().filter(of_program);
        let session = sessions.next()?;
        assert!(sessions.next().is_none(), "one conversation of {program}");
        (kept(&session) == texts).then_some(session)
    })
}

/// Waits until the status of a program has one conversation with so many messages, which is after that is saved.
fn wait_until_counted(client: &mut Client, program: &str, messages: u64) {
    wait_until("the counts", DEADLINE, || {
        let status = status_of(client, program);
        let counts = (status.files, status.conversations, status.messages, status.failed);
        (counts == (1, 1, messages, 0)).then_some(())
    });
}

#[test]
fn what_programs_write_is_kept() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let programs = programs_with_lines();
    let write = |(_, path, begin, _): &Lines| {
        let path = home.user_home.join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("created");
        fs::write(&path, lines(begin)).expect("written");
    };
    // Half of them are there before, and the directories of the others do not exist yet.
    programs.iter().step_by(2).for_each(write);
    chorusctl(&home, ["capture", "on"]).expect_success();
    programs.iter().skip(1).step_by(2).for_each(write);
    for (name, path, _, more) in &programs {
        let before = wait_until_has(&mut client, name, &["List them"]);
        assert_eq!(before.header.agent_name, *name);
        append(&home.user_home.join(path), &lines(more));
        let after = wait_until_has(&mut client, name, &["List them", "a.py"]);
        assert_eq!(before.header.id, after.header.id, "{name} grows in place");
        wait_until_counted(&mut client, name, 2);
    }
}

#[test]
fn what_stands_beside_a_transcript_is_kept_and_excludes_it() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let programs = programs_with_lines();
    let write = |path: &str, text: &str| {
        let path = home.user_home.join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("created");
        fs::write(&path, text).expect("written");
    };
    let id = "7d444840-9dc0-41d1-b245-5ffdce74fad2";
    write(".codex/session_index.jsonl", &format!("{{\"id\":\"{id}\",\"thread_name\":\"The files\"}}\n"));
    write(&format!(".copilot/session-state/{id}/workspace.yaml"), "cwd: /srv/other\nname: The files\n");
    let list = json!({"agent:main:main": {"sessionId": id, "label": "The files"}});
    write(".openclaw/agents/main/sessions/sessions.json", &list.to_string());
    write(".gemini/tmp/shop/.project_root", "/srv/shop");
    write(".gemini/tmp/diary/.project_root", "/srv/diary");
    for (_, path, begin, more) in &programs {
        write(path, &(lines(begin) + &lines(more)));
    }
    let (_, path, begin, more) = programs.iter().find(|(name, ..)| *name == "gemini").expect("Gemini CLI");
    let diary = lines(begin).replace(id, "39297bd7-7b95-4d7c-9d48-64bcd97e4e82");
    write(&path.replace("/shop/", "/diary/"), &(diary + &lines(more)));
    chorusctl(&home, ["capture", "exclude", "/srv/diary"]).expect_success();
    chorusctl(&home, ["capture", "on"]).expect_success();
    for name in ["codex", "copilot", "openclaw", "gemini"] {
        let header = wait_until_has(&mut client, name, &["List them", "a.py"]).header;
        assert_eq!(header.source.and_then(|source| source.project).as_deref(), Some("/srv/shop"), "{name}");
        let title = if name == "gemini" { "List them" } else { "The files" };
        assert_eq!(header.description.as_deref(), Some(title), "{name}");
    }
}

#[test]
fn a_transcript_of_codex_that_is_compressed_and_decompressed_is_one_conversation() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let (_, path, begin, more) = programs_with_lines().remove(0);
    let plain = home.user_home.join(path);
    let compressed = PathBuf::from(format!("{}.zst", plain.display()));
    fs::create_dir_all(plain.parent().expect("a directory")).expect("created");
    let compress = |text: String| {
        // As Codex does it: under another name first.
        let new = compressed.with_extension("tmp");
        fs::write(&new, compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)).expect("written");
        fs::rename(&new, &compressed).expect("renamed");
    };
    compress(lines(&begin));
    chorusctl(&home, ["capture", "on", "codex"]).expect_success();
    let before = wait_until_has(&mut client, "codex", &["List them"]);
    wait_until_counted(&mut client, "codex", 1);
    // It continues.
    fs::write(&plain, lines(&begin)).expect("written");
    fs::remove_file(&compressed).expect("removed");
    append(&plain, &lines(&more));
    let after = wait_until_has(&mut client, "codex", &["List them", "a.py"]);
    assert_eq!(before.header.id, after.header.id);
    wait_until_counted(&mut client, "codex", 2);
    // It is compressed again, with a line that only the compressed file has.
    fs::remove_file(&plain).expect("removed");
    let thanks = serde_json::to_string(&more[0]).expect("JSON").replace("a.py", "Bye");
    compress(lines(&begin) + &lines(&more) + &thanks + "\n");
    wait_until_has(&mut client, "codex", &["List them", "a.py", "Bye"]);
    wait_until_counted(&mut client, "codex", 3);
    fs::write(&compressed, b"\x28\xb5\x2f\xfd damaged").expect("written");
    wait_until("the failure", DEADLINE, || {
        let status = status_of(&mut client, "codex");
        status.failure.filter(|failure| failure.reason.contains("cannot decompress")).map(|_| ())
    });
}

/// The database of a program, open as the program has it: what was written last is only in its log.
struct Database {
    path: PathBuf,
    program: Connection,
}

impl Database {
    fn create(home: &Home, path: &str, statements: &str) -> Self {
        let path = home.user_home.join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("created");
        let program = Connection::open(&path).expect("a database");
        let database = Self { path, program };
        database.run(&format!("pragma journal_mode = wal; pragma wal_autocheckpoint = 0; {statements}"));
        database
    }

    fn run(&self, statements: &str) {
        self.program.execute_batch(statements).expect("written");
    }
}

const OPENCODE: &str = "
    create table session (id text primary key, parent_id text, directory text, title text, version text, time_created integer, time_updated integer);
    create table message (id text primary key, session_id text, time_created integer, time_updated integer, data text);
    create table part (id text primary key, message_id text, session_id text, time_created integer, time_updated integer, data text);
    insert into session values ('ses_1', null, '/srv/shop', 'The files', '1', 1772355600000, 1);
    insert into message values ('msg_1', 'ses_1', 1, 1, '{\"role\":\"user\",\"time\":{\"created\":1772355600000}}');
    insert into part values ('prt_1', 'msg_1', 'ses_1', 1, 1, '{\"type\":\"text\",\"text\":\"List them\"}');";
const OPENCODE_REPLY: &str = "
    insert into message values ('msg_2', 'ses_1', 2, 2, '{\"role\":\"assistant\",\"time\":{\"created\":1772355601000},\"providerID\":\"p\",\"modelID\":\"m\"}');
    insert into part values ('prt_2', 'msg_2', 'ses_1', 2, 2, '{\"type\":\"text\",\"text\":\"a.py\"}');";
const GOOSE: &str = "
    create table sessions (id text primary key, name text, description text, session_type text, working_dir text, created_at text, updated_at text, parent_session_id text);
    create table messages (id integer primary key autoincrement, session_id text, role text, content_json text, created_timestamp integer, message_id text, metadata_json text);
    insert into sessions values ('20260301_1', 'The files', '', 'user', '/srv/shop', '2026-03-01 09:00:00', 'x', null);
    insert into messages (session_id, role, content_json, created_timestamp, message_id) values ('20260301_1', 'user', '[{\"type\":\"text\",\"text\":\"List them\"}]', 1772355600, 'm1');";
const GOOSE_REPLY: &str = "
    insert into messages (session_id, role, content_json, created_timestamp, message_id) values ('20260301_1', 'assistant', '[{\"type\":\"text\",\"text\":\"a.py\"}]', 1772355601, 'm2');";
const HERMES: &str = "
    create table sessions (id text primary key, source text, model text, started_at real, cwd text, title text);
    create table messages (id integer primary key, session_id text, role text, content text, tool_call_id text, tool_calls text, timestamp real, active integer default 1, compacted integer default 0);
    insert into sessions values ('s1', 'cli', 'm', 1772355600.25, '/srv/shop', 'The files');
    insert into messages (session_id, role, content, timestamp) values ('s1', 'user', 'List them', 1772355601);";
const HERMES_REPLY: &str =
    "insert into messages (session_id, role, content, timestamp) values ('s1', 'assistant', 'a.py', 1772355602);";

#[test]
fn what_programs_write_into_databases_is_kept() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let goose = Database::create(&home, ".local/share/goose/sessions/sessions.db", GOOSE);
    chorusctl(&home, ["capture", "on"]).expect_success();
    let opencode = Database::create(&home, ".local/share/opencode/opencode.db", OPENCODE);
    let hermes = Database::create(&home, ".hermes/state.db", HERMES);
    for (name, database, reply) in
        [("goose", &goose, GOOSE_REPLY), ("opencode", &opencode, OPENCODE_REPLY), ("hermes", &hermes, HERMES_REPLY)]
    {
        let before = wait_until_has(&mut client, name, &["List them"]);
        database.run(reply);
        let after = wait_until_has(&mut client, name, &["List them", "a.py"]);
        assert_eq!(before.header.id, after.header.id, "{name} grows in place");
        assert_eq!(after.header.description.as_deref(), Some("The files"));
        wait_until_counted(&mut client, name, 2);
    }
}

/// A program writes into its log, waits for the disk, and only then says in the `-shm` file that the log has more.
#[test]
fn what_a_program_shows_after_it_wrote_its_log_is_kept() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let database = Database::create(&home, ".hermes/state.db", HERMES);
    chorusctl(&home, ["capture", "on", "hermes"]).expect_success();
    wait_until_has(&mut client, "hermes", &["List them"]);
    let file = |of: &Path, suffix: &str| PathBuf::from(format!("{}{suffix}", of.display()));
    // What the program will write is made in a copy of its database.
    let copy = home.temp_dir().join("state.db");
    for suffix in ["", "-wal"] {
        fs::copy(file(&database.path, suffix), file(&copy, suffix)).expect("copied");
    }
    let writer = Connection::open(&copy).expect("a database");
    writer.execute_batch(&format!("pragma wal_autocheckpoint = 0; {HERMES_REPLY}")).expect("written");
    let log = fs::read(file(&copy, "-wal")).expect("the log");
    let index = fs::read(file(&copy, "-shm")).expect("the index of the log");
    let known = fs::read(file(&database.path, "-wal")).expect("the log");
    let more = log.strip_prefix(&known[..]).expect("the log has more");
    let before = status_of(&mut client, "hermes").last_written_at;
    let mut out = OpenOptions::new().append(true).open(file(&database.path, "-wal")).expect("the log");
    out.write_all(more).expect("written");
    wait_until("the log is read", DEADLINE, || {
        (status_of(&mut client, "hermes").last_written_at > before).then_some(())
    });
    let kept = captured(&mut client).iter().map(kept).collect::<Vec<_>>();
    assert_eq!(kept, [["List them"]], "the program does not show it yet");
    let out = OpenOptions::new().write(true).open(file(&database.path, "-shm")).expect("the index");
    out.write_all_at(&index, 0).expect("written");
    wait_until_has(&mut client, "hermes", &["List them", "a.py"]);
}

#[test]
fn only_what_changed_in_a_database_is_read_and_what_is_deleted_there_stays() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let database = Database::create(&home, ".local/share/opencode/opencode.db", OPENCODE);
    database.run(
        "insert into session values ('ses_2', null, '/srv/diary', 'Diary', '1', 1772355600000, 1);
         insert into message values ('msg_d', 'ses_2', 1, 1, '{\"role\":\"user\",\"time\":{\"created\":1772355600000}}');
         insert into part values ('prt_d', 'msg_d', 'ses_2', 1, 1, '{\"type\":\"text\",\"text\":\"Dear diary\"}');",
    );
    chorusctl(&home, ["capture", "exclude", "/srv/diary"]).expect_success();
    chorusctl(&home, ["capture", "on", "opencode"]).expect_success();
    let first = wait_until_has(&mut client, "opencode", &["List them"]);
    // Rewritten in the database: a revision beside what was there.
    database.run(
        "update part set data = '{\"type\":\"text\",\"text\":\"List all\"}', time_updated = 9 where id = 'prt_1';
         update session set time_updated = 9 where id = 'ses_1';",
    );
    wait_until("the revision", DEADLINE, || (captured(&mut client).len() == 2).then_some(()));
    database.run("delete from part; delete from message; delete from session");
    chorusctl(&home, ["capture", "exclude", "--remove", "/srv/diary"]).expect_success();
    chorusctl(&home, ["capture", "on", "opencode"]).expect_success();
    let status = status_of(&mut client, "opencode");
    assert_eq!((captured(&mut client).len(), status.failed), (2, 0), "{status:?}");
    assert_eq!(kept(&first), ["List them"]);
}

#[test]
fn a_database_that_cannot_be_read_is_reported_until_it_can() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let path = home.user_home.join(".hermes/state.db");
    fs::create_dir_all(path.parent().expect("a directory")).expect("created");
    fs::write(&path, "not a database, but a text that is long enough for the header of one".repeat(10))
        .expect("written");
    let told = chorusctl(&home, ["capture", "on"]);
    assert!(told.stderr.contains("state.db"), "{told:?}");
    assert_eq!(status_of(&mut client, "hermes").failed, 1);
    fs::remove_file(&path).expect("removed");
    let database = Database::create(&home, ".hermes/state.db", HERMES);
    assert_eq!(database.path, path);
    wait_until_has(&mut client, "hermes", &["List them"]);
    wait_until_counted(&mut client, "hermes", 1);
}
