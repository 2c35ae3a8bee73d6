//! Direct messages: each person who may write to the agent has a conversation with it.

mod access;
mod commands;
mod conversations;
mod posts;
mod privacy;
mod restart;

use chorus_proto::methods::conversations::{Conversation, List, ListParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::{ChannelHandle, UserHandle, VisibleMessage};
use chorus_tests::model_server::Response;

use super::channels::ChannelFixture;

/// The agent `maps`, which answers direct messages and has a channel, and two people.
struct DirectFixture {
    fixture: ChannelFixture,
    room: ChannelHandle,
    mara: UserHandle,
    otto: UserHandle,
}

impl DirectFixture {
    fn new() -> Self {
        Self::with("", "")
    }

    /// With more tables, and more keys of `[discord]`.
    fn with(tables: &str, keys: &str) -> Self {
        let fixture = ChannelFixture::with("", tables, &format!("dm_agent = \"maps\"\n{keys}"));
        let (mara, otto) = (fixture.guild.add_member("mara", &["crew"], 0), fixture.guild.add_member("otto", &[], 0));
        let room = fixture.agent("maps");
        room.wait_for_post("is ready");
        Self { fixture, room, mara, otto }
    }

    /// The direct messages of a person.
    fn direct(&self, who: &UserHandle) -> ChannelHandle {
        self.fixture.discord.direct_channel(who)
    }

    fn say(&self, text: &str) {
        self.fixture.server.anthropic().queue_text([text]);
    }

    fn answer(&self, answer: Response) {
        self.fixture.server.anthropic().queue(answer);
    }

    /// Somebody asks in a channel, and gets this answer there.
    #[track_caller]
    fn talk(&self, who: &UserHandle, channel: &ChannelHandle, question: &str, answer: &str) {
        self.say(answer);
        let asked = channel.say(who, question);
        assert_eq!(answer_to(channel, asked).content, answer);
    }

    /// A question in the direct messages of a person.
    #[track_caller]
    fn talk_direct(&self, who: &UserHandle, question: &str, answer: &str) {
        self.talk(who, &self.direct(who), question, answer);
    }

    /// Everything that came before is dealt with: the channel answers.
    fn settle(&self) {
        self.talk(&self.mara, &self.room, "Is that all?", "Settled.");
    }

    /// The conversation of a person's direct messages.
    fn conversation(&self, who: &UserHandle) -> Option<Conversation> {
        let params = ListParams { agent: Some("maps".into()), all: true, ..ListParams::default() };
        let listed = self.fixture.client().call::<List>(&params).expect("conversations.list").conversations;
        listed.into_iter().find(|one| one.origin == Some(format!("discord-dm:{}", who.id)))
    }

    /// What was said in the live conversation of a person.
    fn texts(&self, who: &UserHandle) -> Vec<String> {
        let Some(conversation) = self.conversation(who) else { return Vec::new() };
        let shown = self.fixture.client().messages_in("maps", &conversation.name);
        shown.into_iter().map(|message| message.content).collect()
    }

    fn main_texts(&self) -> Vec<String> {
        self.fixture.client().message_texts("maps")
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
