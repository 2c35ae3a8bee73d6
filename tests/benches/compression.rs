//! Bench: restore of compressed sessions, over that of plain ones with the same messages: 20 messages, and 10,000. Their texts are those
//! of the real transcripts beside the project, again and again, if there are any.

use std::fs;
use std::time::Duration;

use chorus_proto::methods::context::{Clear, ClearParams, Restore, RestoreParams};
use chorus_proto::methods::session::{Get, GetParams};
use chorus_proto::{Client, NewMessage, Role, Session};
use chorus_tests::bulk_data::usual_text;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::measure::{Measurement, median, print_report, time, use_realtime_scheduler};
use chorus_tests::real_data::{conversations, data_dir};
use chorus_tests::{Daemon, Home, home, wait_until};
use rusqlite::Connection;
use serde_json::Value;

const COUNTS: [usize; 2] = [20, 10_000];
const ROUNDS: usize = 101;
const DEADLINE: Duration = Duration::from_secs(120);

/// Returns texts of real conversations, or made ones.
fn texts() -> Vec<String> {
    let files = data_dir().map(|root| conversations(&root)).unwrap_or_default();
    let mut texts = Vec::new();
    for file in files {
        let Ok(Value::Array(messages)) = serde_json::from_slice(&fs::read(file).expect("a conversation")) else {
            continue;
        };
        texts.extend(messages.iter().filter_map(|message| Some(message.get("content")?.as_str()?.to_owned())));
    }
    texts.retain(|text| !text.trim().is_empty());
    if texts.is_empty() { vec![usual_text()] } else { texts }
}

/// Saves a session with so many messages.
fn save(client: &mut Client, name: &str, texts: &[String], count: usize) -> Session {
    let role = |n: usize| if n.is_multiple_of(2) { Role::User } else { Role::Assistant };
    let all: Vec<_> = texts.iter().cycle().take(count).enumerate().collect();
    for batch in all.chunks(1000) {
        client.append_all("a", batch.iter().map(|(n, text)| NewMessage::text(role(*n), text.as_str())).collect());
    }
    let session = client.save("a", name);
    client.call::<Clear>(&ClearParams { agent: Some("a".into()), ..Default::default() }).expect("cleared");
    session
}

fn time_restore(client: &mut Client, session: &Session) -> Duration {
    let id = session.header.id.to_string();
    let params = RestoreParams { agent: Some("a".into()), session: id, discard: true, ..Default::default() };
    time(|| _ = client.call::<Restore>(&params).expect("restored"))
}

/// Times the whole command.
fn time_command(home: &Home, session: &Session) -> Duration {
    let id = session.header.id.to_string();
    time(|| _ = chorusctl(home, ["--agent", "a", "restore", "--discard", &id]).expect_success())
}

/// Times a page of 50 messages from the middle.
fn time_page(client: &mut Client, session: &Session) -> Duration {
    let (id, offset) = (session.header.id.to_string(), Some(session.header.message_count / 2));
    let params = GetParams { agent: Some("a".into()), session: id, offset, limit: Some(50), ..Default::default() };
    time(|| _ = client.call::<Get>(&params).expect("a page"))
}

fn main() {
    let home = home!().without_index();
    use_realtime_scheduler();
    let texts = texts();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let pairs = COUNTS.map(|count| ["plain", "compressed"].map(|name| save(&mut client, name, &texts, count)));
    drop(client);
    daemon.terminate();
    let database = Connection::open(home.path.join("db/chorus.db")).expect("the catalog");
    for [_, compressed] in &pairs {
        let id = compressed.header.id;
        database.execute("UPDATE sessions SET last_used_at = 0 WHERE id = ?1", [id.as_bytes()]).expect("updated");
    }
    database.close().expect("closed");
    home.write_config("[retention]\nsessions_compressed_after = \"1d\"\n");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for [plain, compressed] in &pairs {
        let path = format!("{}.gz", compressed.file_path);
        wait_until("the session to be compressed", DEADLINE, || {
            (!fs::exists(&compressed.file_path).ok()?).then_some(())
        });
        let bytes = |path: &str| fs::metadata(path).expect("the file").len();
        let (before, after) = (bytes(&plain.file_path), bytes(&path));
        let count = plain.header.message_count;
        let factor = before as f64 / after as f64;
        print_report(format_args!(
            "{count} messages: {before} bytes plain, {after} compressed, {factor:.1} times smaller"
        ));
        let mut report = |what: &str, target, measure: &mut dyn FnMut(&mut Client, &Session) -> Duration| {
            let mut times = [Vec::new(), Vec::new()];
            for _ in 0..ROUNDS + ROUNDS / 10 {
                times[0].push(measure(&mut client, plain));
                times[1].push(measure(&mut client, compressed));
            }
            // Without the first ones, which warm up.
            let [floor, ours] = times.map(|times| median(times[ROUNDS / 10..].to_vec()));
            print_report(Measurement { name: format!("{what}, {count} messages"), floor, ours, target });
        };
        report("restore", 1.3, &mut time_restore);
        report("chorusctl restore", 1.3, &mut |_, session| time_command(&home, session));
        report("page", f64::INFINITY, &mut time_page);
    }
}
