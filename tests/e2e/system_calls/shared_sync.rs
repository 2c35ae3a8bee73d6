//! Many contexts that fall due at once share their syncs; where one fails, none of them counts as saved.

use std::process::Command;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::strace::is_permitted;
use chorus_tests::{Daemon, Home, Need, skip_without};

use super::home;
use super::state::{assert_catalog_fits_files, assert_databases_whole};

/// More than are placed one by one, and as many again: those that come first may be.
const AGENTS: usize = 40;

/// Microseconds that each sync of one file takes.
const SLOW_SYNC_US: u32 = 40_000;

fn name(n: usize) -> String {
    format!("a{n}")
}

/// Returns true if the files of this home, which is not made yet, are synced together: on other file systems each has its own syncs.
fn is_usual_file_system(home: &Home) -> bool {
    let parent = home.path.parent().expect("a directory the home is made in");
    let stat = Command::new("stat").args(["-f", "-c", "%T"]).arg(parent).output().expect("stat runs");
    assert!(stat.status.success(), "{}", String::from_utf8_lossy(&stat.stderr));
    let kind = String::from_utf8_lossy(&stat.stdout).trim().to_owned();
    let usual = ["ext2/ext3", "xfs", "btrfs", "f2fs"].contains(&kind.as_str());
    if !usual {
        skip_without(Need::FileSystem, &format!("{kind} is none of the file systems that are synced as a whole"));
    }
    usual
}

/// The `number`th sync of the file system fails while all of them are put away.
fn fail_at(number: u32) {
    let home = home();
    if !is_permitted(&home) || !is_usual_file_system(&home) {
        return;
    }
    let daemon = Daemon::start_with(&home, "[defaults]\nidle_timeout = \"1h\"\n");
    let mut client = daemon.client();
    for n in 0..AGENTS {
        client.init(&name(n));
        client.append(&name(n), "What must not be lost.");
    }
    daemon.kill9();
    // A shorter timeout now: all have this left, from the same moment on.
    home.write_config("[defaults]\nidle_timeout = \"1s\"\n");
    let mut command = home.command("strace");
    let inject = format!("inject=syncfs:error=EIO:when={number}");
    // Those that are placed one by one take so long that enough others come meanwhile to be placed together.
    let slow = format!("inject=fsync,fdatasync:delay_enter={SLOW_SYNC_US}");
    command.args(["-f", "-e", "trace=syncfs,fsync,fdatasync", "-e", &inject, "-e", &slow, "-o"]);
    command.arg(home.temp_dir().join("strace.out"));
    command.arg(home.bins.chorusd);
    let mut daemon = Daemon::start_command(&home, command);
    let status = daemon.wait();
    assert!(status.code().is_some_and(|code| code != 0), "ended with {status}: {}", daemon.read_log());
    let daemon = Daemon::start_with(&home, "[defaults]\nidle_timeout = \"1h\"\n");
    let mut client = daemon.client();
    for n in 0..AGENTS {
        let (live, saved) = (client.message_texts(&name(n)), client.history(&name(n)));
        let one = |session: &chorus_proto::Session| session.header.message_count == 1;
        assert!(saved.len() <= 1 && saved.iter().all(one), "{}: {saved:?}", name(n));
        // Live still, or put away before the sync failed.
        assert!(live == ["What must not be lost."] || (live.is_empty() && saved.len() == 1), "{live:?} {saved:?}");
    }
    for n in 0..AGENTS {
        assert_catalog_fits_files(&daemon, &home, &name(n));
    }
    drop(daemon);
    assert_databases_whole(&home);
}

#[test]
fn a_failed_sync_before_the_files_get_their_names_ends_it() {
    fail_at(1);
}

#[test]
fn a_failed_sync_of_the_names_ends_it() {
    fail_at(2);
}
