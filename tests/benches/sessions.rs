//! Bench: save and restore of 10,000 messages, and reading the end of a context of 100,000.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use chorus_proto::methods::context::{
    History, HistoryParams, Restore, RestoreParams, Save, SaveParams, Show, ShowParams,
};
use chorus_proto::methods::daemon::{Hello, HelloParams};
use chorus_proto::{Client, Message, NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{Measurement, measure_paired, median, print_report, time, use_realtime_scheduler};
use chorus_tests::{DEADLINE, Daemon, home, wait_until};
use sha2::{Digest as _, Sha256};

const MESSAGES: usize = 10_000;
const LONG_MESSAGES: usize = 100_000;
const ROUNDS: usize = 31;

/// Fills a context with `count` messages of the usual length of transcripts.
fn fill_context(client: &mut Client, agent: &str, count: usize) {
    client.init(agent);
    let text = "The nightly import dropped every row whose country was empty, \"quoted\" or not.\n".repeat(6);
    for batch in 0..count / 1000 {
        let role = |n: usize| if n.is_multiple_of(2) { Role::User } else { Role::Assistant };
        let messages = (0..1000).map(|n| NewMessage::text(role(n), format!("{batch} {n} {text}")));
        client.append_all(agent, messages.collect());
    }
}

/// Floor of a durable save: serialize, hash, write, sync, rename, sync the directory.
fn time_bare_save(messages: &[Message], folder: &Path) -> Duration {
    time(|| {
        let bytes = serde_json::to_vec(messages).expect("serialises");
        let digest = Sha256::digest(&bytes);
        let (temporary, name) = (folder.join("floor.tmp"), folder.join(format!("{:02x}.json", digest[0])));
        let mut file = File::create(&temporary).expect("a file");
        file.write_all(&bytes).expect("written");
        file.sync_data().expect("flushed");
        fs::rename(&temporary, &name).expect("renamed");
        File::open(folder).expect("the folder").sync_all().expect("flushed");
    })
}

fn time_save(client: &mut Client) -> Duration {
    let params = SaveParams { agent: Some("a".into()), description: Some("bench".into()), ..Default::default() };
    let took = time(|| _ = client.call::<Save>(&params).expect("saved"));
    // The summary is made after the answer; wait for it, so that it does not disturb the next measurement.
    let newest = HistoryParams { agent: Some("a".into()), limit: Some(1), ..Default::default() };
    wait_until("the summary", DEADLINE, || {
        client.call::<History>(&newest).expect("the history").sessions.pop()?.header.summary
    });
    took
}

/// Floor of a restore: read and parse.
fn time_bare_restore(path: &str) -> Duration {
    #[derive(serde::Deserialize)]
    struct Session {
        messages: Vec<Message>,
    }
    time(|| {
        let bytes = fs::read(path).expect("the session");
        let session: Session = serde_json::from_slice(&bytes).expect("a session");
        assert_eq!(session.messages.len(), MESSAGES);
    })
}

fn time_restore(client: &mut Client, session: &str) -> Duration {
    let params =
        RestoreParams { agent: Some("a".into()), session: session.into(), discard: true, ..Default::default() };
    time(|| assert_eq!(client.call::<Restore>(&params).expect("restored").messages, MESSAGES as u64))
}

/// Returns the time that the daemon needs to show the end of a long context, without the time of a plain round trip.
fn time_show_last(client: &mut Client) -> Duration {
    let params = ShowParams { agent: Some("long".into()), last: Some(50), ..Default::default() };
    let (mut shown, mut hello) = (Vec::new(), Vec::new());
    for _ in 0..300 {
        hello.push(time(|| _ = client.call::<Hello>(&HelloParams::default()).expect("hello")));
        shown.push(time(|| assert_eq!(client.call::<Show>(&params).expect("shown").messages.len(), 50)));
    }
    median(shown).saturating_sub(median(hello))
}

fn main() {
    let home = home!();
    use_realtime_scheduler();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    fill_context(&mut client, "a", MESSAGES);
    let messages = client.messages("a");
    let folder = home.temp_dir().join("floor");
    fs::create_dir(&folder).expect("a folder");
    print_report(measure_paired(
        "save 10,000 messages",
        1.3,
        ROUNDS,
        || time_bare_save(&messages, &folder),
        || time_save(&mut client),
    ));

    let session = client.save("a", "to restore");
    let id = session.header.id.to_string();
    let floor = || time_bare_restore(&session.file_path);
    print_report(measure_paired("restore 10,000 messages", 1.3, ROUNDS, floor, || time_restore(&mut client, &id)));

    fill_context(&mut client, "long", LONG_MESSAGES);
    let name = "show --last 50 of 100,000, but for a hello".to_owned();
    print_report(Measurement { name, floor: Duration::from_millis(2), ours: time_show_last(&mut client), target: 1.0 });
}
