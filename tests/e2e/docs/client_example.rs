//! `proto/examples/client.rs` does what docs/PROTOCOL.md says.

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{Output, run_command};
use chorus_tests::{Daemon, Home};

use crate::home;

fn example(home: &Home, args: &[&str]) -> Output {
    let mut command = home.command(env!("CARGO_BIN_EXE_client-example"));
    command.args(args);
    run_command(command, b"")
}

#[test]
fn the_client_appends_to_an_agent_and_reads_its_history() {
    let home = home();
    assert_eq!(example(&home, &["notes", "early"]).expect_failure(1).lines().count(), 1, "no daemon runs");
    let daemon = Daemon::start(&home);
    let said = example(&home, &["notes", "Remember the milk."]).expect_success();
    assert!(said.contains("notes has 1 messages") && said.contains("  user: \"Remember the milk.\"\n"), "{said}");
    let mut client = daemon.client();
    assert_eq!(client.message_texts("notes"), ["Remember the milk."]);
    let saved = client.save("notes", "Shopping").header.session_id;
    let said = example(&home, &["notes", "And \u{1b}[31mbread."]).expect_success();
    assert!(said.contains("1 saved sessions") && said.contains(&saved), "{said}");
    assert!(!said.contains('\u{1b}'), "{said:?}");
}
