//! A daemon with an agent in a room, a model that is scripted, and what is left to be posted.

use std::time::Duration;

use chorus_proto::Client;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::{ChannelHandle, FakeDiscord, GuildHandle, UserHandle, VisibleMessage};
use chorus_tests::model_server::ModelServer;
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};

use super::super::catalog;
use crate::home;

/// `scribe` has a room of its own; mara asks, otto is somebody else.
pub struct ReplyFixture {
    pub discord: FakeDiscord,
    pub server: GuildHandle,
    pub room: ChannelHandle,
    pub mara: UserHandle,
    pub otto: UserHandle,
    pub model: ModelServer,
    pub home: Home,
    daemon: Option<Daemon>,
}

impl ReplyFixture {
    pub fn new() -> Self {
        let (discord, model, home) = (FakeDiscord::start(), ModelServer::start(), home());
        discord.set_identify_interval(Duration::ZERO);
        let server = discord.create_guild("home");
        let lobby = server.create_channel("lobby");
        let (mara, otto) = (server.add_member("mara", &[], 0), server.add_member("otto", &[], 0));
        let daemon = Daemon::start_with(&home, &format!("{}{}", model.config_toml(), discord.config_toml()));
        // A server whose commands are there is known.
        mara.run_slash_command(&lobby, "ping", &[]).response_with("is online");
        daemon.client().init("scribe");
        let room = server.wait_for_channel("scribe");
        room.wait_for_post("is ready");
        Self { discord, server, room, mara, otto, model, home, daemon: Some(daemon) }
    }

    pub fn client(&self) -> Client {
        self.daemon().client()
    }

    pub fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("a daemon")
    }

    /// One more agent with a room.
    pub fn agent(&self, name: &str) -> ChannelHandle {
        self.client().init(name);
        let room = self.server.wait_for_channel(name);
        room.wait_for_post("is ready");
        room
    }

    pub fn kill(&mut self) {
        self.daemon.take().expect("a daemon").kill9();
    }

    pub fn start(&mut self) {
        self.daemon = Some(Daemon::start(&self.home));
    }

    pub fn ask(&self, text: &str) -> u64 {
        self.room.say(&self.mara, text)
    }

    /// What was posted since a message, notices of a start apart.
    pub fn since(&self, message: u64) -> Vec<VisibleMessage> {
        let notice = |post: &VisibleMessage| post.content.starts_with("Chorus restarted. ");
        self.room.application_posts().into_iter().filter(|post| post.id > message && !notice(post)).collect()
    }

    /// Waits until this is the last that was said in the agent's conversation.
    pub fn conversation_ends(&self, text: &str) {
        let mut client = self.client();
        wait_until(text, DEADLINE, || {
            client.message_texts("scribe").last().is_some_and(|last| last == text).then_some(())
        });
    }

    /// Waits until a message is answered for good: what was posted since.
    #[track_caller]
    pub fn answer(&self, message: u64) -> Vec<VisibleMessage> {
        self.settled();
        let posts = self.since(message);
        let answers = posts.iter().filter(|post| post.reply_to == Some(message)).count();
        assert!(answers == 1, "{answers} answers: {posts:#?}");
        assert!(posts.iter().all(|post| post.button("Stop").is_none()), "it is not over: {posts:#?}");
        posts
    }

    /// The answer where it is one message.
    #[track_caller]
    pub fn one(&self, message: u64) -> VisibleMessage {
        let mut posts = self.answer(message);
        assert!(posts.len() == 1, "{posts:#?}");
        posts.remove(0)
    }

    /// Waits until no message waits for its answer, and no post for its channel.
    #[track_caller]
    pub fn settled(&self) {
        let asked = || self.room.messages().iter().filter(|message| !message.is_own).map(|message| message.id).max();
        wait_until("all to be answered and posted", DEADLINE * 2, || {
            let claimed = self.number("SELECT coalesce(max(message_id), 0) FROM claims")?;
            let open = self.number("SELECT count(*) FROM claims WHERE state IN ('queued', 'running')")?;
            let waiting = self.number("SELECT count(*) FROM discord_outbox WHERE sent_id IS NULL")?;
            (claimed >= asked().unwrap_or(0).cast_signed() && open == 0 && waiting == 0).then_some(())
        });
    }

    /// What there is in the outbox.
    pub fn outbox(&self) -> i64 {
        self.number("SELECT count(*) FROM discord_outbox").expect("a number")
    }

    fn number(&self, question: &str) -> Option<i64> {
        catalog::number(&self.home, question)
    }

    /// Posts that were tried before the daemon ended were so ten minutes before.
    pub fn age(&self) {
        let age = "UPDATE discord_outbox SET tried_at = tried_at - 600000000000 WHERE tried_at > 0";
        assert!(catalog::change(&self.home, age) > 0, "nothing was on its way");
    }
}
