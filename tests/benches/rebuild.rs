//! Bench: `doctor --rebuild` of 1,000 sessions, compared with reading and parsing their files.

use std::fs;
use std::time::Duration;

use chorus_proto::methods::doctor::{Doctor, DoctorParams};
use chorus_proto::{Message, NewMessage, Role};
use chorus_tests::bulk_data::copy_session;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{Measurement, measure_paired, median, print_report, time, use_realtime_scheduler};
use chorus_tests::{Daemon, home};

const SESSIONS: usize = 1000;
const MESSAGES: usize = 50;
const ROUNDS: usize = 9;
const TARGET: Duration = Duration::from_secs(5);

/// Floor: reads and parses the files.
fn time_parsing(files: &[std::path::PathBuf]) -> Duration {
    #[derive(serde::Deserialize)]
    struct Session {
        messages: Vec<Message>,
    }
    time(|| {
        for file in files {
            let bytes = fs::read(file).expect("the session");
            let session: Session = serde_json::from_slice(&bytes).expect("a session");
            assert_eq!(session.messages.len(), MESSAGES);
        }
    })
}

fn main() {
    let home = home!();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let text = |n| NewMessage::text(Role::User, format!("message {n} {}", "word ".repeat(60)));
    client.append_all("a", (0..MESSAGES).map(text).collect());
    let saved = client.save("a", "the first").header.session_id;
    copy_session(&home, "a", &saved, SESSIONS - 1);
    let entries = fs::read_dir(home.sessions_dir("a")).expect("sessions/");
    let files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(files.len(), SESSIONS);
    use_realtime_scheduler();
    let mut times = Vec::new();
    let mut rebuild = || {
        let took = time(|| {
            let found =
                client.call::<Doctor>(&DoctorParams { rebuild: true, ..DoctorParams::default() }).expect("rebuilt");
            assert_eq!(found.rebuilt.map(|rebuilt| rebuilt.sessions), Some(SESSIONS as u64));
        });
        times.push(took);
        took
    };
    let name = "doctor --rebuild, 1,000 sessions of 50 messages";
    print_report(measure_paired(
        format!("{name}, over parsing"),
        f64::INFINITY,
        ROUNDS,
        || time_parsing(&files),
        &mut rebuild,
    ));
    print_report(Measurement { name: name.into(), floor: TARGET, ours: median(times), target: 1.0 });
}
