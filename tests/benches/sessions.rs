//! Bench: save and restore of 10,000 messages, the first page after a restore, and the last one of a context of 100,000.

use std::fs::{self, File};
use std::io::{BufWriter, IoSlice, Write as _};
use std::path::Path;
use std::time::Duration;

use chorus_proto::methods::context::{Restore, RestoreParams, Show, ShowParams};
use chorus_proto::{Client, Message};
use chorus_tests::bulk_data::{fill_context, time_save};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{
    Measurement, is_machine_busy, measure_paired, median, print_report, time, use_realtime_scheduler,
};
use chorus_tests::process::cpu_time;
use chorus_tests::{Daemon, home};

const MESSAGES: usize = 10_000;
const LONG_MESSAGES: usize = 100_000;
const ROUNDS: usize = 31;
/// Until everything is indexed.
const INDEXING: Duration = Duration::from_secs(120);

/// Floor of a durable save: serialize, write, sync, rename. The session is new each time, as Chorus's is.
fn time_bare_save(messages: &[Message], folder: &Path, number: &mut u32) -> Duration {
    *number += 1;
    time(|| {
        let bytes = serde_json::to_vec(messages).expect("serialises");
        let temporary = folder.join("floor.tmp");
        let mut file = File::create(&temporary).expect("a file");
        file.write_all(&bytes).expect("written");
        file.sync_data().expect("flushed");
        fs::rename(&temporary, folder.join(format!("{number}.json"))).expect("renamed");
    })
}

/// Writes the lines of a session file to `path` in pieces of so many bytes, and syncs it.
fn write_in_pieces(path: &Path, lines: &[Vec<u8>], bytes: usize) {
    let mut file = BufWriter::with_capacity(bytes, File::create(path).expect("a file"));
    lines.iter().for_each(|line| file.write_all(line).expect("written"));
    file.into_inner().expect("flushed").sync_data().expect("synced");
}

/// Does the same without a copy of the lines, as many at once as the kernel takes.
fn write_vectored(path: &Path, lines: &[Vec<u8>]) {
    let mut file = File::create(path).expect("a file");
    for lines in lines.chunks(1024) {
        let mut slices: Vec<_> = lines.iter().map(|line| IoSlice::new(line)).collect();
        let mut left = &mut slices[..];
        while !left.is_empty() {
            let written = file.write_vectored(left).expect("written");
            IoSlice::advance_slices(&mut left, written);
        }
    }
    file.sync_data().expect("synced");
}

/// Compares ways to write the bytes of a session file.
fn compare_ways_to_write(messages: &[Message], folder: &Path) {
    let lines: Vec<_> = messages.iter().map(|message| serde_json::to_vec(message).expect("serialises")).collect();
    let path = folder.join("pieces");
    let usual = || time(|| write_in_pieces(&path, &lines, 256 << 10));
    let report = |name: &str, ours: &mut dyn FnMut() -> Duration| {
        let name = format!("written {name}, over pieces of 256 KiB");
        print_report(measure_paired(name, f64::INFINITY, ROUNDS, usual, ours));
    };
    report("in pieces of 32 KiB", &mut || time(|| write_in_pieces(&path, &lines, 32 << 10)));
    report("without a copy", &mut || time(|| write_vectored(&path, &lines)));
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

/// Times the request for the end of a context.
fn time_show_last(client: &mut Client, agent: &str) -> Duration {
    let params = ShowParams { agent: Some(agent.into()), last: Some(50), ..Default::default() };
    time(|| assert_eq!(client.call::<Show>(&params).expect("shown").messages.len(), 50))
}

/// Measures the processor time of `work`, in milliseconds, until everything is indexed.
fn measure_processor_time(daemon: &Daemon, mut work: impl FnMut()) -> f64 {
    daemon.wait_until_calm(INDEXING);
    let before = cpu_time(daemon.pid);
    (0..ROUNDS).for_each(|_| work());
    daemon.wait_until_calm(INDEXING);
    (cpu_time(daemon.pid) - before).as_secs_f64() * 1000.0 / ROUNDS as f64
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
    daemon.wait_until_calm(INDEXING);
    let mut number = 0;
    print_report(measure_paired(
        "save 10,000 messages",
        0.6,
        ROUNDS,
        || time_bare_save(&messages, &folder, &mut number),
        || time_save(&mut client, "a"),
    ));

    compare_ways_to_write(&messages, &folder);

    let session = client.save("a", "to restore");
    let id = session.header.id.to_string();
    let mut screens = Vec::new();
    daemon.wait_until_calm(INDEXING);
    print_report(measure_paired(
        "restore 10,000 messages",
        0.8,
        ROUNDS,
        || time_bare_restore(&session.file_path),
        || {
            let took = time_restore(&mut client, &id);
            screens.push(time_show_last(&mut client, "a"));
            took
        },
    ));
    let screen = |name: &str, target, ours| {
        print_report(Measurement { name: name.into(), floor: Duration::from_millis(target), ours, target: 1.0 });
    };
    screen("show --last 50, first after a restore", 1, median(screens));

    // A save or restore is answered before it is indexed; on a busy machine nobody waits for that.
    if !is_machine_busy() {
        let save = measure_processor_time(&daemon, || _ = time_save(&mut client, "a"));
        let restore = measure_processor_time(&daemon, || _ = time_restore(&mut client, &id));
        print_report(format_args!("processor time with the index: {save:.1} ms a save, {restore:.1} ms a restore"));
    }

    fill_context(&mut client, "long", LONG_MESSAGES);
    daemon.wait_until_calm(INDEXING);
    let shown = median((0..300).map(|_| time_show_last(&mut client, "long")).collect());
    screen("show --last 50 of 100,000", 2, shown);
}
