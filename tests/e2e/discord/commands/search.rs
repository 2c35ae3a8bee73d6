//! `/context search`: finds what was said, for everybody who sees the channel.

use chorus_proto::methods::context::{Clear, ClearParams};
use chorus_proto::{NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;

use super::{CommandFixture, refused};
use crate::search::wait_until_complete;

#[test]
fn messages_are_found_with_the_command_that_continues_there() {
    let fixture = CommandFixture::new();
    let mut client = fixture.client();
    client.init("other");
    client.append("other", "bread of another");
    client.save("other", "bread");
    fixture.talk("scribe");
    let session = client.save("scribe", "*Baking* @everyone").short_id;
    client.call::<Clear>(&ClearParams { agent: Some("scribe".into()), ..ClearParams::default() }).expect("clear");
    client.append("scribe", "**Rye** bread @everyone <@1> http://x.example `ls`\n# head");
    wait_until_complete(&mut client);
    let answer = fixture.slash("context search", &[("query", "bread")]).response_with("2 results for `bread`");
    assert!(answer.ephemeral && !answer.mentions_everyone && answer.content.starts_with("**scribe** · "), "{answer:?}");
    let text = &answer.content;
    assert!(text.contains(r"**\*Baking\* \@everyone** · message 1 · "), "{text}");
    assert!(text.contains("\n> How do I bake **bread**?\n"), "{text}");
    assert!(text.contains(&format!("`/context restore session:{session} at:1`")), "{text}");
    assert!(text.contains("**Live conversation** · message 1 · "), "{text}");
    assert!(text.contains(r"> \*\*Rye\*\* **bread** \@everyone \<\@1\> http\://x.example \`ls\` \# head"), "{text}");
    assert!(!text.contains("another"), "{text}");
    fixture.slash("context restore", &[("session", &session), ("at", "1")]).response_with("Restored");

    // Who may not restore does not read how to.
    let answer = fixture.otto.run_slash_command(&fixture.room, "context search", &[("query", "bread")]);
    let answer = answer.response_with("for `bread`");
    assert!(answer.ephemeral && !answer.content.contains("/context restore"), "{answer:?}");
    let other =
        fixture.otto.run_slash_command(&fixture.room, "context search", &[("query", "bread"), ("agent", "other")]);
    refused(&other, "another channel's agent");
    let other = fixture.slash("context search", &[("query", "bread"), ("agent", "other")]);
    let other = other.response_with("bread** of another");
    assert!(other.content.contains("at:1 agent:other`"), "{other:?}");
    fixture.slash("context search", &[("query", "penguin `q`")]).response_with("no results for `penguin ˋqˋ`");
    refused(&fixture.slash("context search", &[("query", "-bread")]), "only excludes words");
}

#[test]
fn at_most_five_are_shown_and_no_part_of_a_secret() {
    let fixture = CommandFixture::new();
    let mut client = fixture.client();
    let key = "ghp_9fQ2xLm7Rt4KpZ8vWc3BnY6sDh1JgT5aEuXo";
    // The words are so far behind the start of the key that a snippet could begin within it.
    let text = format!("{} {key} the zeppelin lands {}", "lorem".repeat(30), "ipsum ".repeat(60));
    client.append_all("scribe", vec![NewMessage::text(Role::User, text)]);
    client.save("scribe", "zeppelins");
    wait_until_complete(&mut client);
    let answer = fixture.slash("context search", &[("query", "zeppelin lands")]).response_with("1 result");
    assert!(answer.content.contains("zeppelin lands"), "{answer:?}");
    let shown = |part: &str| answer.content.contains(part);
    assert!(!(0..key.len() - 6).any(|at| shown(&key[at..at + 6])), "{answer:?}");
    for n in 0..8 {
        client.append("scribe", &format!("balloon {n}"));
        client.append_all("scribe", (0..4).map(|_| NewMessage::text(Role::Assistant, "rises")).collect());
    }
    wait_until_complete(&mut client);
    let answer = fixture.slash("context search", &[("query", "balloon")]).response_with("5 results");
    assert!(answer.content.contains("\n5\\. ") && answer.files.is_empty(), "{answer:?}");
}

#[test]
fn without_an_index_the_owner_is_asked() {
    let fixture = CommandFixture::with("[search]\nindex = false\n");
    let answer = refused(&fixture.slash("context search", &[("query", "bread")]), "search index is off");
    assert!(!answer.content.contains("config.toml") && !answer.content.contains("chorusctl"), "{answer:?}");
}
