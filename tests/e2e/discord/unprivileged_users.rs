//! Somebody without any right: may talk to the agent of a channel and read about it, and nothing else, by whatever command or button.

use chorus_proto::methods::agent::{Show, ShowParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::discord::permissions::{MANAGE_CHANNELS, MANAGE_GUILD, MANAGE_MESSAGES};
use chorus_tests::discord::{ChannelHandle, FakeDiscord, GuildHandle, Interaction, UserHandle};
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{Daemon, Home};
use serde_json::{Value, json};

use crate::home;

/// What reads about the agent of the channel. Every other command there is, and every one to come, is to be refused.
const READS: [&str; 19] = [
    "help",
    "cancel",
    "agent list",
    "context history",
    "context search",
    "conversation list",
    "session list",
    "memory list",
    "file",
    "permissions show",
    "permissions check",
    "schedule list",
    "tasks list",
    "tasks show",
    "status",
    "models",
    "approvals",
    "usage",
    "ping",
];

/// `scribe` has a room and a conversation of mara's; `vault` has one of its own that nobody here should reach.
struct TwoAgentFixture {
    discord: FakeDiscord,
    server: GuildHandle,
    hall: ChannelHandle,
    room: ChannelHandle,
    mara: UserHandle,
    otto: UserHandle,
    model: ModelServer,
    home: Home,
    daemon: Daemon,
}

impl TwoAgentFixture {
    fn new() -> Self {
        let (discord, model, home) = (FakeDiscord::start(), ModelServer::start(), home());
        let server = discord.create_guild("home");
        let hall = server.create_channel("hall");
        let mara = server.add_member("mara", &["keepers"], MANAGE_CHANNELS | MANAGE_MESSAGES | MANAGE_GUILD);
        let otto = server.add_member("otto", &["guests"], 0);
        let config = format!("{}{}approvers = [\"keepers\"]\n", model.config_toml(), discord.config_toml());
        let daemon = Daemon::start_with(&home, &config);
        mara.run_slash_command(&hall, "ping", &[]).response_with("is online");
        let mut client = daemon.client();
        for name in ["scribe", "vault"] {
            client.init(name);
            client.append(name, &format!("What {name} was told."));
            client.save(name, "as it was");
        }
        let room = server.wait_for_channel("scribe");
        Self { discord, server, hall, room, mara, otto, model, home, daemon }
    }

    /// All that somebody could have changed.
    fn standing(&self) -> Value {
        let mut client = self.daemon.client();
        let agents = ["scribe", "vault"].map(|name| {
            let shown = client.call::<Show>(&ShowParams { name: Some(name.into()) }).expect("agent.show");
            let agent = shown.agent;
            let (texts, sessions) = (client.message_texts(name), client.history(name).len());
            json!([agent.name, agent.model, agent.permissions, agent.channel_id, texts, sessions])
        });
        let settings = chorusctl(&self.home, ["--json", "settings", "show"]).expect_json();
        let open = chorusctl(&self.home, ["--json", "approvals"]).expect_json()["approvals"].clone();
        let tasks = chorusctl(&self.home, ["--json", "--agent", "scribe", "tasks"]).expect_json();
        let trash = chorusctl(&self.home, ["--json", "trash", "list"]).expect_json();
        let rooms: Vec<String> = self.server.text_channels().iter().map(ChannelHandle::name).collect();
        json!({"agents": agents, "settings": settings, "open": open, "tasks": tasks, "trash": trash, "rooms": rooms})
    }

    /// Every command that is registered, with something for each option that must be given.
    fn commands(&self) -> Vec<(String, Vec<(String, String)>)> {
        let mut found = Vec::new();
        for command in self.server.commands() {
            let name = command["name"].as_str().expect("a name");
            let options = command["options"].as_array().cloned().unwrap_or_default();
            let subs: Vec<&Value> = options.iter().filter(|option| option["type"] == 1).collect();
            if subs.is_empty() {
                found.push((name.to_owned(), given(&options)));
            }
            for sub in subs {
                let inside = sub["options"].as_array().cloned().unwrap_or_default();
                found.push((format!("{name} {}", sub["name"].as_str().expect("a name")), given(&inside)));
            }
        }
        found
    }
}

fn given(options: &[Value]) -> Vec<(String, String)> {
    let due = options.iter().filter(|option| option["required"] == true);
    due.map(|option| {
        let name = option["name"].as_str().expect("a name").to_owned();
        let value = match &*name {
            "session" => "latest",
            "id" => "t1",
            "number" => "1",
            _ => "scribe",
        };
        (name, value.to_owned())
    })
    .collect()
}

fn slash(person: &UserHandle, room: &ChannelHandle, command: &str, given: &[(String, String)]) -> Interaction {
    let given: Vec<(&str, &str)> = given.iter().map(|(name, value)| (&**name, &**value)).collect();
    person.run_slash_command(room, command, &given)
}

/// Refused to them alone, with a hint behind the reason, once.
#[track_caller]
fn refused(what: &str, interaction: &Interaction) {
    let answer = interaction.response();
    assert!(answer.ephemeral && answer.content.contains(". "), "{what}: {answer:?}");
    assert_eq!(interaction.responses().len(), 1, "{what}");
}

#[test]
fn every_command_but_those_that_read_is_refused() {
    let fixture = TwoAgentFixture::new();
    let before = fixture.standing();
    let commands = fixture.commands();
    assert!(commands.len() >= 24, "{commands:?}");
    for (command, given) in &commands {
        let asked = slash(&fixture.otto, &fixture.room, command, given);
        if !READS.contains(&&**command) {
            refused(command, &asked);
            assert!(asked.response().content.contains("don't have permission"), "{command}: {:?}", asked.response());
            continue;
        }
        let answer = asked.response();
        assert!(answer.ephemeral && !answer.content.contains("vault"), "{command}: {answer:?}");
        // Where it can be about another agent, it cannot for them.
        let named = |name: &str| {
            let mut given = given.clone();
            given.push(("agent".to_owned(), name.to_owned()));
            given
        };
        if takes_agent(&fixture, command) {
            refused(command, &slash(&fixture.otto, &fixture.room, command, &named("vault")));
        }
    }
    // Nor where no agent is.
    for (command, given) in commands.iter().filter(|(command, _)| !READS.contains(&&**command)) {
        refused(command, &slash(&fixture.otto, &fixture.hall, command, given));
    }
    assert_eq!(fixture.standing(), before);
    let offered = fixture.otto.autocomplete(&fixture.room, "context save", &[("agent", "")]);
    assert!(!offered.iter().any(|(name, _)| name.contains("vault")), "{offered:?}");
    let said = fixture.room.messages();
    assert!(
        !said.iter().any(|message| message.content.contains("don't have permission")),
        "told to nobody else: {said:?}"
    );
}

fn takes_agent(fixture: &TwoAgentFixture, command: &str) -> bool {
    let (name, sub) = command.split_once(' ').unwrap_or((command, ""));
    let commands = fixture.server.commands();
    let level = commands.iter().find(|known| known["name"] == name).expect("a command");
    let inside =
        level["options"].as_array().into_iter().flatten().find(|option| option["name"] == sub).unwrap_or(level);
    inside["options"].as_array().into_iter().flatten().any(|option| option["name"] == "agent")
}

#[test]
fn every_button_of_others_is_refused_also_a_forged_one() {
    let fixture = TwoAgentFixture::new();
    let hidden = fixture.daemon.client().history("vault").remove(0).header.id;
    let own = fixture.daemon.client().history("scribe").remove(0).header.id;
    let hidden_agent = fixture.daemon.client().agent_status("vault").id;
    // A question of mara's turn, and the button that stops it.
    fixture.model.anthropic().queue(Response::text(["I try."]).then_call(
        "c1",
        "bash",
        &json!({"command": "echo x > made.txt"}),
    ));
    fixture.model.anthropic().queue_text(["Tried."]);
    let asked = fixture.room.say(&fixture.mara, "make a file");
    let question = fixture.room.wait_for_post_with_button("Allow once");
    let growing = fixture.room.wait_for_post_with_button("Stop");
    let history = fixture.mara.run_slash_command(&fixture.room, "context history", &[]).response();
    let clear = fixture.mara.run_slash_command(&fixture.room, "context clear", &[]).response_with("Clear");
    let destroy = fixture
        .mara
        .run_slash_command(&fixture.hall, "agent destroy", &[("name", "scribe")])
        .response_with("Delete agent");
    let before = fixture.standing();

    let mut pressed: Vec<(u64, String)> = Vec::new();
    for message in [&question, &growing, &history, &clear, &destroy] {
        let shown = message.buttons.iter().filter(|button| !button.custom_id.starts_with("history:"));
        pressed.extend(shown.map(|button| (message.id, button.custom_id.clone())));
    }
    assert!(pressed.len() >= 8, "{pressed:?}");
    pressed.push((growing.id, format!("restore:{own}")));
    pressed.push((growing.id, format!("restore:{hidden}")));
    pressed.push((growing.id, format!("history:{hidden_agent}:1")));
    for (message, button) in &pressed {
        refused(button, &fixture.otto.press_stale_button(&fixture.room, *message, button));
    }
    assert_eq!(fixture.standing(), before);
    let made = fixture.home.agent_dir("scribe").join("workspace/made.txt");
    assert!(!made.exists());

    // Who may presses them all the same.
    fixture.mara.press_button(&question, "No").response_with("Denied");
    fixture.room.wait_for("the answer", |all| {
        all.iter().find(|post| post.reply_to == Some(asked) && post.content.contains("Tried.")).cloned()
    });
    assert!(!made.exists());
}

#[test]
fn who_only_talks_is_answered_and_grants_nothing_for_good() {
    let fixture = TwoAgentFixture::new();
    fixture.model.anthropic().queue_text(["Hello, Otto."]);
    let asked = fixture.room.say(&fixture.otto, "hello");
    fixture.room.wait_for("an answer", |all| all.iter().find(|post| post.reply_to == Some(asked)).cloned());
    // Where no agent is, nobody listens.
    fixture.hall.say(&fixture.otto, "hello");
    let before = fixture.standing();
    fixture.model.anthropic().queue(Response::text(["I try."]).then_call(
        "c1",
        "bash",
        &json!({"command": "echo x > made.txt"}),
    ));
    fixture.model.anthropic().queue_text(["Tried."]);
    let asked = fixture.room.say(&fixture.otto, "make a file, and always may");
    let question = fixture.room.wait_for_post_with_button("No");
    for button in question.buttons.iter().filter(|button| button.label.ends_with(" (approvers)")) {
        refused(&button.label, &fixture.otto.press_button(&question, &button.label));
    }
    fixture.otto.press_button(&question, "No").response_with("Denied");
    fixture.room.wait_for("an answer", |all| {
        all.iter().find(|post| post.reply_to == Some(asked) && post.content.contains("Tried.")).cloned()
    });
    let after = fixture.standing();
    assert_eq!((&after["settings"], &after["rooms"]), (&before["settings"], &before["rooms"]));
    assert_eq!(fixture.daemon.client().agent_status("scribe").permissions, json!("standard"));
    assert_eq!(fixture.hall.application_posts().len(), 0);
    fixture.discord.assert_no_violations();
}
