//! The databases in which programs keep conversations, written as the programs write them.

use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use chorus_tests::{DEADLINE, Daemon, wait_until};
use rusqlite::Connection;

use super::programs::{wait_until_counted, wait_until_has};
use super::*;

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

#[test]
fn what_opencode_wrote_into_files_is_one_conversation_with_what_it_took_into_its_database() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let write = |path: &str, value: Value| {
        let path = home.user_home.join(".local/share/opencode/storage").join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("created");
        fs::write(&path, value.to_string()).expect("written");
    };
    let say = |number: u64, role: &str, text: &str| {
        let (message, part) = (format!("msg_{number}"), format!("prt_{number}"));
        write(
            &format!("part/{message}/{part}.json"),
            json!({"id": part, "messageID": message, "sessionID": "ses_1", "type": "text", "text": text}),
        );
        let time = json!({"created": 1_772_355_599_999_u64 + number});
        write(
            &format!("message/ses_1/{message}.json"),
            json!({"id": message, "sessionID": "ses_1", "role": role, "time": time, "providerID": "p", "modelID": "m"}),
        );
    };
    say(1, "user", "List them");
    write(
        "session/7d44/ses_1.json",
        json!({"id": "ses_1", "directory": "/srv/shop", "title": "The files", "time": {"created": 1_772_355_600_000_u64}}),
    );
    chorusctl(&home, ["capture", "on", "opencode"]).expect_success();
    let before = wait_until_has(&mut client, "opencode", &["List them"]);
    say(1001, "assistant", "a.py");
    wait_until_has(&mut client, "opencode", &["List them", "a.py"]);
    wait_until_counted(&mut client, "opencode", 2);
    let database = Database::create(&home, ".local/share/opencode/opencode.db", OPENCODE);
    database.run(&OPENCODE_REPLY.replace("msg_2", "msg_1001"));
    database.run(
        &OPENCODE_REPLY
            .replace("_2", "_3")
            .replace("601000", "602000")
            .replace("a.py", "Bye")
            .replace(", 2, 2", ", 3, 3"),
    );
    let after = wait_until_has(&mut client, "opencode", &["List them", "a.py", "Bye"]);
    assert_eq!((before.header.id, before.header.description.as_deref()), (after.header.id, Some("The files")));
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
