//! Long output on a terminal goes through a pager.

use chorus_proto::{NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
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

#[test]
fn lists_of_events_and_of_decisions_are_paged_and_their_texts_stand_in_a_column() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    for number in 0..45 {
        client.append("a", &format!("message {number}"));
        chorusctl(&home, ["memory", "add", &format!("fact {number}")]).expect_success();
    }
    client.save("a", "A title that is long enough for the name of the session to fill a line of the terminal");
    for args in [&["events"][..], &["audit"]] {
        let long = shown(&home, args);
        assert!(long.lines().all(|line| line.starts_with("P:")) && long.lines().count() > 45, "{args:?}: {long}");
        assert!(!shown(&home, &[args, &["--no-pager"]].concat()).contains("P:"), "{args:?}");
    }
    let mut command = home.command(home.bins.chorusctl);
    command.args(["events", "--no-pager"]);
    let (_, narrow, _) = InteractiveCommand::on_terminal_of(&command, 80, 400).wait_for_exit();
    assert!(narrow.lines().all(|line| line.trim_end().chars().count() <= 80), "{narrow}");
    let saved: Vec<&str> = narrow.lines().skip_while(|line| !line.contains("context.saved")).take(2).collect();
    let column = saved[0].find("  saved").map_or(0, |at| at + 2);
    assert!(column > 40 && saved[1].starts_with(&" ".repeat(column)), "{saved:?}");
    assert!(!saved[1][column..].starts_with(' '), "{saved:?}");
}
