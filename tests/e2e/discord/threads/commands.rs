//! Slash commands act on the conversation where they are typed.

use chorus_proto::methods::context::{Show, ShowParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::ChannelHandle;
use chorus_tests::discord::permissions::{CREATE_PUBLIC_THREADS, EVERYONE_DEFAULT, MANAGE_MESSAGES};
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, wait_until};

use super::{ThreadFixture, answer_to};

fn facts(threads: &ThreadFixture, conversation: Option<String>) -> Vec<String> {
    let params = ShowParams { agent: Some("maps".into()), conversation, ..ShowParams::default() };
    let shown = threads.fixture.client().call::<Show>(&params).expect("context.show");
    shown.working_set.pinned_facts.into_iter().map(|fact| fact.text).collect()
}

#[test]
fn a_command_in_a_thread_acts_on_its_conversation() {
    let threads = ThreadFixture::new();
    let thread = threads.thread("colours");
    let ada = threads.fixture.guild.add_member("ada", &[], MANAGE_MESSAGES);
    let slash =
        |room: &ChannelHandle, command: &str, options: &[(&str, &str)]| ada.run_slash_command(room, command, options);
    threads.talk(&threads.room, "Our word?", "Bread.");
    // A thread in which nobody wrote has a conversation as soon as a command needs it.
    slash(&thread, "pin", &[("text", "We like blue.")]).response_with("Pinned.");
    threads.talk(&thread, "Our colour?", "Blue.");
    let name = threads.conversation(&thread).expect("a conversation").name;
    assert_eq!((facts(&threads, Some(name)), facts(&threads, None)), (vec!["We like blue.".to_owned()], vec![]));
    slash(&thread, "status", &[]).response_with("2 messages");
    slash(&thread, "context save", &[("description", "colours")]).response_with("Saved as");
    slash(&thread, "undo", &[]).response_with("Removed 2 messages");
    assert_eq!((threads.texts(&thread).len(), threads.main_texts().len()), (0, 2));
    slash(&thread, "context restore", &[("session", "latest"), ("discard", "true")]).response_with("Restored");
    assert_eq!(threads.texts(&thread), ["Our colour?", "Blue."]);
    let asked = slash(&thread, "context clear", &[]).response_with("Clear the conversation of **maps** (2 messages)?");
    ada.press_button(&asked, "Clear").response_with("Cleared 2 messages");
    wait_until("the thread to be cleared", DEADLINE, || threads.texts(&thread).is_empty().then_some(()));
    assert_eq!(threads.main_texts(), ["Our word?", "Bread."]);
    // The history is that of the agent.
    slash(&threads.room, "context history", &[]).response_with("colours");
    slash(&thread, "agent config", &[("name", "maps"), ("key", "model")]).response_with("Manage Channels");
}

#[test]
fn in_a_thread_without_a_conversation_no_command_acts_on_that_of_the_channel() {
    let threads = ThreadFixture::new();
    let thread = threads.thread("empty");
    let ada = threads.fixture.guild.add_member("ada", &[], MANAGE_MESSAGES);
    threads.talk(&threads.room, "Our word?", "Bread.");
    threads.answer(Response::text(["Sure"]).gate("room"));
    threads.room.say(&threads.mara, "Are you sure?");
    threads.fixture.server.wait_for_gate("room");
    for command in ["context clear", "cancel", "session export"] {
        let options: &[(&str, &str)] = if command == "session export" { &[("session", "@")] } else { &[] };
        let answer = ada.run_slash_command(&thread, command, options);
        assert!(answer.response_with("This place has no conversation yet").ephemeral, "{command}");
    }
    ada.run_slash_command(&thread, "context history", &[]).response_with("has no saved conversations yet");
    threads.fixture.server.open_gate("room");
    wait_until("the answer", DEADLINE, || (threads.main_texts().len() == 4).then_some(()));
}

#[test]
fn cancel_stops_the_turn_of_the_thread_where_it_is_typed() {
    let threads = ThreadFixture::new();
    let thread = threads.thread("colours");
    threads.answer(Response::text(["Bread"]).gate("room"));
    let held = threads.room.say(&threads.mara, "Our word?");
    threads.fixture.server.wait_for_gate("room");
    threads.answer(Response::text(["Blue"]).gate("thread"));
    let stopped = thread.say(&threads.mara, "Our colour?");
    threads.fixture.server.wait_for_gate("thread");
    threads.mara.run_slash_command(&thread, "cancel", &[]).response_with("Stopped the current turn.");
    assert!(answer_to(&thread, stopped).content.contains("topped"), "{:?}", answer_to(&thread, stopped));
    let nothing = threads.mara.run_slash_command(&thread, "cancel", &[]);
    assert!(nothing.response_with("Nothing to cancel").ephemeral);
    threads.fixture.server.open_gate("room");
    assert_eq!(answer_to(&threads.room, held).content, "Bread");
    // The button below the answer stops the turn of its thread as well.
    threads.answer(Response::text(["Red and then", " more"]).gate("again"));
    let asked = thread.say(&threads.mara, "And now?");
    let live = thread.wait_for_post_with_button("Stop");
    threads.mara.press_button(&live, "Stop");
    assert!(answer_to(&thread, asked).content.contains("topped"));
}

#[test]
fn a_new_conversation_is_a_thread_below_the_agents_channel() {
    let threads = ThreadFixture::new();
    let command = [("name", "Plan the trip")];
    let refused = threads.mara.run_slash_command(&threads.room, "conversation new", &command);
    assert!(refused.response_with("You don't have permission").ephemeral);
    threads.mara.grant_permissions(CREATE_PUBLIC_THREADS);
    threads
        .mara
        .run_slash_command(&threads.room, "conversation new", &command)
        .response_with("a separate conversation");
    let [trip] = &threads.fixture.guild.threads(&threads.room)[..] else { panic!("one thread was due") };
    assert_eq!(trip.name(), "Plan the trip");
    assert_eq!(threads.conversation(trip).expect("a conversation").name, "discord-thread-plan-the-trip");
    threads.talk(trip, "Where to?", "North.");
    let listed = threads.otto.run_slash_command(trip, "conversation list", &[]).response_with("2 messages");
    assert!(listed.ephemeral && listed.content.contains(&format!("<#{}> · empty", threads.room.id)), "{listed:?}");
    assert!(listed.content.contains(&format!("<#{}> · 2 messages", trip.id)), "{listed:?}");
    threads.fixture.client().append_to("side", "From a terminal.");
    let listed = threads.otto.run_slash_command(trip, "conversation list", &[]).response_with("2 messages");
    assert!(!listed.content.contains("side"), "{listed:?}");
    // From a thread it is one more below the channel. Chorus needs the permission, too.
    threads.mara.run_slash_command(trip, "conversation new", &[("name", "Pack")]).response_with("Created");
    assert_eq!(threads.fixture.guild.threads(&threads.room).len(), 2);
    threads.fixture.guild.set_application_permissions(EVERYONE_DEFAULT);
    let refused = threads.mara.run_slash_command(&threads.room, "conversation new", &command);
    assert!(refused.response_with("Create Public Threads and Send Messages in Threads").ephemeral);
    assert_eq!(threads.fixture.guild.threads(&threads.room).len(), 2);
}

trait AppendTo {
    fn append_to(&mut self, conversation: &str, text: &str);
}

impl AppendTo for chorus_proto::Client {
    fn append_to(&mut self, conversation: &str, text: &str) {
        use chorus_proto::methods::{context, conversations};
        let agent = Some("maps".to_owned());
        let new = conversations::NewParams { agent: agent.clone(), name: conversation.into(), ..Default::default() };
        self.call::<conversations::New>(&new).expect("conversations.new");
        let params = context::AppendParams {
            agent,
            conversation: Some(conversation.into()),
            messages: vec![chorus_proto::NewMessage::text(chorus_proto::Role::User, text)],
            ..Default::default()
        };
        self.call::<context::Append>(&params).expect("context.append");
        assert_eq!(self.messages_in("maps", conversation).len(), 1);
    }
}
