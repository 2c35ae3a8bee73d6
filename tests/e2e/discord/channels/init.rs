//! `agent init` and `agent destroy` with Discord.

use chorus_proto::ErrorKind;
use chorus_proto::methods::agent::{Destroy, DestroyParams, DestroyResult, Init, InitParams};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::discord::{Fault, permissions};
use chorus_tests::{Daemon, ctl::chorusctl};

use super::{ChannelFixture, told};
use crate::home;

fn destroy(fixture: &ChannelFixture, name: &str) -> DestroyResult {
    fixture
        .client()
        .call::<Destroy>(&DestroyParams { name: name.into(), ..DestroyParams::default() })
        .expect("destroyed")
}

#[test]
fn an_agent_gets_a_channel_in_the_category_with_topic_and_welcome() {
    let fixture = ChannelFixture::new();
    let room = fixture.agent("maps");
    assert_eq!((room.name(), room.category().as_deref()), ("maps".into(), Some("Agents")));
    assert_eq!(room.topic(), "You are maps.");
    let welcome = room.wait_for_post("**maps** is ready").content;
    assert!(welcome.contains("> You are maps.") && welcome.contains("`standard`"), "{welcome}");
    assert_eq!(fixture.said("maps", "channel_id"), room.id.to_string());
    // The next one stands in the same category, from the command line, too.
    let said = chorusctl(&fixture.home, ["agent", "init", "tides", "--system-prompt", "@@x"]).expect_success();
    assert!(said.contains("created tides"), "{said}");
    assert_eq!(fixture.guild.wait_for_channel("tides").category().as_deref(), Some("Agents"));
    assert_eq!(fixture.discord.requests_to("POST /guilds/*/channels").len(), 3, "one category, two channels");
    // One without a prompt of its own has the template's.
    fixture.client().init("plain");
    assert!(
        fixture
            .guild
            .wait_for_channel("plain")
            .wait_for_post("is ready")
            .content
            .contains("> You are a general-purpose agent")
    );
}

#[test]
fn a_long_prompt_is_shortened_and_secrets_stay_out() {
    let fixture = ChannelFixture::new();
    let secret =
        "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKl-wAAAAAA";
    let prompt = format!("Use {secret}. {}", "You keep maps of everything. ".repeat(200));
    let params = InitParams { name: "maps".into(), system_prompt: Some(prompt), ..InitParams::default() };
    fixture.client().call::<Init>(&params).expect("agent.init");
    let room = fixture.guild.wait_for_channel("maps");
    let (topic, welcome) = (room.topic(), room.wait_for_post("is ready").content);
    assert!(topic.chars().count() <= 1024 && topic.ends_with('…'), "{topic}");
    for text in [topic, welcome] {
        assert!(!text.contains("AbCdEf") && text.contains("[redacted:"), "{text}");
    }
}

#[test]
fn what_fails_leaves_neither_channel_nor_agent() {
    let fixture = ChannelFixture::new();
    // A directory that cannot be revived: the channel is made by then.
    let dir = fixture.home.agent_dir("maps");
    std::fs::create_dir_all(&dir).expect("a directory");
    std::fs::write(dir.join("agent.json"), "no JSON").expect("a file");
    assert_eq!(expect_error_kind(fixture.init("maps")), ErrorKind::AlreadyExists);
    assert_eq!(fixture.discord.requests_to("DELETE /channels/*").len(), 1);
    assert!(fixture.guild.text_channels().is_empty());
    // Discord refuses: there is no agent.
    fixture.guild.set_application_permissions(permissions::EVERYONE_DEFAULT);
    let refused = told(fixture.init("tides"));
    assert!(refused.contains("docs/DISCORD.md"), "{refused}");
    assert!(!fixture.home.agent_dir("tides").exists() && fixture.guild.text_channels().is_empty());
    fixture.discord.take_violations();
}

#[test]
fn a_full_category_has_another_beside_it_and_one_that_fills_up_meanwhile_too() {
    let fixture = ChannelFixture::new();
    let full = fixture.guild.create_category("agents");
    for number in 0..50 {
        fixture.guild.create_channel_in(&format!("x{number}"), full);
    }
    assert_eq!(fixture.agent("maps").category().as_deref(), Some("Agents 2"));
    // Somebody fills that one up between looking and making.
    fixture.discord.inject_fault("POST /guilds/*/channels", 1, Fault::Gate("making"));
    let making = std::thread::scope(|scope| {
        let making = scope.spawn(|| fixture.agent("tides"));
        fixture.discord.wait_for_gate("making");
        let second = fixture.guild.categories().into_iter().find(|(_, name)| name == "Agents 2").expect("a category").0;
        for number in 0..49 {
            fixture.guild.create_channel_in(&format!("y{number}"), second);
        }
        fixture.discord.open_gate("making");
        making.join().expect("the agent")
    });
    assert_eq!(making.category().as_deref(), Some("Agents 3"));
}

#[test]
fn many_at_once_share_one_category() {
    let fixture = ChannelFixture::new();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let fixture = &fixture;
            scope.spawn(move || drop(fixture.agent(&format!("a{number}"))));
        }
    });
    let rooms = fixture.guild.text_channels();
    assert_eq!(rooms.len(), 8);
    assert!(rooms.iter().all(|room| room.category().as_deref() == Some("Agents")));
    assert_eq!(fixture.guild.categories().len(), 1);
    // The same name twice: one is made, and one channel stays.
    let both = std::thread::scope(|scope| {
        let one = scope.spawn(|| fixture.init("twin").is_ok());
        [fixture.init("twin").is_ok(), one.join().expect("the other")]
    });
    assert_eq!(both.iter().filter(|made| **made).count(), 1);
    assert_eq!(fixture.guild.text_channels().iter().filter(|room| room.name() == "twin").count(), 1);
}

#[test]
fn where_it_is_open_what_is_meant_there_is_no_channel_and_it_is_said() {
    let mut fixture = ChannelFixture::new();
    fixture.stop();
    fixture.discord.forget_sessions();
    let other = fixture.discord.create_guild("other");
    let guilds = format!("guilds = [\"{}\", \"{}\"]", fixture.guild.id, other.id);
    fixture.home.write_config(&format!(
        "{}\n{}{guilds}\n",
        fixture.server.config_toml(),
        fixture.discord.config_toml()
    ));
    fixture.start();
    let made = fixture.init("maps").expect("agent.init");
    assert!(made.agent.channel_id.is_none());
    assert!(made.warnings[0].contains("2 servers") && made.warnings[0].contains("channel_id"), "{:?}", made.warnings);
    // Not connected: the agent is made all the same.
    fixture.discord.set_token_revoked(true);
    fixture.away();
    let made = fixture.init("tides").expect("agent.init");
    assert!(made.warnings[0].contains("not connected"), "{:?}", made.warnings);
    let said = chorusctl(&fixture.home, ["agent", "init", "plain"]);
    assert!(said.stderr.contains("not connected"));
    fixture.discord.take_violations();
    // Without a token there is nothing to say.
    let home = home();
    let daemon = Daemon::start(&home);
    let made = daemon.client().call::<Init>(&InitParams { name: "maps".into(), ..InitParams::default() });
    assert_eq!(made.expect("agent.init").warnings, Vec::<String>::new());
}

#[test]
fn destroy_deletes_the_channel_that_was_made_and_leaves_one_that_was_bound() {
    let fixture = ChannelFixture::new();
    let (made, bound) = (fixture.agent("maps"), fixture.guild.create_channel("lounge"));
    fixture.client().init("tides");
    let tides = fixture.guild.wait_for_channel("tides");
    fixture.set("tides", "channel_id", bound.id.to_string()).expect("bound");
    let gone = destroy(&fixture, "maps");
    assert_eq!((gone.warnings, gone.agent.channel_id, made.exists()), (Vec::new(), None, false));
    let gone = destroy(&fixture, "tides");
    assert_eq!((gone.warnings, bound.exists(), tides.exists()), (Vec::new(), true, true));
    // What was bound is free for another.
    fixture.client().init("third");
    fixture.set("third", "channel_id", bound.id.to_string()).expect("bound");
    // Out of the trash an agent comes without the channel that is gone.
    chorusctl(&fixture.home, ["trash", "restore", "maps"]).expect_success();
    assert!(fixture.said("maps", "channel_id").is_null());
}

#[test]
fn a_channel_that_cannot_be_deleted_stops_no_destroy() {
    let fixture = ChannelFixture::new();
    let room = fixture.agent("maps");
    fixture.discord.inject_fault("DELETE /channels/*", 10, Fault::Refuse(403, 50_013, "Missing Permissions"));
    let gone = destroy(&fixture, "maps");
    assert!(gone.warnings[0].contains("was not deleted"), "{:?}", gone.warnings);
    assert!(room.exists() && !fixture.home.agent_dir("maps").exists());
    // One that is gone already is no trouble.
    fixture.discord.clear_faults();
    let room = fixture.agent("maps");
    fixture.discord.inject_fault("DELETE /channels/*", 1, Fault::Refuse(404, 10_003, "Unknown Channel"));
    assert_eq!(destroy(&fixture, "maps").warnings, Vec::<String>::new());
    drop(room);
}

#[test]
fn a_kept_directory_comes_back_with_a_channel() {
    let fixture = ChannelFixture::new();
    let (made, bound) = (fixture.agent("maps"), fixture.guild.create_channel("lounge"));
    let keep = |name: &str| {
        let params = DestroyParams { name: name.into(), keep_files: true, ..DestroyParams::default() };
        fixture.client().call::<Destroy>(&params).expect("destroyed");
    };
    keep("maps");
    assert!(!made.exists() && fixture.said("maps", "channel_id").is_null());
    let again = fixture.agent("maps");
    assert_ne!(again.id, made.id);
    // A bound one is taken up again, and hears each time what becomes of it.
    fixture.set("maps", "channel_id", bound.id.to_string()).expect("bound");
    keep("maps");
    assert_eq!(fixture.agent("maps").id, bound.id);
    let told = bound.wait_for("a second welcome", |messages| (messages.len() == 3).then(|| messages.to_vec()));
    for (post, due) in told.iter().zip(["is ready", "was deleted", "is ready"]) {
        assert!(post.content.contains(due), "{told:#?}");
    }
    assert!(bound.exists());
}

#[test]
fn a_rename_renames_a_channel_that_was_made_and_no_other() {
    let fixture = ChannelFixture::new();
    let (made, bound) = (fixture.agent("maps"), fixture.guild.create_channel("lounge"));
    fixture.set("maps", "name", "atlas").expect("renamed");
    assert_eq!(fixture.guild.wait_for_channel("atlas").id, made.id);
    fixture.set("atlas", "channel_id", bound.id.to_string()).expect("bound");
    fixture.set("atlas", "name", "globe").expect("renamed");
    fixture.agent("last");
    assert_eq!((bound.name(), made.name()), ("lounge".into(), "atlas".into()));
    assert_eq!(fixture.discord.requests_to("PATCH /channels/*").len(), 1);
}

#[test]
fn a_discord_that_hangs_holds_up_no_other_agent() {
    let fixture = ChannelFixture::new();
    fixture.client().init("calm");
    fixture.discord.inject_fault("POST /guilds/*/channels", 1, Fault::Gate("hung"));
    std::thread::scope(|scope| {
        let making = scope.spawn(|| fixture.agent("maps"));
        fixture.discord.wait_for_gate("hung");
        fixture.set("calm", "window_messages", 20).expect("agents can be changed meanwhile");
        fixture.discord.open_gate("hung");
        making.join().expect("the agent");
    });
    fixture.discord.assert_no_violations();
}
