//! Long output on a terminal goes through a pager.

use chorus_proto::{NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{Daemon, Home, InteractiveCommand};

use crate::home;

/// Runs `chorusctl` on a terminal with a pager that puts a sign before each line; returns the screen.
fn shown(home: &Home, args: &[&str]) -> String {
    let mut command = home.command(home.bins.chorusctl);
    command.env("PAGER", "sed s/^/P:/").args(args);
    let (status, shown, _) = InteractiveCommand::on_terminal(&command).wait_for_exit();
    assert_eq!(status.code(), Some(0), "{args:?}: {shown}");
    shown
}

#[test]
fn what_is_longer_than_the_screen_is_paged() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "short");
    assert!(!shown(&home, &["show"]).contains("P:"), "it fits on the screen");
    let texts = (0..60).map(|number| NewMessage::text(Role::User, format!("message {number}")));
    client.append_all("a", texts.collect());
    let long = shown(&home, &["show"]);
    assert!(long.contains("P:    message 0\r\n") && long.contains("P:    message 59\r\n"), "{long}");
    assert!(!shown(&home, &["show", "--no-pager"]).contains("P:"));
    assert!(!shown(&home, &["show", "--json"]).contains("P:"));
}
