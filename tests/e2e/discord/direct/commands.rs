//! Slash commands in direct messages act on the conversation of the person.

use chorus_tests::discord::permissions::SEND_MESSAGES;

use super::DirectFixture;

#[test]
fn a_command_in_direct_messages_acts_on_the_conversation_of_the_person() {
    let dms = DirectFixture::new();
    let hers = dms.direct(&dms.mara);
    let slash = |command: &str, options: &[(&str, &str)]| dms.mara.run_slash_command(&hers, command, options);
    // Before the first message there is nothing to act on, and nothing is shown of the channel.
    dms.talk(&dms.otto, &dms.room, "Our word?", "Bread.");
    slash("context clear", &[]).response_with("This place has no conversation yet");
    slash("context history", &[]).response_with("This place has no conversation yet");
    slash("help", &[]).response_with("Write here to talk to **maps**");
    slash("pin", &[("text", "We like blue.")]).response_with("Pinned.");
    dms.talk_direct(&dms.mara, "Our colour?", "Blue.");
    slash("status", &[]).response_with("2 messages");
    slash("context save", &[("description", "colours")]).response_with("Saved as");
    slash("undo", &[]).response_with("Removed 2 messages");
    assert!(dms.texts(&dms.mara).is_empty());
    slash("context restore", &[("session", "latest"), ("discard", "true")]).response_with("Restored");
    assert_eq!(dms.texts(&dms.mara), ["Our colour?", "Blue."]);
    let asked = slash("context clear", &[]).response_with("Clear the conversation of **maps** (2 messages)?");
    dms.mara.press_button(&asked, "Clear").response_with("Cleared 2 messages");
    assert_eq!(dms.main_texts(), ["Our word?", "Bread."]);
    // What concerns more than the conversation needs the server.
    slash("memory add", &[("text", "We like blue.")]).response_with("only in servers");
}

#[test]
fn who_may_not_write_may_use_no_command() {
    let dms = DirectFixture::new();
    dms.room.deny_user(&dms.otto, SEND_MESSAGES);
    let refused = dms.otto.run_slash_command(&dms.direct(&dms.otto), "context save", &[]);
    assert!(refused.response_with("You may not write to this agent.").ephemeral);
    assert!(dms.conversation(&dms.otto).is_none());
}
