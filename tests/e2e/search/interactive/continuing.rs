//! Showing, restoring and branching, before the real daemon.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use chorus_proto::Client;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{Daemon, Home, InteractiveCommand};

use super::super::{find, wait_until_complete};
use super::{SIZE, command, leave, start, start_command, type_until, wait_for_row};
use crate::home;

/// An agent `api` with a session of six messages, of which the third is about a zeppelin, and an empty live conversation.
fn with_session(home: &Home) -> (Daemon, Client) {
    let daemon = Daemon::start(home);
    let mut client = daemon.client();
    client.init("api");
    for text in ["one", "two", "the zeppelin is late", "four", "five", "six"] {
        client.append("api", text);
    }
    chorus_tests::ctl::chorusctl(home, ["context", "clear", "--save"]).expect_success();
    wait_until_complete(&mut client);
    find(&mut client, "zeppelin");
    (daemon, client)
}

/// Waits until the command has ended; returns what the terminal shows then.
fn after(mut running: InteractiveCommand) -> String {
    let (status, output, _) = running.wait_for_exit();
    assert_eq!(status.code(), Some(0), "{output}");
    chorus_tests::screen::rows_of(&output, SIZE.0, SIZE.1).join("\n").trim_end().to_owned()
}

#[test]
fn enter_shows_the_place_in_a_pager_that_waits() {
    let home = home();
    let (_daemon, _client) = with_session(&home);
    // What is named less is treated as it.
    let less = home.temp_dir().join("less");
    fs::write(&less, "#!/bin/sh\nsed s/^/P:/\necho \"options $LESS\"\nread line </dev/tty\n").expect("a script");
    fs::set_permissions(&less, fs::Permissions::from_mode(0o755)).expect("its mode");
    let mut command = command(&home, &[]);
    command.env("PAGER", &less).env("LESS", "FRX");
    let mut running = start_command(&command);
    type_until(&mut running, "zepp", "1 result");
    let shown = running.type_and_wait("\r", "options FRX -+F -+X");
    assert!(shown.contains("\u{1b}[?1049l"), "{shown:?}");
    for line in ["P: ▸3 user", "P:    the zeppelin is late", "P:    one", "P:    six"] {
        assert!(shown.contains(line), "{line:?} in {shown}");
    }
    // Ctrl-C is for the pager, which this one takes as its end.
    let before = running.stdout.text().len();
    running.type_text("q\r");
    let rows = running.wait_for_rows(SIZE, before, "the results", |rows| rows[0] == "> zepp");
    assert!(rows[2].starts_with("▸ "), "{rows:#?}");
    leave(running);
}

#[test]
fn without_a_pager_that_waits_enter_returns_to_the_results() {
    let home = home();
    let (_daemon, _client) = with_session(&home);
    for (pager, option) in [("cat", &[][..]), ("sed s/^/P:/", &[]), ("false", &["--no-pager"])] {
        let mut command = command(&home, option);
        command.env("PAGER", pager);
        let mut running = start_command(&command);
        type_until(&mut running, "zeppelin", "1 result");
        let shown = running.type_and_wait("\r", "press Enter to return to the results ");
        assert!(shown.contains("the zeppelin is late"), "{shown:?}");
        let before = running.stdout.text().len();
        running.type_text("\r");
        running.wait_for_rows(SIZE, before, "the results", |rows| rows[0] == "> zeppelin");
        leave(running);
    }
}

#[test]
fn r_restores_the_conversation_up_to_the_message() {
    let home = home();
    let (_daemon, mut client) = with_session(&home);
    let mut running = start(&home, &[]);
    type_until(&mut running, "zeppelin", "1 result");
    type_until(&mut running, "\t", "r restore");
    running.type_text("r");
    let shown = after(running);
    assert!(shown.contains("restored ") && shown.contains("the first 3 of 6 messages"), "{shown}");
    assert!(!shown.contains("> zeppelin"), "{shown}");
    assert_eq!(client.message_texts("api"), ["one", "two", "the zeppelin is late"]);
}

#[test]
fn what_is_not_saved_is_not_replaced_without_a_question() {
    let home = home();
    let (_daemon, mut client) = with_session(&home);
    client.append("api", "unsaved");
    let sessions = client.history("api").len();
    let mut running = start(&home, &[]);
    type_until(&mut running, "zeppelin", "1 result");
    // Ctrl-R works while one types, too.
    for no in ["n", "\r", "\u{1b}", "r"] {
        let rows = type_until(&mut running, "\u{12}", "[y/N]");
        assert!(rows[23].starts_with("1 unsaved message will be saved first; restore "), "{rows:#?}");
        assert!(rows[23].ends_with(" up to message 3? [y/N]"), "{rows:#?}");
        let rows = type_until(&mut running, no, "cancelled; nothing was changed");
        assert_eq!(rows[0], "> zeppelin");
    }
    assert_eq!((client.message_texts("api"), client.history("api").len()), (vec!["unsaved".to_owned()], sessions));
    type_until(&mut running, "\u{12}", "[y/N]");
    running.type_text("y");
    let shown = after(running);
    assert!(shown.contains("saved the previous conversation as ") && shown.contains("restored "), "{shown}");
    assert_eq!(client.message_texts("api"), ["one", "two", "the zeppelin is late"]);
    assert_eq!(client.history("api").len(), sessions + 1);
}

#[test]
fn b_branches_from_the_message() {
    let home = home();
    let (_daemon, mut client) = with_session(&home);
    let mut running = start(&home, &[]);
    type_until(&mut running, "zeppelin", "1 result");
    type_until(&mut running, "\u{1b}[B", "b branch");
    running.type_text("b");
    let shown = after(running);
    assert!(shown.contains("api: branched from ") && shown.contains("at message 3 of 6"), "{shown}");
    assert_eq!(client.message_texts("api"), ["one", "two", "the zeppelin is late"]);
}

#[test]
fn another_agents_result_concerns_that_agent() {
    let home = home();
    let (_daemon, mut client) = with_session(&home);
    client.init("web");
    client.append("web", "the second agent");
    chorus_tests::ctl::chorusctl(&home, ["agent", "use", "web"]).expect_success();
    wait_until_complete(&mut client);
    let mut running = start(&home, &["--all-agents"]);
    let rows = type_until(&mut running, "zeppelin", "1 result · all agents");
    assert!(rows[2].contains(" · api · "), "{rows:#?}");
    let shown = running.type_and_wait("\r", "press Enter");
    assert!(shown.contains("the zeppelin is late"), "{shown:?}");
    running.type_text("\r");
    wait_for_row(&running, "> zeppelin");
    running.type_text("\u{12}");
    let shown = after(running);
    assert!(shown.contains("the first 3 of 6 messages"), "{shown}");
    assert_eq!(client.message_texts("api").len(), 3);
    assert_eq!(client.message_texts("web"), ["the second agent"]);
}

#[test]
fn a_live_conversation_is_shown_and_branched_but_not_restored() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    for text in ["one", "the zeppelin is late", "three"] {
        client.append("api", text);
    }
    find(&mut client, "zeppelin");
    let mut running = start(&home, &[]);
    let rows = type_until(&mut running, "zeppelin", "1 result");
    assert!(rows[2].starts_with("▸ @main  live conversation · message 2 · "), "{rows:#?}");
    type_until(&mut running, "\tr", "this conversation is live, so there is nothing to restore");
    let shown = running.type_and_wait("\r", "press Enter");
    assert!(shown.contains(" ▸2 user"), "{shown:?}");
    running.type_text("\r");
    wait_for_row(&running, "> zeppelin");
    type_until(&mut running, "b", "3 unsaved messages will be saved first; branch from @main at message 2? [y/N]");
    running.type_text("y");
    let shown = after(running);
    assert!(shown.contains("at message 2 of 3"), "{shown}");
    assert_eq!(client.message_texts("api"), ["one", "the zeppelin is late"]);
}

#[test]
fn an_error_of_a_result_is_shown_and_the_search_goes_on() {
    let home = home();
    let (_daemon, mut client) = with_session(&home);
    let mut running = start(&home, &[]);
    type_until(&mut running, "zeppelin", "1 result");
    let session = client.history("api").remove(0).header.id.to_string();
    chorus_tests::ctl::chorusctl(&home, ["rm", &session]).expect_success();
    let rows = type_until(&mut running, "\r", "error: ");
    assert_eq!(rows[0], "> zeppelin", "{rows:#?}");
    leave(running);
}
