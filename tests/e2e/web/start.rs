//! The command: its link, the browser that it opens, how it ends.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::{fs, net};

use chorus_tests::ctl::chorusctl;
use chorus_tests::free_port::free_port;
use chorus_tests::process::is_running;
use chorus_tests::program::write_program;
use chorus_tests::{DEADLINE, wait_until};
use rustix::process::Signal;

use super::{Web, command, fixture};
use crate::home;

#[test]
fn it_starts_the_daemon_and_ends_with_a_signal() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let home = home();
        let mut web = Web::start(&home, &[]);
        assert!(home.running_pid().is_some(), "no daemon runs");
        web.running.signal(signal);
        let (status, ..) = web.running.wait_for_exit();
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status:?}");
        assert!(net::TcpStream::connect(("127.0.0.1", web.port)).is_err(), "it listens");
        chorusctl(&home, ["daemon", "stop"]).expect_success();
    }
}

#[test]
fn nobody_reads_the_link_in_a_list_of_processes() {
    let fixture = fixture();
    let home = &fixture.home;
    let seen = home.temp_dir().join("arguments");
    let program = home.temp_dir().join("browser");
    write_program(&program, format!("#!/bin/sh\nprintf '%s' \"$*\" > {0}.new && mv {0}.new {0}\n", seen.display()));
    let mut command = command(home, &[]);
    command.env("BROWSER", &program);
    let web = Web::start_command(command);
    web.running.stdout.wait_for("opened in your browser");
    let arguments = wait_until("the browser", DEADLINE, || fs::read_to_string(&seen).ok());
    assert!(!arguments.contains(web.token()), "{arguments}");
    let metadata = fs::metadata(&arguments).expect("the file that was opened");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&arguments).expect("a page").contains(&web.link));
    let own = fs::read(format!("/proc/{}/cmdline", web.running.pid())).expect("its arguments");
    assert!(!String::from_utf8_lossy(&own).contains(web.token()));
    web.sign_in();
    assert!(!fs::exists(&arguments).expect("the home"), "the file stays after the link was used");
}

#[test]
fn over_ssh_the_link_is_printed_with_how_to_reach_it() {
    let fixture = fixture();
    let port = free_port();
    let mut command = command(&fixture.home, &["--port", &port.to_string()]);
    command.env("SSH_CONNECTION", "192.0.2.1 50000 192.0.2.2 22").env("DISPLAY", ":0");
    let web = Web::start_command(command);
    assert_eq!(web.port, port);
    web.running.stdout.wait_for(&format!("ssh -L {port}:127.0.0.1:{port} "));
    let text = web.running.stdout.text();
    assert!(text.contains("open it in a browser on this machine"), "{text}");
}

#[test]
fn a_port_in_use_and_json_are_refused() {
    let fixture = fixture();
    let taken = net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = taken.local_addr().expect("its address").port().to_string();
    let output = chorusctl(&fixture.home, ["web", "--no-open", "--port", &port]);
    let error = output.expect_failure_with_hint(1);
    assert!(error.contains(&format!("cannot listen on port {port}: ")), "{error}");
    assert!(error.contains("leave out --port"), "{error}");
    let output = chorusctl(&fixture.home, ["--json", "web"]);
    let error = output.expect_failure_with_hint(2);
    assert!(error.contains("`chorusctl web` has no JSON output"), "{error}");
}

#[test]
fn it_listens_on_loopback_only() {
    let fixture = fixture();
    let web = Web::start(&fixture.home, &[]);
    let pid = web.running.pid();
    assert!(is_running(pid));
    // Linux: the local address of each socket that listens, in hexadecimal with the port.
    let port = format!(":{:04X}", web.port);
    let sockets = ["tcp", "tcp6"].map(|kind| fs::read_to_string(format!("/proc/{pid}/net/{kind}")).unwrap_or_default());
    let all = sockets.concat();
    let addresses =
        all.lines().filter_map(|line| line.split_whitespace().nth(1)).filter(|address| address.ends_with(&port));
    let addresses: Vec<_> = addresses.collect();
    assert_eq!(addresses, [format!("0100007F{port}")], "{all}");
}
