//! How full the context is, shown after each turn.

use serde_json::json;

use super::{chat, context, daemon, echo, leave, plain, say};
use crate::home;

#[test]
fn each_turn_ends_with_a_bar_and_a_long_context_with_its_size() {
    for (used, bar, more) in [(18_000, "context █░░░░░░░░░   9 %", false), (150_000, "context ████████░░  75 %", true)]
    {
        let home = home();
        daemon(&home, echo, move |mut asked| {
            let mut shown = context(30, 2, &[]);
            shown["context"]["meter"] = json!({"used": used, "window": 200_000, "calibrated": false});
            asked.send_result(shown);
        });
        let mut running = chat(&plain(&home));
        say(&mut running, "hello\r", bar);
        let out = leave(running);
        assert_eq!(out.contains(" 75 % · next request ~150k of 200k tokens"), more, "{out}");
    }
}
