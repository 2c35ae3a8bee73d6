//! Long conversations: what is above the last messages, and a message that was found.

use std::fs;

use chorus_proto::methods::context::{Save, SaveParams};
use chorus_proto::methods::search::{Search, SearchParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::process::signal;
use chorus_tests::screen::rows_of;
use chorus_tests::{DEADLINE, Fixture, wait_until};

use rustix::process::Signal;

use super::{SIZE, fixture, leave, start, type_until, wait_for_row, wait_until_no_row};

const MESSAGES: usize = 230;

/// A daemon in which `web` has a long conversation, with a word in an early message.
fn long_fixture() -> Fixture {
    let fixture = fixture();
    let mut client = fixture.client();
    for number in 1..=MESSAGES {
        let text = if number == 9 { "the zebra crosses".into() } else { format!("message {number}.") };
        client.append("web", &text);
    }
    fixture
}

#[test]
fn messages_further_above_are_loaded() {
    let fixture = long_fixture();
    let mut running = start(&fixture.home, &["--agent", "web"], "2 agents, 1 active");
    type_until(&mut running, "\r", "  message 230.");
    // The first page has 200.
    wait_until("the first message", DEADLINE, || {
        running.type_text("\u{1b}[5~");
        let rows = rows_of(&running.stdout.text(), SIZE.0, SIZE.1);
        rows.iter().any(|row| row == "  message 1.").then_some(())
    });
    fixture.client().append("web", "one more");
    wait_for_row(&running, "web · 231 messages");
    wait_for_row(&running, "  message 1.");
    type_until(&mut running, "\u{1b}", "AGENT ");
    leave(running);
}

#[test]
fn a_hit_is_opened_at_its_message() {
    for is_saved in [false, true] {
        let fixture = long_fixture();
        if is_saved {
            let params = SaveParams { agent: Some("web".into()), clear: true, ..Default::default() };
            fixture.client().call::<Save>(&params).expect("context.save");
        }
        let params = SearchParams { query: "zebra".into(), all_agents: true, ..Default::default() };
        wait_until("the index", DEADLINE, || {
            let found = fixture.client().call::<Search>(&params).expect("search");
            (found.hits.len() == 1 && found.hits[0].session.is_some() == is_saved).then_some(())
        });
        let mut running = start(&fixture.home, &[], "2 agents");
        type_until(&mut running, "/", "type to search");
        type_until(&mut running, "zebra", "the zebra crosses");
        type_until(&mut running, "\r", "▌ the zebra crosses");
        wait_for_row(&running, "  message 10.");
        type_until(&mut running, "\u{1b}", "/ zebra");
        type_until(&mut running, "\u{1b}", "AGENT ");
        leave(running);
    }
}

#[test]
fn a_stopped_daemon_is_named_until_it_continues() {
    let fixture = fixture();
    let running = start(&fixture.home, &[], "web ");
    let comm = fs::read_to_string(format!("/proc/{}/comm", running.pid())).expect("a name");
    assert_eq!(comm, "chorusctl\n");
    let arguments = fs::read(format!("/proc/{}/cmdline", running.pid())).expect("arguments");
    assert!(arguments.starts_with(b"chorusctl\0top\0"), "{arguments:?}");
    signal(fixture.daemon().pid, Signal::STOP);
    wait_for_row(&running, "chorusd does not answer since ");
    signal(fixture.daemon().pid, Signal::CONT);
    wait_until_no_row(&running, "chorusd does not answer since ");
    leave(running);
}
