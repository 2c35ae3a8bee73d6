//! `/context history`: ten to a page, with buttons that outlive the daemon; numbers are everybody's own.

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::permissions::MANAGE_MESSAGES;

use super::{CommandFixture, refused};

#[test]
fn pages_are_turned_by_buttons_over_a_restart_too() {
    let fixture = CommandFixture::new();
    fixture.slash("context history", &[]).response_with("no saved conversations yet");
    let mut client = fixture.client();
    for n in 1..=23 {
        client.append("scribe", &format!("word {n}"));
        client.save("scribe", &format!("about *word* {n}"));
    }
    let history = fixture.slash("context history", &[]);
    let first = history.response_with("page 1 of 3");
    assert!(first.ephemeral && first.content.contains("23 sessions"), "{first:?}");
    assert_eq!(first.content.lines().count(), 11);
    // The newest first, by number and short id, with how long ago as Discord shows it; text of others is text.
    let line = first.content.lines().nth(1).expect("the newest").to_owned();
    let newest = client.history("scribe").remove(0);
    assert!(line.starts_with("1\\. ") && line.contains(&newest.short_id), "{line}");
    assert!(line.contains(&format!("<t:{}:R>", newest.header.saved_at.as_second())), "{line}");
    assert!(line.contains("23 messages") && line.ends_with(r"about \*word\* 23"), "{line}");
    let button = |label: &str| first.button(label).expect("a button").clone();
    assert!(button("◀").disabled && !button("▶").disabled);

    fixture.mara.press_button(&first, "▶").response_with("page 2 of 3");
    let fixture = fixture.restart();
    let last = fixture.mara.press_button(&first, "▶").response_with("page 3 of 3");
    assert_eq!((last.id, last.content.lines().count()), (first.id, 4));
    assert!(last.button("▶").expect("a button").disabled && last.content.contains("23\\. "), "{last:?}");
    let before = fixture.mara.press_button(&last, "◀").response_with("page 2 of 3");
    assert!(before.content.contains("11\\. "));

    // What a number means is what this person was shown.
    let eleventh = fixture.client().history("scribe").remove(10).header.session_id;
    fixture.slash("context restore", &[("session", "11")]).response_with(&eleventh);
    let vera = fixture.server.add_member("vera", &[], MANAGE_MESSAGES);
    let unknown = "number 11";
    refused(&vera.run_slash_command(&fixture.room, "context restore", &[("session", "11")]), unknown);
}

#[test]
fn a_page_that_is_not_there_is_the_last_one() {
    let fixture = CommandFixture::new();
    let mut client = fixture.client();
    client.append("scribe", "one");
    client.save("scribe", "one");
    let answer = fixture.slash("context history", &[("page", "9")]).response_with("page 1 of 1");
    assert!(answer.buttons.is_empty(), "{answer:?}");
    // Of an agent of another channel by a stranger, and of one that was taken away.
    let id = client.agent_status("scribe").id;
    let stale = fixture.otto.press_stale_button(&fixture.hall, &answer, &format!("history:{id}:1"));
    refused(&stale, "another channel's agent");
    let gone =
        fixture.mara.press_stale_button(&fixture.room, &answer, "history:00000000-0000-0000-0000-000000000001:1");
    gone.response_with("This agent was deleted");
}
