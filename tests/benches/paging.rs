//! Bench: sessions of 10,000, 100,000 and 1,000,000 messages. Compares any page with the first one, and the export time
//! per message.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::time::Duration;

use chorus_proto::methods::export::{ExportFormat, Read, ReadParams};
use chorus_proto::methods::session::{Get, GetParams};
use chorus_proto::{Client, NewMessage, Role, Session};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{print_report, time, use_realtime_scheduler};
use chorus_tests::{Daemon, home};

const SIZES: [u64; 3] = [10_000, 100_000, 1_000_000];
const ROUNDS: usize = 21;

/// Messages per page, as in `session show`.
const PAGE_SIZE: u64 = 200;

/// Rewrites a session file with `count` messages of the usual length of transcripts.
fn write_messages(session: &Session, count: u64) {
    let text = fs::read_to_string(&session.file_path).expect("the file");
    let (head, _) = text.split_once("  \"messages\": [\n").expect("the layout");
    let said = format!("\"message_count\": {}", session.header.message_count);
    let mut file = BufWriter::new(File::create(&session.file_path).expect("a file"));
    file.write_all(head.replace(&said, &format!("\"message_count\": {count}")).as_bytes()).expect("written");
    file.write_all(b"  \"messages\": [").expect("written");
    let words = "The nightly import dropped every row whose country was empty, \\\"quoted\\\" or not.\\n".repeat(4);
    for n in 0..count {
        let (role, comma) = (if n % 2 == 0 { "user" } else { "assistant" }, if n == 0 { "" } else { "," });
        write!(
            file,
            "{comma}\n    {{\"id\":\"{n}\",\"role\":\"{role}\",\"content\":\"{n} {words}\",\"timestamp\":\"2026-02-12T09:00:00Z\"}}"
        )
        .expect("written");
    }
    file.write_all(b"\n  ]\n}\n").expect("written");
    file.flush().expect("written");
}

fn time_page(client: &mut Client, id: &str, offset: u64) -> Duration {
    let params = GetParams {
        agent: Some("a".into()),
        session: id.into(),
        offset: Some(offset),
        limit: Some(PAGE_SIZE),
        ..GetParams::default()
    };
    time(|| assert_eq!(client.call::<Get>(&params).expect("a page").messages.len() as u64, PAGE_SIZE))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Exports all pieces; returns the time and the number of bytes.
fn export(client: &mut Client, id: &str, form: ExportFormat) -> (Duration, usize) {
    let mut params = ReadParams { session: id.into(), form, ..ReadParams::default() };
    let mut bytes = 0;
    let took = time(|| {
        loop {
            let piece = client.call::<Read>(&params).expect("a piece");
            bytes += piece.data.len();
            (params.offset, params.fingerprint) = (piece.next, piece.fingerprint);
            if piece.next.is_none() {
                return;
            }
        }
    });
    (took, bytes)
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

fn main() {
    let home = home!();
    use_realtime_scheduler();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let mut a_message: [Option<Duration>; 3] = [None; 3];
    for count in SIZES {
        client.append_all("a", vec![NewMessage::text(Role::User, format!("{count}"))]);
        let session = client.save("a", &format!("of {count}"));
        write_messages(&session, count);
        let id = session.header.id.to_string();
        let cold = time_page(&mut client, &id, 0);
        let mut each = |offset| median((0..ROUNDS).map(|_| time_page(&mut client, &id, offset)).collect());
        let first = each(0);
        let others = [count / 3, count / 2 + 1, count - PAGE_SIZE].map(&mut each);
        let slowest = others.into_iter().max().unwrap_or_default();
        print_report(format_args!(
            "{count} messages: read once {cold:.2?}; first page {first:.2?}, slowest other page {slowest:.2?}: {:.2} of 2, {}",
            ratio(slowest, first),
            if ratio(slowest, first) <= 2.0 { "met" } else { "MISSED" }
        ));
        for (at, form) in [ExportFormat::Jsonl, ExportFormat::Md, ExportFormat::Html].into_iter().enumerate() {
            let (took, bytes) = export(&mut client, &id, form);
            let each = took / u32::try_from(count).expect("small");
            let before = a_message[at].map_or(1.0, |before| ratio(each, before));
            a_message[at].get_or_insert(each);
            print_report(format_args!(
                "{count} messages as {}: {took:.2?}, {} MB, {each:.2?} a message, {before:.2} of what it was for {}",
                form.as_str(),
                bytes >> 20,
                SIZES[0]
            ));
        }
    }
}
