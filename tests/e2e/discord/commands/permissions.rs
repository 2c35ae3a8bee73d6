//! Who may do what: looked at by the daemon when it is done, and told to nobody else.

use chorus_proto::NewMessage;
use chorus_proto::Role;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::permissions::{MANAGE_CHANNELS, MANAGE_GUILD, MANAGE_MESSAGES};

use chorus_tests::discord::Fault;
use chorus_tests::{DEADLINE, wait_until};

use super::{CommandFixture, refused};

type Given = &'static [(&'static str, &'static str)];

/// What changes something or shows what is not the channel's, with what it needs.
const GUARDED: [(&str, Given, u64); 17] = [
    ("agent init", &[("name", "poet")], MANAGE_CHANNELS),
    ("agent destroy", &[("name", "scribe")], MANAGE_CHANNELS),
    ("agent config", &[("name", "scribe")], MANAGE_CHANNELS),
    ("context save", &[], MANAGE_MESSAGES),
    ("context clear", &[], MANAGE_MESSAGES),
    ("context restore", &[("session", "latest")], MANAGE_MESSAGES),
    ("context resume", &[("session", "latest")], MANAGE_MESSAGES),
    ("context compact", &[], MANAGE_MESSAGES),
    ("context rewind", &[], MANAGE_MESSAGES),
    ("undo", &[], MANAGE_MESSAGES),
    ("pin", &[("text", "x")], MANAGE_MESSAGES),
    ("tasks stop", &[("id", "t1")], MANAGE_MESSAGES),
    ("settings model", &[], MANAGE_GUILD),
    ("settings permissions", &[], MANAGE_GUILD),
    ("settings idle", &[], MANAGE_GUILD),
    ("settings show", &[], MANAGE_GUILD),
    ("settings validate-keys", &[], MANAGE_GUILD),
];

#[test]
fn a_stranger_may_change_nothing_and_every_right_is_its_own() {
    let fixture = CommandFixture::new();
    fixture.talk("scribe");
    fixture.client().save("scribe", "as it was");
    let before = fixture.client().message_texts("scribe");
    let all = MANAGE_CHANNELS | MANAGE_GUILD | MANAGE_MESSAGES;
    for (command, given, needed) in GUARDED {
        for may in [0, all & !needed] {
            fixture.otto.grant_permissions(may);
            let refusal = fixture.otto.run_slash_command(&fixture.room, command, given);
            refused(&refusal, "You don't have permission");
            let deferred = refusal.wait_for_acknowledgement().0;
            assert_eq!((deferred, refusal.responses().len()), (5, 1), "{command}");
        }
    }
    assert_eq!(fixture.client().message_texts("scribe"), before);
    assert_eq!((fixture.client().history("scribe").len(), fixture.audit().len()), (1, 0));
    let heard = fixture.room.messages();
    assert!(
        !heard.iter().any(|message| !message.ephemeral && message.content.contains("don't have permission")),
        "{heard:?}"
    );
}

#[test]
fn another_agent_needs_manage_channels_and_one_of_another_server_is_not_there() {
    let fixture = CommandFixture::new();
    let (abroad, ours) = (fixture.discord.create_guild("abroad"), fixture.server.create_channel("ours"));
    let theirs = abroad.create_channel("spy");
    let boss = abroad.add_member("boss", &[], MANAGE_CHANNELS | MANAGE_MESSAGES);
    let guilds = format!("guilds = [\"{}\", \"{}\"]", fixture.server.id, abroad.id);
    fixture.home.write_config(&format!("{}{guilds}\n", fixture.discord.config_toml()));
    let fixture = fixture.restart();
    boss.run_slash_command(&theirs, "ping", &[]).response_with("is online");
    let mut client = fixture.client();
    for name in ["other", "spy", "nowhere"] {
        client.init(name);
        client.append_all(name, vec![NewMessage::text(Role::User, "a secret plan")]);
    }
    fixture.bind("spy", &theirs);
    fixture.bind("other", &ours);
    // One that lost its channel is still its server's, and one that never had any is of neither.
    for name in ["scribe", "nowhere"] {
        if name == "scribe" {
            fixture.unbind(name);
        }
        refused(&boss.run_slash_command(&theirs, "context save", &[("agent", name)]), "No agent");
        refused(&boss.run_slash_command(&theirs, "agent destroy", &[("name", name)]), "No agent");
    }
    refused(&fixture.slash("context history", &[("agent", "nowhere")]), "No agent");
    fixture.slash("context history", &[("agent", "scribe")]).response_with("has no saved");
    fixture.bind("scribe", &fixture.room);
    fixture.otto.grant_permissions(MANAGE_MESSAGES | MANAGE_GUILD);
    for command in ["context save", "context history", "context clear", "status", "usage", "approvals", "tasks list"] {
        for name in ["other", "spy", "nobody"] {
            let options = [("agent", name)];
            refused(&fixture.otto.run_slash_command(&fixture.room, command, &options), "another channel's agent");
        }
        refused(&fixture.slash(command, &[("agent", "spy")]), "No agent \"spy\" in this server");
        refused(&fixture.slash(command, &[("agent", "nobody")]), "No agent \"nobody\" in this server");
    }
    fixture.slash("context save", &[("agent", "other")]).response_with("Saved as");
    fixture.slash("agent config", &[("name", "spy")]).response_with("No agent \"spy\" in this server");
    let list = fixture.slash("agent list", &[]).response_with("**other**");
    assert!(!list.content.contains("spy"), "{list:?}");
}

#[test]
fn a_role_of_the_approvers_may_change_conversations() {
    let fixture = CommandFixture::with("");
    fixture.talk("scribe");
    let fixture = approvers(fixture, "helpers");
    let vera = fixture.server.add_member("vera", &["helpers"], 0);
    vera.run_slash_command(&fixture.room, "context save", &[]).response_with("Saved as");
    // A role that only looks like it, by calling itself a number.
    let helpers = fixture.server.find_or_create_role("helpers").to_string();
    let fixture = approvers(fixture, &helpers);
    vera.run_slash_command(&fixture.room, "context rewind", &[]).response_with("Removed");
    let sly = fixture.server.add_member("sly", &[&helpers], 0);
    refused(&sly.run_slash_command(&fixture.room, "context save", &[]), "You don't have permission");
}

/// With these approvers from now on.
fn approvers(fixture: CommandFixture, role: &str) -> CommandFixture {
    fixture.home.write_config(&format!("{}approvers = [\"{role}\"]\n", fixture.discord.config_toml()));
    fixture.restart()
}

#[test]
fn in_a_direct_message_there_is_only_a_kind_word() {
    let fixture = CommandFixture::new();
    let direct = fixture.discord.direct_channel(&fixture.mara);
    let answer = fixture.mara.run_slash_command(&direct, "context save", &[]);
    refused(&answer, "only in servers");
    assert_eq!(answer.wait_for_acknowledgement().0, 4);
}

#[test]
fn what_a_channel_grants_holds_for_its_conversation_and_for_no_agent() {
    let fixture = CommandFixture::new();
    fixture.client().init("other");
    fixture.talk("scribe");
    fixture.room.grant_to_user(&fixture.otto, MANAGE_CHANNELS | MANAGE_GUILD | MANAGE_MESSAGES);
    let guarded = GUARDED.iter().filter(|(_, _, needed)| *needed != MANAGE_MESSAGES);
    for (command, given, _) in guarded {
        refused(&fixture.otto.run_slash_command(&fixture.room, command, given), "You don't have permission");
    }
    refused(
        &fixture.otto.run_slash_command(&fixture.room, "context save", &[("agent", "other")]),
        "another channel's agent",
    );
    let list = fixture.otto.run_slash_command(&fixture.room, "agent list", &[]).response_with("**scribe**");
    assert!(!list.content.contains("other"), "{list:?}");
    fixture.otto.run_slash_command(&fixture.room, "context save", &[]).response_with("Saved as");
}

#[test]
fn where_discord_does_not_say_which_roles_there_are_that_is_said() {
    let fixture = CommandFixture::new();
    for route in ["GET /guilds/*", "GET /guilds/*/roles"] {
        fixture.discord.inject_fault(route, 1000, Fault::Status(500));
    }
    let fixture = fixture.restart();
    refused(&fixture.slash("agent destroy", &[("name", "scribe")]), "Discord did not return the roles of this server");
    fixture.otto.run_slash_command(&fixture.room, "status", &[]).response_with("scribe");
    fixture.discord.clear_faults();
    wait_until("the roles to be known", DEADLINE, || {
        let answer = fixture.slash("agent destroy", &[("name", "scribe")]).response();
        answer.content.contains("Delete agent").then_some(())
    });
}
