//! Threads below the channels of agents: each is a conversation of its own.

mod access;
mod archive;
mod commands;
mod conversations;
mod permissions;
mod posts;
mod restart;
mod titles;

use chorus_proto::methods::conversations::{Conversation, List, ListParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::{ChannelHandle, UserHandle, VisibleMessage};
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, wait_until};

use super::channels::ChannelFixture;

/// The agent `maps` with a channel, and two people.
struct ThreadFixture {
    fixture: ChannelFixture,
    room: ChannelHandle,
    mara: UserHandle,
    otto: UserHandle,
}

impl ThreadFixture {
    fn new() -> Self {
        Self::of(ChannelFixture::new())
    }

    fn of(fixture: ChannelFixture) -> Self {
        let (mara, otto) = (fixture.guild.add_member("mara", &["crew"], 0), fixture.guild.add_member("otto", &[], 0));
        let room = fixture.agent("maps");
        room.wait_for_post("is ready");
        // Sessions of four messages and more are summarised, which takes no answer of a turn.
        fixture.server.set_summary_response(Response::error(500, "no summary"));
        Self { fixture, room, mara, otto }
    }

    fn thread(&self, name: &str) -> ChannelHandle {
        self.fixture.guild.create_thread(&self.room, name)
    }

    fn say(&self, text: &str) {
        self.fixture.server.anthropic().queue_text([text]);
    }

    fn answer(&self, answer: Response) {
        self.fixture.server.anthropic().queue(answer);
    }

    /// Mara asks in a thread, and gets this answer there.
    #[track_caller]
    fn talk(&self, thread: &ChannelHandle, question: &str, answer: &str) {
        self.say(answer);
        let asked = thread.say(&self.mara, question);
        assert_eq!(answer_to(thread, asked).content, answer);
    }

    /// The conversation of a thread, closed or not.
    fn conversation(&self, thread: &ChannelHandle) -> Option<Conversation> {
        let params = ListParams { agent: Some("maps".into()), all: true, ..ListParams::default() };
        let listed = self.fixture.client().call::<List>(&params).expect("conversations.list").conversations;
        let origins = ["discord", "discord-private"].map(|prefix| format!("{prefix}:{}", thread.id));
        listed.into_iter().find(|one| one.origin.as_ref().is_some_and(|origin| origins.contains(origin)))
    }

    /// What was said in the live conversation of a thread.
    fn texts(&self, thread: &ChannelHandle) -> Vec<String> {
        let Some(conversation) = self.conversation(thread) else { return Vec::new() };
        let shown = self.fixture.client().messages_in("maps", &conversation.name);
        shown.into_iter().map(|message| message.content).collect()
    }

    fn main_texts(&self) -> Vec<String> {
        self.fixture.client().message_texts("maps")
    }

    /// Waits until the conversation of a thread is closed.
    #[track_caller]
    fn closed(&self, thread: &ChannelHandle) -> Conversation {
        wait_until("the conversation to be closed", DEADLINE, || {
            self.conversation(thread).filter(|one| one.closed_at.is_some() && one.context.is_none())
        })
    }

    /// Waits until the conversation of a thread says this.
    #[track_caller]
    fn says(&self, thread: &ChannelHandle, texts: &[&str]) {
        wait_until("the conversation of the thread", DEADLINE, || (self.texts(thread) == texts).then_some(()));
    }

    /// Everything that came before is dealt with: the channel answers.
    fn settle(&self) {
        self.talk(&self.room, "Is that all?", "Settled.");
    }

    /// The messages of each request to the model.
    fn requests(&self) -> Vec<String> {
        self.fixture.server.requests().iter().map(|request| request.body["messages"].to_string()).collect()
    }
}

/// Waits for the post that answers a message.
#[track_caller]
fn answer_to(channel: &ChannelHandle, message: u64) -> VisibleMessage {
    channel.wait_for("an answer", |messages| {
        let fits =
            |shown: &&VisibleMessage| shown.is_own && shown.reply_to == Some(message) && shown.buttons.is_empty();
        messages.iter().find(fits).cloned()
    })
}

/// The posts that answer messages.
fn answers(channel: &ChannelHandle) -> Vec<VisibleMessage> {
    let mut posts = channel.application_posts();
    posts.retain(|post| post.reply_to.is_some());
    posts
}
