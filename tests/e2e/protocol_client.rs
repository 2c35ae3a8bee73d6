//! The client in docs/PROTOCOL.md works as it is printed.

use std::fs;
use std::path::Path;

use chorus_tests::chat::Chat as _;
use chorus_tests::ctl::run;
use chorus_tests::{Daemon, skip};

use crate::home;

const MOST_LINES: usize = 30;

/// The first block of Python.
fn program() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/PROTOCOL.md");
    let page = fs::read_to_string(page).expect("docs/PROTOCOL.md");
    let (_, rest) = page.split_once("```python\n").expect("a block of Python");
    rest.split_once("```").expect("its end").0.to_owned()
}

#[test]
fn the_python_client_of_the_page_runs() {
    let program = program();
    let lines = program.lines().count();
    assert!(lines <= MOST_LINES, "{lines} lines, at most {MOST_LINES} were promised");
    let home = home();
    let mut probe = home.command("sh");
    probe.args(["-c", "python3 -c pass"]);
    if run(probe, b"").status != 0 {
        return skip("no python3 here");
    }
    let daemon = Daemon::start(&home);
    let file = home.outside().join("client.py");
    fs::write(&file, program).expect("the program");
    let mut command = home.command("python3");
    command.arg(&file);
    let said = run(command, b"").ok();
    let mut client = daemon.client();
    let agents = client.call::<chorus_proto::methods::agent::List>(&Default::default()).expect("a list").agents;
    let agent = &agents.first().expect("the agent it made").name;
    assert!(!client.texts(agent).is_empty());
    let session = client.history(agent).pop().expect("the session it saved");
    assert!(said.contains(&session.header.session_id), "{said}");
}
