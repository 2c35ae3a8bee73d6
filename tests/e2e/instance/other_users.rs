//! Clients tell nothing to what another user put in their way.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;

use chorus_proto::Client;
use chorus_proto::client_async::AsyncClient;
use chorus_proto::methods::daemon::{Hello, HelloParams};
use chorus_proto::paths::InstancePaths;
use chorus_proto::peer_check::ForeignServer;
use chorus_tests::ctl::run_command;
use chorus_tests::process::is_root;
use chorus_tests::{DEADLINE, Daemon, Home, Need, skip_without};
use rustix::thread::{Uid, set_thread_res_uid};

use crate::home;

const NOBODY: u32 = 65534;

/// Has another user listen at `path` for `clients` connections; each one's bytes come out. It answers nothing.
fn foreign(path: &Path, clients: usize) -> mpsc::Receiver<Vec<u8>> {
    let (listening, listens) = mpsc::sync_channel(1);
    let (heard, hears) = mpsc::sync_channel(clients);
    let path = path.to_owned();
    std::thread::spawn(move || {
        // Of this thread alone.
        set_thread_res_uid(None::<Uid>, Some(Uid::from_raw(NOBODY)), None::<Uid>).expect("another user");
        let listener = UnixListener::bind(path).expect("a socket");
        listening.send(()).expect("the test");
        for stream in listener.incoming().take(clients) {
            let mut bytes = Vec::new();
            _ = stream.expect("a client").read_to_end(&mut bytes);
            heard.send(bytes).expect("the test");
        }
    });
    listens.recv_timeout(DEADLINE).expect("a listener");
    hears
}

fn shared(home: &Home) -> PathBuf {
    let shared = home.temp_dir().join("shared");
    fs::create_dir(&shared).expect("a directory");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).expect("its mode");
    fs::set_permissions(home.temp_dir(), fs::Permissions::from_mode(0o755)).expect("its mode");
    shared
}

fn ctl(home: &Home, args: &[&str], (name, value): (&str, &Path)) -> Command {
    let mut command = home.command(home.bins.chorusctl);
    command.env_remove("CHORUS_HOME").args(args).env(name, value);
    command
}

#[test]
fn no_client_says_anything_to_a_server_of_another_user() {
    if !is_root() {
        return skip_without(Need::Root, "only root can become another user");
    }
    let home = home();
    let shared = shared(&home);
    let socket = shared.join("s.sock");
    let heard = foreign(&socket, 6);
    for args in [&["status"][..], &["context", "append", "a secret"], &["daemon", "stop"]] {
        let said = run_command(ctl(&home, args, ("CHORUS_SOCKET", &socket)), b"");
        assert!(said.expect_failure_with_hint(6).contains("belongs to user 65534, not to root"), "{said:?}");
        assert!(said.stderr.contains("run chorusctl as that user"), "{said:?}");
    }
    let mut command = ctl(&home, &["--", "chorusctl", "agent", "use", ""], ("CHORUS_SOCKET", &socket));
    command.env("CHORUSCTL_COMPLETE", "bash").env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_INDEX", "3");
    let said = run_command(command, b"");
    assert_eq!((said.status, &*said.stderr), (0, ""), "completions are silent");
    let error = Client::connect(&socket).expect_err("refused");
    assert!(ForeignServer::is_cause_of(&error), "{error:?}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let error = runtime.block_on(AsyncClient::connect(&socket)).expect_err("refused");
    assert!(ForeignServer::is_cause_of(&error), "{error:?}");
    for _ in 0..6 {
        assert_eq!(heard.recv_timeout(DEADLINE).expect("a client that went away"), b"");
    }
    assert!(!home.user_home.join(".chorus-agents").exists(), "nothing was started either");
}

/// A link in a shared runtime directory would lead to whatever its owner wants, also to a daemon of one's own for another home.
#[test]
fn a_socket_directory_of_another_user_is_refused_by_client_and_daemon() {
    if !is_root() {
        return skip_without(Need::Root, "only root can give a link away");
    }
    for is_link in [true, false] {
        let home = home();
        let shared = shared(&home);
        let ours = Daemon::start(&home);
        let aside = home.temp_dir().join("aside");
        fs::create_dir(&aside).expect("a directory");
        symlink(home.socket(), aside.join("chorusd.sock")).expect("a link to our daemon");
        let directory = shared.join("chorus");
        if is_link {
            symlink(&aside, &directory).expect("a link");
        } else {
            fs::rename(&aside, &directory).expect("a directory");
        }
        lchown(&directory, Some(NOBODY), Some(NOBODY)).expect("given away");
        let runtime = ("XDG_RUNTIME_DIR", &*shared);
        let said = run_command(ctl(&home, &["context", "append", "a secret"], runtime), b"");
        assert!(said.expect_failure_with_hint(6).contains("chorus belongs to user 65534"), "{said:?}");
        drop(ours);
        fs::remove_file(directory.join("chorusd.sock")).expect("the link to our daemon");
        let mut command = home.command(home.bins.chorusd);
        command.env_remove("CHORUS_HOME").env("XDG_RUNTIME_DIR", &shared);
        let (ended, said) = Daemon::try_start(&home, command).expect_err("refused");
        assert_eq!(ended.code(), Some(6), "{said}");
        assert!(!directory.join("chorusd.sock").exists(), "it was made there");
        let said = run_command(ctl(&home, &["context", "append", "a secret"], runtime), b"");
        said.expect_failure_with_hint(6);
    }
}

/// Root is told to become the owner of a home, and does not change what is in it.
#[test]
fn root_is_told_to_use_the_home_of_another_user_as_that_user() {
    if !is_root() {
        return skip_without(Need::Root, "only root can give a directory away");
    }
    let home = home();
    home.create();
    lchown(&home.path, Some(NOBODY), Some(NOBODY)).expect("given away");
    let status = || run_command(ctl(&home, &["status"], ("CHORUS_HOME", &home.path)), b"");
    // Nothing is there yet: the daemon that was started refuses.
    let said = status();
    assert!(said.expect_failure_with_hint(6).contains("run it as user 65534"), "{said:?}");
    assert!(!said.stderr.contains("chmod") && !said.stderr.contains("chown"), "{said:?}");
    assert_eq!(fs::read_dir(&home.path).expect("the home").count(), 0, "nothing was made in it");
    // The directory of its socket is there.
    fs::create_dir(home.path.join("run")).expect("a directory");
    lchown(home.path.join("run"), Some(NOBODY), Some(NOBODY)).expect("given away");
    let said = status();
    assert!(
        said.expect_failure_with_hint(6).contains("run chorusctl as that user (sudo -u '#65534' chorusctl"),
        "{said:?}"
    );
}

/// A lock file that another user wrote leads nowhere.
#[test]
fn a_lock_file_of_another_user_is_not_followed() {
    if !is_root() {
        return skip_without(Need::Root, "only root can give a file away");
    }
    let home = home();
    let socket = home.temp_dir().join("elsewhere.sock");
    let mut command = home.command(home.bins.chorusd);
    command.env("CHORUS_SOCKET", &socket);
    let _daemon = Daemon::start_command(&home, command);
    let status = || run_command(ctl(&home, &["--no-autostart", "status"], ("CHORUS_HOME", &home.path)), b"");
    status().expect_success();
    let lock = home.path.join("run/chorusd.lock");
    lchown(&lock, Some(NOBODY), Some(NOBODY)).expect("given away");
    status().expect_failure_with_hint(4);
    lchown(&lock, Some(0), Some(0)).expect("taken back");
    status().expect_success();
}

#[test]
fn a_client_of_either_kind_follows_the_lock_file() {
    let home = home();
    let socket = home.temp_dir().join("elsewhere.sock");
    let mut command = home.command(home.bins.chorusd);
    command.env("CHORUS_SOCKET", &socket);
    let daemon = Daemon::start_command(&home, command);
    let places = InstancePaths {
        home: home.path.clone(),
        socket: home.socket(),
        config: home.path.join("config.toml"),
        socket_is_explicit: false,
    };
    let mut client = Client::connect_to(&places).expect("a connection");
    assert_eq!(client.call::<Hello>(&HelloParams::default()).expect("an answer").pid, daemon.pid);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let pid = runtime.block_on(async {
        let mut client = AsyncClient::connect_to(&places).await.expect("a connection");
        client.call::<Hello>(&HelloParams::default()).await.expect("an answer").pid
    });
    assert_eq!(pid, daemon.pid);
}
