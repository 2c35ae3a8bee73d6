//! The life of an agent in Discord, from its making to its end, through the real binaries.

use std::time::Duration;

use chorus_proto::methods::agent::{List, ListParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::discord::permissions::{MANAGE_CHANNELS, MANAGE_MESSAGES};
use chorus_tests::discord::{ChannelHandle, FakeDiscord, GuildHandle, UserHandle, VisibleMessage};
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use serde_json::json;

use crate::home;

/// A server with somebody who looks after it, and somebody who does not.
struct Story {
    discord: FakeDiscord,
    server: GuildHandle,
    lobby: ChannelHandle,
    mara: UserHandle,
    otto: UserHandle,
    model: ModelServer,
    home: Home,
    daemon: Daemon,
    /// The messages that were asked, and are to be answered once each.
    asked: Vec<u64>,
}

impl Story {
    fn new() -> Self {
        let (discord, model, home) = (FakeDiscord::start(), ModelServer::start(), home());
        discord.set_identify_interval(Duration::ZERO);
        model.set_summary_response(Response::text(["The minutes\n\nMara and the scribe kept the minutes."]));
        let server = discord.create_guild("home");
        let lobby = server.create_channel("lobby");
        let mara = server.add_member("mara", &[], MANAGE_CHANNELS | MANAGE_MESSAGES);
        let otto = server.add_member("otto", &[], 0);
        let daemon = Daemon::start_with(&home, &format!("{}{}", model.config_toml(), discord.config_toml()));
        Self { discord, server, lobby, mara, otto, model, home, daemon, asked: Vec::new() }
    }

    /// Somebody says something in `room`, and the model answers `reply`.
    #[track_caller]
    fn talk(&mut self, room: &ChannelHandle, text: &str, reply: &str) -> VisibleMessage {
        self.model.anthropic().queue_text([reply]);
        let asked = room.say(&self.mara, text);
        self.asked.push(asked);
        answer(room, asked, reply)
    }

    /// The same at the terminal.
    #[track_caller]
    fn talk_at_terminal(&self, text: &str, reply: &str) {
        self.model.anthropic().queue_text([reply]);
        let said = chorusctl(&self.home, ["--agent", "scribe", "send", text]).expect_success();
        assert!(said.contains(reply), "{said}");
    }

    /// What the model was sent last for an answer.
    fn sent(&self) -> String {
        let mut turns = self.model.requests().into_iter().rev().filter(|request| !request.body["tools"].is_null());
        turns.next().expect("a request").text
    }

    fn restart(mut self, meanwhile: impl FnOnce(&mut Self)) -> Self {
        assert!(self.daemon.terminate_in_place().success());
        self.discord.wait_disconnected();
        meanwhile(&mut self);
        self.daemon = Daemon::start(&self.home);
        self.discord.wait_connected();
        self
    }
}

/// Waits for the answer to a message.
#[track_caller]
fn answer(room: &ChannelHandle, asked: u64, reply: &str) -> VisibleMessage {
    let fits = |post: &&VisibleMessage| {
        post.reply_to == Some(asked) && post.is_own && post.content.contains(reply) && post.buttons.is_empty()
    };
    room.wait_for(reply, |messages| messages.iter().find(fits).cloned())
}

#[test]
fn an_agent_is_made_talks_works_rests_and_goes() {
    let story = Story::new();
    let room = it_is_made(&story);
    let mut story = it_talks_and_works(story, &room);
    story = it_is_used_from_both_sides(story, &room);
    story = it_was_away(story, &room);
    it_rests_and_comes_back(&mut story, &room);
    for asked in &story.asked {
        let answers = room.application_posts().iter().filter(|post| post.reply_to == Some(*asked)).count();
        assert_eq!(answers, 1, "{:#?}", room.messages());
    }
    it_goes(&story, &room);
    story.discord.assert_no_violations();
}

fn it_is_made(story: &Story) -> ChannelHandle {
    let made = [("name", "scribe"), ("system_prompt", "You keep the minutes. Be brief.")];
    let answer =
        story.mara.run_slash_command(&story.lobby, "agent init", &made).response_with("Created agent **scribe**");
    let room = story.server.wait_for_channel("scribe");
    assert!(answer.content.contains(&format!("<#{}>", room.id)), "{answer:?}");
    assert_eq!((room.category().as_deref(), &*room.topic()), (Some("Agents"), "You keep the minutes. Be brief."));
    let welcome = room.wait_for_post("**scribe** is ready");
    assert!(welcome.content.contains("You keep the minutes") && welcome.content.contains("`standard`"), "{welcome:?}");
    room
}

fn it_talks_and_works(mut story: Story, room: &ChannelHandle) -> Story {
    story.talk(room, "Good morning!", "Good morning, Mara.");
    assert!(story.sent().contains("You keep the minutes"));

    // A tool that somebody has to allow: the asker does, a stranger cannot.
    let command = "echo agreed > minutes.txt";
    let minutes = story.home.agent_dir("scribe").join("workspace/minutes.txt");
    story.model.anthropic().queue(Response::text(["I write it down."]).then_call(
        "c1",
        "bash",
        &json!({"command": command}),
    ));
    story.model.anthropic().queue_text(["It is written down."]);
    let asked = room.say(&story.mara, "Write down that we agreed.");
    story.asked.push(asked);
    let question = room.wait_for_post_with_button("Allow once");
    assert!(question.content.contains(command) && question.content.contains("<t:"), "{question:?}");
    let stranger = story.otto.press_button(&question, "Allow once").response();
    assert!(stranger.ephemeral && stranger.content.contains(". ") && !minutes.exists(), "{stranger:?}");
    assert!(story.mara.press_button(&question, "Allow once").response_with("Allowed").ephemeral);
    answer(room, asked, "It is written down.");
    assert_eq!(std::fs::read_to_string(&minutes).expect("what it wrote"), "agreed\n");
    let decided = room.wait_for("a decided question", |messages| {
        messages.iter().find(|message| message.id == question.id && message.buttons.is_empty()).cloned()
    });
    assert!(decided.content.contains(&format!("**Allowed** by <@{}>", story.mara.id)), "{decided:?}");
    story
}

fn it_is_used_from_both_sides(mut story: Story, room: &ChannelHandle) -> Story {
    let saved = story
        .mara
        .run_slash_command(room, "context save", &[("description", "the agreement")])
        .response_with("Saved as");
    assert!(!saved.ephemeral);
    for round in 0..3 {
        story.talk_at_terminal(&format!("terminal asks {round}"), &format!("terminal hears {round}"));
        assert!(story.sent().contains("Write down that we agreed."), "one conversation");
        story.talk(room, &format!("channel asks {round}"), &format!("channel hears {round}"));
        assert!(story.sent().contains(&format!("terminal hears {round}")), "one conversation");
    }
    let texts = story.daemon.client().message_texts("scribe");
    let said: Vec<&str> = texts.iter().map(String::as_str).filter(|text| text.ends_with(['0', '1', '2'])).collect();
    let due = |round| {
        ["terminal asks", "terminal hears", "channel asks", "channel hears"].map(|who| format!("{who} {round}"))
    };
    assert_eq!(said, (0..3).flat_map(due).collect::<Vec<_>>());
    assert!(
        !room.messages().iter().any(|message| message.content.contains("terminal hears")),
        "a channel shows what was said there"
    );
    story
}

/// What is said while the daemon is away is answered when it is back.
fn it_was_away(story: Story, room: &ChannelHandle) -> Story {
    let mut missed = 0;
    let mut story = story.restart(|story| {
        room.wait_for_post("Chorus is stopping.");
        story.model.anthropic().queue_text(["Here again."]);
        missed = room.say(&story.mara, "Are you there?");
        story.asked.push(missed);
    });
    answer(room, missed, "Here again.");
    story.talk(room, "Good.", "Indeed.");
    assert!(story.sent().contains("channel hears 2"), "the conversation went on");
    story
}

fn it_rests_and_comes_back(story: &mut Story, room: &ChannelHandle) {
    let live = story.daemon.client().message_texts("scribe");
    let idle = |value: &str| {
        let options = [("name", "scribe"), ("key", "idle_timeout"), ("value", value)];
        story.mara.run_slash_command(room, "agent config", &options).response_with("is now");
    };
    idle("1s");
    let notice = room.wait_for_post("Session saved: ");
    idle("30m");
    let session = story.daemon.client().history("scribe").remove(0);
    let summary = session.header.summary.expect("a summary");
    let due = format!(
        "Session saved: {}. Context cleared after 1 second of inactivity. Use /context restore {} to resume.",
        summary.trim_end_matches('.'),
        session.short_id
    );
    assert_eq!(notice.content, due);
    assert!(story.daemon.client().message_texts("scribe").is_empty());
    assert!(notice.buttons.is_empty(), "not everybody here may restore: {notice:?}");
    let restore = |who: &UserHandle| who.run_slash_command(room, "context restore", &[("session", "latest")]);
    let denied = restore(&story.otto).response_with("don't have permission");
    assert!(denied.ephemeral && story.daemon.client().message_texts("scribe").is_empty(), "{denied:?}");
    restore(&story.mara).response_with("Restored");
    assert_eq!(story.daemon.client().message_texts("scribe"), live);
    story.talk(room, "Where were we?", "At the agreement.");
    assert!(story.sent().contains("Write down that we agreed."));
}

fn it_goes(story: &Story, room: &ChannelHandle) {
    let asked = story
        .mara
        .run_slash_command(&story.lobby, "agent destroy", &[("name", "scribe")])
        .response_with("Delete agent");
    story.mara.press_button(&asked, "Delete").response_with("Agent **scribe** was deleted.");
    wait_until("its channel to go", DEADLINE, || (!room.exists()).then_some(()));
    assert!(story.daemon.client().call::<List>(&ListParams::default()).expect("agent.list").agents.is_empty());
    assert!(chorusctl(&story.home, ["trash", "list"]).expect_success().contains("scribe"));
}
