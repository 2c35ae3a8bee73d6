//! Bench: export of 1,000 sessions, compared with copying their files. Deletes nothing in between: ext4 does not reuse
//! inode numbers of files that were deleted in the last minutes, and searching for others takes longer than everything
//! else.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chorus_proto::methods::context::{Clear, ClearParams};
use chorus_proto::{NewMessage, Role, Session};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::measure::{measure_paired, print_report, time, use_realtime_scheduler};
use chorus_tests::{Daemon, Home, home};

const SESSIONS: usize = 1000;
const ROUNDS: usize = 11;

/// Saves sessions of 40 messages with the usual length of transcripts.
fn create_sessions(daemon: &Daemon) -> Vec<Session> {
    let mut client = daemon.client();
    client.init("a");
    let text = "The nightly import dropped every row whose country was empty, \"quoted\" or not.\n".repeat(6);
    for n in 0..SESSIONS {
        let role = |m: usize| if m.is_multiple_of(2) { Role::User } else { Role::Assistant };
        let messages = (0..40).map(|m| NewMessage::text(role(m), format!("{n} {m} {text}")));
        client.append_all("a", messages.collect());
        client.save("a", &format!("run {n}"));
        client
            .call::<Clear>(&ClearParams { conversation: None, agent: Some("a".into()), save: false })
            .expect("cleared");
    }
    client.history("a")
}

fn copy_files(sessions: &[Session], folder: &Path) -> Duration {
    fs::create_dir(folder).expect("a folder");
    time(|| {
        for session in sessions {
            let from = Path::new(&session.file_path);
            fs::copy(from, folder.join(from.file_name().expect("a name"))).expect("copied");
        }
    })
}

fn export(home: &Home, folder: &Path, form: &str) -> Duration {
    let to = folder.to_str().expect("a path");
    time(|| _ = chorusctl(home, ["session", "export", "--all-agents", "--as", form, "--output", to]).expect_success())
}

fn export_to_new_dir(home: &Home, folder: &Path, form: &str) -> Duration {
    let took = export(home, folder, form);
    assert_eq!(fs::read_dir(folder.join("a")).expect("the files").count(), SESSIONS);
    took
}

fn main() {
    let home = home!();
    use_realtime_scheduler();
    let daemon = Daemon::start(&home);
    let sessions = create_sessions(&daemon);
    assert_eq!(sessions.len(), SESSIONS);
    let number = Cell::new(0);
    let place = |name: &str| -> PathBuf {
        number.set(number.get() + 1);
        home.temp_dir().join(format!("{name}-{}", number.get()))
    };
    let floor = || copy_files(&sessions, &place("floor"));
    print_report(measure_paired("export 1,000 sessions", 1.5, ROUNDS, floor, || {
        export_to_new_dir(&home, &place("out"), "json")
    }));
    let kept = place("kept");
    export(&home, &kept, "json");
    print_report(measure_paired("export them again, nothing new", 1.5, ROUNDS, floor, || export(&home, &kept, "json")));
    for form in ["jsonl", "md"] {
        let name = format!("export 1,000 sessions as {form}");
        print_report(measure_paired(name, 10.0, ROUNDS / 3, floor, || export_to_new_dir(&home, &place("out"), form)));
    }
}
