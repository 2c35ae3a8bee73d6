//! A second daemon is refused whatever became of the lock file, and by whatever path it comes.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::run_command;
use chorus_tests::process::is_root;
use chorus_tests::rng::rounds_from_env;
use chorus_tests::{DEADLINE, Daemon, Home, Need, skip_without, wait_until};

use crate::home;

fn lock_file(home: &Home) -> PathBuf {
    home.path.join("run/chorusd.lock")
}

/// Starts a second daemon after each `prepare`; all are refused, and the first one keeps what it is told meanwhile.
fn refused(prepare: impl Fn(&Home) -> Command) {
    let home = home();
    let mut daemon = Daemon::start(&home);
    daemon.client().init("a");
    let starts = rounds_from_env("CHORUS_SECOND_STARTS", 10) as usize;
    for start in 0..starts {
        let mut command = prepare(&home);
        // Its own socket, so that it is not the socket that refuses it.
        command.env("CHORUS_SOCKET", home.temp_dir().join("second.sock"));
        let (ended, said) = Daemon::try_start(&home, command).expect_err("a second daemon that is refused");
        assert_eq!(ended.code(), Some(7), "start {start}: {said}");
        assert!(said.contains("another daemon"), "{said}");
        wait_until("the first one to be reached again", DEADLINE, || home.running_pid());
        daemon.client().append("a", "still the only one");
    }
    daemon.assert_alive();
    assert_eq!(daemon.client().message_texts("a").len(), starts);
    assert!(!home.temp_dir().join("second.sock").exists());
}

fn chorusd(home: &Home) -> Command {
    home.command(home.bins.chorusd)
}

#[test]
fn after_run_was_removed() {
    refused(|home| {
        fs::remove_dir_all(home.path.join("run")).expect("run/");
        chorusd(home)
    });
}

#[test]
fn after_the_lock_file_was_replaced() {
    refused(|home| {
        fs::remove_file(lock_file(home)).expect("the lock file");
        fs::write(lock_file(home), "").expect("another one");
        chorusd(home)
    });
}

#[test]
fn after_a_copy_took_the_place_of_the_lock_file() {
    refused(|home| {
        let copy = home.temp_dir().join("copy");
        fs::copy(lock_file(home), &copy).expect("a copy");
        fs::rename(&copy, lock_file(home)).expect("in its place");
        chorusd(home)
    });
}

#[test]
fn by_a_link_to_the_home_whose_run_was_removed() {
    refused(|home| {
        let link = home.temp_dir().join("link");
        _ = symlink(&home.path, &link);
        fs::remove_dir_all(home.path.join("run")).expect("run/");
        let mut command = chorusd(home);
        command.env("CHORUS_HOME", link);
        command
    });
}

#[test]
fn by_a_bind_mount_of_the_home_whose_run_was_removed() {
    let mounted = |home: &Home, program: &str| {
        let mount = home.temp_dir().join("mount");
        fs::create_dir_all(&mount).expect("a mount point");
        let mut command = home.command("unshare");
        let script = r#"mount --bind "$1" "$2" && CHORUS_HOME="$2" exec "$3""#;
        command.args(["-m", "sh", "-c", script, "sh"]).arg(&home.path).arg(mount).arg(program);
        command
    };
    let probe = home();
    probe.create();
    if !is_root() || run_command(mounted(&probe, "true"), b"").status != 0 {
        return skip_without(Need::Mount, "no bind mounts here");
    }
    refused(|home| {
        fs::remove_dir_all(home.path.join("run")).expect("run/");
        mounted(home, home.bins.chorusd)
    });
}

#[test]
fn the_message_names_pid_home_and_socket() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut command = chorusd(&home);
    command.env("CHORUS_SOCKET", home.temp_dir().join("second.sock"));
    let (_, said) = Daemon::try_start(&home, command).expect_err("refused");
    let wanted = format!(
        "error: another daemon (pid {}) uses {} on socket {}\nhint: use it, or stop it: chorusctl --socket {} daemon stop\n",
        daemon.pid,
        home.path.display(),
        home.socket().display(),
        home.socket().display()
    );
    assert_eq!(said, wanted);
}

/// A daemon of an earlier release looks at the lock file alone.
#[test]
fn a_daemon_that_locks_the_file_alone_is_seen_and_sees_us() {
    let home = home();
    home.create();
    fs::create_dir(home.path.join("run")).expect("run/");
    let earlier = File::create(lock_file(&home)).expect("a lock file");
    earlier.lock().expect("its lock");
    fs::write(lock_file(&home), "4711\n").expect("its pid");
    let (ended, said) = Daemon::try_start(&home, chorusd(&home)).expect_err("refused");
    assert_eq!((ended.code(), said.contains("(pid 4711)")), (Some(7), true), "{said}");
    // Not by closing it: a process that another test is just starting may still have it.
    earlier.unlock().expect("unlocked");
    let daemon = Daemon::start(&home);
    assert!(File::open(lock_file(&home)).expect("the lock file").try_lock().is_err());
    // The text that an earlier release reads out of the file for people.
    let text = fs::read_to_string(lock_file(&home)).expect("the lock file");
    assert_eq!(text, format!("{}\n{}\n", daemon.pid, home.socket().display()));
}

#[test]
fn a_daemon_whose_lock_file_another_one_holds_ends() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let other = home.temp_dir().join("other.lock");
    let earlier = File::create(&other).expect("a lock file");
    earlier.lock().expect("its lock");
    fs::rename(&other, lock_file(&home)).expect("in the place of ours");
    let ended = daemon.wait();
    assert_eq!(ended.code(), Some(1), "{ended}");
    assert!(daemon.read_log().contains("another daemon uses"), "{}", daemon.read_log());
}

#[test]
fn a_daemon_whose_home_was_moved_ends_and_makes_no_new_one() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let moved = home.temp_dir().join("moved");
    fs::rename(&home.path, &moved).expect("moved away");
    let ended = daemon.wait();
    // A unit that restarts on failure leaves it at that.
    assert_eq!(ended.code(), Some(6), "{ended}");
    assert!(!home.path.exists(), "a home was made in its place");
    fs::rename(&moved, &home.path).expect("moved back");
    Daemon::start(&home).raw_connection().check_hello();
}
