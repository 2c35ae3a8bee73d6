//! Messages of people in the channels of agents: each is answered once, in order, whatever happens in between.

mod attachments;
mod backfill;
mod crash;
mod edits;
mod mentions;

use std::time::Duration;

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_proto::{Client, Message};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::{ChannelHandle, FakeDiscord, GuildHandle, UserHandle, VisibleMessage};
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use serde_json::Value;

use super::catalog;
use crate::home;

/// The agent `scribe` with a channel of its own and a model, and two people.
struct InboundFixture {
    models: ModelServer,
    discord: FakeDiscord,
    server: GuildHandle,
    room: ChannelHandle,
    mara: UserHandle,
    otto: UserHandle,
    home: Home,
    daemon: Daemon,
}

impl InboundFixture {
    fn new() -> Self {
        let (models, discord) = (ModelServer::start(), FakeDiscord::start());
        let server = discord.create_guild("home");
        let (mara, otto) = (server.add_member("mara", &["crew"], 0), server.add_member("otto", &[], 0));
        discord.set_identify_interval(Duration::ZERO);
        let home = home();
        let daemon = Daemon::start_with(&home, &format!("{}\n{}", models.config_toml(), discord.config_toml()));
        let mut client = daemon.client();
        wait_until("the daemon to know the server", DEADLINE * 3, || {
            let status = client.call::<Status>(&StatusParams::default()).expect("status");
            (status.discord.connected && status.discord.guilds == 1).then_some(())
        });
        client.init("scribe");
        let room = server.wait_for_channel("scribe");
        room.wait_for_post("scribe");
        // What is said from now on the gateway tells first, with all there is to know of who says it.
        _ = discord.wait_for_requests("GET /channels/*/messages", 1);
        Self { models, discord, server, room, mara, otto, home, daemon }
    }

    fn client(&self) -> Client {
        self.daemon.client()
    }

    fn say(&self, text: &str) {
        self.models.anthropic().queue_text([text]);
    }

    fn answer(&self, answer: Response) {
        self.models.anthropic().queue(answer);
    }

    /// What the record holds.
    fn record(&self) -> Vec<Message> {
        self.client().messages("scribe")
    }

    /// What the record holds, as texts, once there is so much.
    fn texts(&self, count: usize) -> Vec<String> {
        let mut client = self.client();
        wait_until("messages in the record", DEADLINE * 3, || {
            Some(client.message_texts("scribe")).filter(|texts| texts.len() >= count)
        })
    }

    fn config(&self, key: &str, value: &str) {
        let params = ConfigParams { name: "scribe".into(), key: Some(key.into()), value: Some(value.into()) };
        self.client().call::<Config>(&params).expect("agent.config");
    }

    /// Waits until nothing is to be answered: the next message is, and whatever came before it is dealt with.
    fn settle(&self) {
        self.say("Settled.");
        let asked = self.room.say(&self.otto, "Is that all?");
        self.answer_to(asked);
    }

    /// Waits for what answers a message.
    fn answer_to(&self, message: u64) -> VisibleMessage {
        self.room.wait_for("an answer", |messages| {
            let fits =
                |shown: &&VisibleMessage| shown.is_own && shown.reply_to == Some(message) && shown.buttons.is_empty();
            messages.iter().find(fits).cloned()
        })
    }

    /// Posts that answer messages, in their order.
    fn answers(&self) -> Vec<VisibleMessage> {
        let mut posts = self.room.application_posts();
        posts.retain(|post| post.reply_to.is_some());
        posts
    }

    /// Waits until what is noted of a message fits: its state, and what it asks while that is open.
    fn claim(&self, message: u64, fits: impl Fn(&str, &str) -> bool) {
        wait_for_claim(&self.home, message, fits);
    }

    /// Waits until a message was taken up.
    fn claimed(&self, message: u64) {
        self.claim(message, |_, _| true);
    }

    /// Waits until a message that waits says this.
    fn says(&self, message: u64, text: &str) {
        self.claim(message, |state, asked| state == "queued" && asked.contains(text));
    }

    /// Waits until it is known that a message is not to be answered any more.
    fn dropped(&self, message: u64) {
        self.claim(message, |state, _| state == "dropped");
    }

    /// Ends the daemon at once and starts it again.
    fn crash(self) -> Self {
        self.daemon.kill9();
        Self { daemon: Daemon::start(&self.home), ..self }
    }
}

/// The texts of what users said in a request of a model, the last message first.
fn asked(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let of_user = messages.iter().rev().filter(|message| message["role"] == "user");
    let blocks = of_user.flat_map(|message| message["content"].as_array().cloned().unwrap_or_default());
    blocks.filter_map(|block| Some(block["text"].as_str()?.to_owned())).collect()
}

/// Waits until what is noted of a message in the catalog of `home` fits: its state, and what it asks while that is open.
pub fn wait_for_claim(home: &Home, message: u64, fits: impl Fn(&str, &str) -> bool) {
    let one = format!("SELECT state, asked FROM claims WHERE message_id = {message}");
    wait_until("a claim", DEADLINE, || {
        let rows = catalog::rows(home, &one)?;
        fits(&rows.first()?[0], &rows.first()?[1]).then_some(())
    });
}
