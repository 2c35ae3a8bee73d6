//! `/agent`.

use chorus_proto::methods::agent::{Config, ConfigParams, Destroy, DestroyParams, Init, InitParams, List, ListParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::Fault;
use chorus_tests::discord::permissions::MANAGE_CHANNELS;

use super::{CommandFixture, refused};

const GRANTS: &str = "[permission_grants]\nkeeper = [\"locked\"]\n";

#[test]
fn an_agent_is_made_and_listed() {
    let fixture = CommandFixture::with(GRANTS);
    let vera = fixture.server.add_member("vera", &["keeper"], MANAGE_CHANNELS);
    let made = vera.run_slash_command(
        &fixture.room,
        "agent init",
        &[("name", "poet"), ("system_prompt", "Rhyme."), ("permissions", "locked")],
    );
    let answer = made.response_with("Created agent **poet**");
    let room = fixture.server.wait_for_channel("poet");
    assert!(!answer.ephemeral && answer.content.contains(&format!("<#{}>", room.id)), "{answer:?}");
    let poet = fixture.client().agent_status("poet");
    assert_eq!(poet.permissions, "locked");
    assert_eq!(fixture.audit().iter().filter(|row| row.action.contains("agent.init")).count(), 1);

    refused(&vera.run_slash_command(&fixture.room, "agent init", &[("name", "Poet!")]), "name");
    refused(&vera.run_slash_command(&fixture.room, "agent init", &[("name", "poet")]), "agent poet already");
    let list = vera.run_slash_command(&fixture.room, "agent list", &[]).response_with("**poet**");
    assert!(list.ephemeral && list.content.contains("**scribe**") && list.content.contains("idle"), "{list:?}");
    // Without Manage Channels it is the channel's own.
    let own = fixture.otto.run_slash_command(&fixture.room, "agent list", &[]).response_with("**scribe**");
    assert!(!own.content.contains("poet"), "{own:?}");
    fixture.otto.run_slash_command(&fixture.hall, "agent list", &[]).response_with("No agents here");
}

#[test]
fn a_profile_is_given_by_who_may_grant_it_only() {
    let fixture = CommandFixture::with(GRANTS);
    let vera = fixture.server.add_member("vera", &["keeper"], MANAGE_CHANNELS);
    let init =
        |profile| vera.run_slash_command(&fixture.room, "agent init", &[("name", "poet"), ("permissions", profile)]);
    refused(&init("open"), "is not allowed to grant the profile `open`");
    assert_eq!(fixture.client().call::<List>(&ListParams::default()).expect("agent.list").agents.len(), 1);
    let config = |who: &chorus_tests::discord::UserHandle, value| {
        who.run_slash_command(
            &fixture.room,
            "agent config",
            &[("name", "scribe"), ("key", "permissions"), ("value", value)],
        )
    };
    refused(&config(&vera, "open"), "is not allowed to grant the profile `open`");
    refused(&config(&fixture.mara, "locked"), "is not allowed to grant the profile `locked`");
    assert_eq!(fixture.client().agent_status("scribe").permissions, "standard");
    config(&vera, "locked").response_with("`permissions` is now `locked`");
    // Back to the default is granting that.
    let reset = [("name", "scribe"), ("key", "permissions"), ("reset", "true")];
    refused(
        &vera.run_slash_command(&fixture.room, "agent config", &reset),
        "is not allowed to grant the profile `standard`",
    );
    assert_eq!(fixture.client().agent_status("scribe").permissions, "locked");
    let row = fixture.audit().into_iter().find(|row| row.action == "agent.config:permissions").expect("a row");
    assert_eq!((row.user, row.new.as_deref()), (format!("discord:{}", vera.id), Some("\"locked\"")));
}

#[test]
fn what_was_kept_of_an_agent_is_taken_up_at_the_terminal_only() {
    let fixture = CommandFixture::with(GRANTS);
    let (vera, mut client) = (fixture.server.add_member("vera", &["keeper"], MANAGE_CHANNELS), fixture.client());
    for (name, permissions) in [("free", "open"), ("bound", "locked")] {
        let params = InitParams { name: name.into(), permissions: Some(permissions.into()), ..Default::default() };
        client.call::<Init>(&params).expect("agent.init");
        let params = DestroyParams { name: name.into(), keep_files: true, purge: false };
        client.call::<Destroy>(&params).expect("agent.destroy");
    }
    let made = fixture.discord.requests_to("POST /guilds/*/channels").len();
    for name in ["free", "bound"] {
        let told = refused(&vera.run_slash_command(&fixture.room, "agent init", &[("name", name)]), "were kept");
        assert!(!told.content.contains("chorusctl"), "{told:?}");
        assert!(client.call::<List>(&ListParams::default()).expect("agent.list").agents.iter().all(|a| a.name != name));
    }
    assert_eq!(fixture.discord.requests_to("POST /guilds/*/channels").len(), made, "no channel was made for it");
    let back = InitParams { name: "bound".into(), ..Default::default() };
    assert!(client.call::<Init>(&back).expect("agent.init").revived);
}

#[test]
fn keys_are_shown_and_set_and_every_change_is_written_down() {
    let fixture = CommandFixture::new();
    let config = |more: &[(&str, &str)]| fixture.slash("agent config", &[&[("name", "scribe")], more].concat());
    let all = config(&[]).response_with("idle_timeout");
    assert!(all.ephemeral && all.content.contains("window_messages"), "{all:?}");
    config(&[("key", "window_messages")]).response_with("(default)");
    config(&[("key", "window_messages"), ("value", "20")]).response_with("`window_messages` is now `20`");
    config(&[("key", "window_messages"), ("reset", "true")]).response_with("It was `20` before");
    refused(&config(&[("key", "window_messages"), ("value", "many")]), "must be a whole number");
    config(&[("value", "many")]).response_with("`key` is missing");
    assert!(!all.content.contains("redact") && !all.content.contains("guild_id"), "{all:?}");
    config(&[("key", "name"), ("value", "clerk")]).response_with("`name` is now `clerk`");
    assert_eq!(fixture.client().agent_status("clerk").channel_id, Some(fixture.room.id.to_string()));
    let rows: Vec<String> = fixture.audit().into_iter().map(|row| row.action).collect();
    assert_eq!(rows, ["agent.config:window_messages", "agent.config:window_messages", "agent.config:name"]);
}

#[test]
fn an_agent_is_bound_to_a_channel_of_this_server_only() {
    let fixture = CommandFixture::new();
    let abroad = fixture.discord.create_guild("abroad");
    let (theirs, ours) = (abroad.create_channel("theirs"), fixture.server.create_channel("ours"));
    let bind =
        |value: &str| fixture.slash("agent config", &[("name", "scribe"), ("key", "channel_id"), ("value", value)]);
    for wrong in [theirs.id.to_string(), "12345".to_owned(), "nowhere".to_owned()] {
        refused(&bind(&wrong), "channel");
        assert_eq!(fixture.client().agent_status("scribe").channel_id, Some(fixture.room.id.to_string()), "{wrong}");
    }
    bind(&format!("<#{}>", ours.id)).response_with("is now");
    let scribe = fixture.client().agent_status("scribe");
    assert_eq!((scribe.channel_id, scribe.guild_id), (Some(ours.id.to_string()), Some(fixture.server.id.to_string())));
    fixture.discord.take_violations();
}

#[test]
fn a_name_that_is_another_agents_by_now_is_not_changed() {
    let fixture = CommandFixture::new();
    let lounge = fixture.server.create_channel("lounge");
    let mut client = fixture.client();
    fixture.discord.inject_fault("GET /channels/*", 1, Fault::Gate("looking"));
    let value = lounge.id.to_string();
    let set = fixture.slash("agent config", &[("name", "scribe"), ("key", "channel_id"), ("value", &value)]);
    fixture.discord.wait_for_gate("looking");
    let rename = ConfigParams { name: "scribe".into(), key: Some("name".into()), value: Some("clerk".into()) };
    client.call::<Config>(&rename).expect("agent.config");
    client.init("scribe");
    let before = client.agent_status("scribe").channel_id;
    fixture.discord.open_gate("looking");
    refused(&set, "now refers to another agent");
    assert_eq!(client.agent_status("scribe").channel_id, before);
    assert_eq!(client.agent_status("clerk").channel_id, Some(fixture.room.id.to_string()));
}
