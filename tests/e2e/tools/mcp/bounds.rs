//! Answers of a server are bounded, and a server that does not answer holds nobody up.

use std::time::{Duration, Instant};

use super::*;

#[test]
fn a_long_result_keeps_both_ends() {
    let place = Place::new();
    let fixture = start_fixture(&place, "open");
    let long = call(&fixture, "big", "3000000");
    assert!(long.text.len() < 300 << 10 && long.text.contains("bytes omitted"), "{} bytes", long.text.len());
}

#[test]
fn a_call_that_hangs_is_cut_and_the_server_told() {
    let place = Place::new();
    let fixture = start_fixture_with(&place, "open", "timeout = \"1s\"");
    let cut = call(&fixture, "hang", "");
    assert!(cut.is_error && cut.text.contains("did not answer within 1 s"), "{}", cut.text);
    wait_until("the cancellation", DEADLINE, || {
        place.lines("methods").contains(&"notifications/cancelled".to_owned()).then_some(())
    });
    assert_eq!(body(&call(&fixture, "echo", "still there")), "said: still there");
}

#[test]
fn a_server_that_starts_slowly_holds_up_no_turn() {
    let place = Place::new();
    place.set("slow", "3600");
    let fixture = start_fixture(&place, "open");
    let began = Instant::now();
    for _ in 0..3 {
        fixture.reply("Hi.");
        fixture.send("a", "Hello.").expect("a turn");
        assert!(offered(&fixture).is_empty());
    }
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}
