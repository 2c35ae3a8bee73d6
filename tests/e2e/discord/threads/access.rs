//! Threads that Chorus does not see, or not always.

use chorus_tests::discord::permissions::{MANAGE_MESSAGES, VIEW_CHANNEL};
use chorus_tests::model_server::Response;

use super::{ThreadFixture, answer_to, answers};
use crate::search::wait_until_complete;

#[test]
fn a_private_thread_is_heard_once_chorus_is_added_and_its_sessions_stay_in_it() {
    let mut threads = ThreadFixture::new();
    let thread = threads.fixture.guild.create_private_thread(&threads.room, "Gifts");
    thread.say(&threads.mara, "Shall we ask Chorus?");
    threads.settle();
    assert!(thread.application_posts().is_empty(), "it was not added");
    thread.add_application();
    threads.talk(&thread, "What shall we give ada?", "A kite.");
    assert_eq!(threads.texts(&thread), ["What shall we give ada?", "A kite."], "what was said before is not for it");
    let conversation = threads.conversation(&thread).expect("a conversation");
    assert_eq!(conversation.name, "discord-private-gifts");
    assert_eq!(conversation.origin, Some(format!("discord-private:{}", thread.id)));
    let ada = threads.fixture.guild.add_member("ada", &[], MANAGE_MESSAGES);
    ada.run_slash_command(&thread, "context save", &[("description", "gifts")]).response_with("Saved as");
    ada.run_slash_command(&threads.room, "context save", &[("description", "all")]).response_with("Saved as");
    let shown = ada.run_slash_command(&threads.room, "context history", &[]).response_with("1 session");
    assert!(!shown.content.contains("gifts"), "{shown:?}");
    let refused = ada.run_slash_command(&threads.room, "context restore", &[("session", "gifts")]);
    assert!(!refused.response_with("session").content.contains("Restored"));
    // Its members see the channel as well.
    let shown = ada.run_slash_command(&thread, "context history", &[]).response_with("gifts");
    assert!(shown.content.contains("all"), "{shown:?}");
    // Nor does a search in the channel find what was said there, live or saved.
    wait_until_complete(&mut threads.fixture.client());
    let search =
        |channel| ada.run_slash_command(channel, "context search", &[("query", "kite")]).response_with(" for `kite`");
    assert!(search(&threads.room).content.contains("no results") && search(&thread).content.contains("A **kite**."));
    let listed = ada.run_slash_command(&threads.room, "conversation list", &[]).response_with("Conversations of");
    assert!(!listed.content.contains(&thread.id.to_string()), "{listed:?}");
    // The same in the next daemon, whether the session is resumed or not.
    for forgotten in [false, true] {
        threads.fixture.kill();
        if forgotten {
            threads.fixture.discord.forget_sessions();
        }
        threads.say("Red.");
        let asked = thread.say(&threads.mara, "Which colour?");
        threads.fixture.start();
        assert_eq!(answer_to(&thread, asked).content, "Red.");
    }
    assert_eq!((threads.texts(&thread).len(), answers(&thread).len()), (6, 3));
}

#[test]
fn threads_of_a_channel_that_is_seen_again_are_read_and_closed() {
    let threads = ThreadFixture::new();
    let (known, shut) = (threads.thread("known"), threads.thread("shut"));
    threads.talk(&known, "zero", "Zero.");
    threads.talk(&shut, "null", "Null.");
    threads.fixture.server.anthropic().set_fallback(Response::text(["Yes."]));
    threads.room.deny_application(VIEW_CHANNEL);
    let missed = known.say(&threads.mara, "one");
    let new = threads.thread("new");
    let first = new.say(&threads.otto, "first");
    shut.archive();
    // Nothing of it is told, and nothing is known to have been closed.
    let hall = threads.fixture.guild.create_channel("hall");
    hall.say(&threads.mara, &format!("<@{}>?", threads.fixture.discord.own_user().id));
    hall.wait_for_post("No agent reads this channel.");
    assert!(threads.conversation(&shut).is_some_and(|one| one.closed_at.is_none()));
    threads.room.clear_denials();
    answer_to(&known, missed);
    answer_to(&new, first);
    threads.closed(&shut);
    assert_eq!(threads.texts(&known), ["zero", "Zero.", "one", "Yes."]);
    assert_eq!(threads.texts(&new), ["first", "Yes."]);
    assert_eq!((answers(&known).len(), answers(&new).len(), answers(&shut).len()), (2, 1, 1));
    assert!(shut.is_archived());
}

#[test]
fn a_thread_below_a_channel_that_no_agent_reads_is_not_answered() {
    let threads = ThreadFixture::new();
    let mention = format!("<@{}> are you there?", threads.fixture.discord.own_user().id);
    let hall = threads.fixture.guild.create_channel("hall");
    let thread = threads.fixture.guild.create_thread(&hall, "plans");
    thread.say(&threads.mara, "Anybody?");
    let asked = thread.say(&threads.mara, &mention);
    assert_eq!(thread.wait_for_post("No agent reads this channel.").reply_to, Some(asked));
    // In a server that is not served nothing is said at all.
    let other = threads.fixture.discord.create_guild("other");
    let stranger = other.add_member("eve", &[], 0);
    let foreign = other.create_thread(&other.create_channel("den"), "plans");
    foreign.say(&stranger, &mention);
    threads.settle();
    assert!(foreign.application_posts().is_empty());
    assert_eq!(thread.application_posts().len(), 1);
    assert!(threads.conversation(&thread).is_none() && threads.conversation(&foreign).is_none());
}
