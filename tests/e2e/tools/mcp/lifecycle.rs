//! A server ends with the daemon, and is started again after a crash.

use chorus_tests::ctl::chorusctl;

use super::*;

/// Returns true if a process of the server is there.
fn is_running(place: &Place) -> bool {
    let marker = place.path().to_string_lossy().into_owned();
    let lines = fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.path().join("cmdline"));
    lines.filter_map(|file| fs::read(file).ok()).any(|line| String::from_utf8_lossy(&line).contains(&marker))
}

fn wait_for_end(place: &Place) {
    wait_until("the end of the server", DEADLINE, || (!is_running(place)).then_some(()));
}

#[test]
fn it_ends_with_the_daemon_however_that_ends() {
    let place = Place::new();
    let mut fixture = start_fixture(&place, "open");
    call(&fixture, "echo", "x");
    assert!(is_running(&place));
    assert!(fixture.stop().success());
    assert!(!is_running(&place), "a stop waits for it");
    fixture.start();
    call(&fixture, "echo", "x");
    assert!(is_running(&place));
    fixture.kill();
    wait_for_end(&place);
}

#[test]
fn after_a_crash_it_is_started_again() {
    let place = Place::new();
    let fixture = start_fixture(&place, "open");
    let crashed = call(&fixture, "crash", "");
    assert!(crashed.is_error && crashed.text.contains("the MCP server test failed"), "{}", crashed.text);
    let log = fixture.daemon().read_log();
    assert!(log.contains("about to fail") && log.contains("the test server has started"), "{log}");
    let again =
        wait_until("the server", DEADLINE, || Some(call(&fixture, "echo", "back")).filter(|said| !said.is_error));
    assert_eq!(body(&again), "said: back");
    assert_eq!(place.lines("starts").len(), 2);
    let log = fixture.daemon().read_log();
    assert!(log.contains("it ended with exit status 3: about to fail"), "{log}");
    assert!(!log.contains("peer_info"), "no dump of values: {log}");
}

#[test]
fn a_program_that_does_not_exist_is_reported_and_the_turn_goes_on() {
    let table = "[mcp.test]\ncommand = [\"no-such-program-4711\"]\n";
    let fixture = builder(home()).tables(table).start();
    create_agent(&fixture, "a", "open");
    fixture.reply("Hi.");
    fixture.send("a", "Hello.").expect("a turn");
    assert!(offered(&fixture).is_empty());
    let log = fixture.daemon().read_log();
    assert!(log.contains("the MCP server is not running: cannot run no-such-program-4711"), "{log}");
    let shown = chorusctl(&fixture.home, ["status"]).expect_success();
    assert!(shown.contains("MCP test (not running: cannot run no-such-program-4711"), "{shown}");
    let found = chorusctl(&fixture.home, ["doctor"]);
    assert!(found.stdout.contains("test (not running: cannot run no-such-program-4711"), "{}", found.stdout);
}
