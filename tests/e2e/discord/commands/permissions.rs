//! Who may do what: looked at by the daemon when it is done, and told to nobody else.

use chorus_proto::NewMessage;
use chorus_proto::Role;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::permissions::{MANAGE_CHANNELS, MANAGE_GUILD, MANAGE_MESSAGES};

use chorus_tests::discord::Fault;
use chorus_tests::{DEADLINE, wait_until};

use super::{Rig, refused};

type Given = &'static [(&'static str, &'static str)];

/// What changes something or shows what is not the channel's, with what it needs.
const GUARDED: [(&str, Given, u64); 15] = [
    ("agent init", &[("name", "poet")], MANAGE_CHANNELS),
    ("agent destroy", &[("name", "scribe")], MANAGE_CHANNELS),
    ("agent config", &[("name", "scribe")], MANAGE_CHANNELS),
    ("context save", &[], MANAGE_MESSAGES),
    ("context clear", &[], MANAGE_MESSAGES),
    ("context restore", &[("session", "latest")], MANAGE_MESSAGES),
    ("context resume", &[("session", "latest")], MANAGE_MESSAGES),
    ("context compact", &[], MANAGE_MESSAGES),
    ("context rewind", &[], MANAGE_MESSAGES),
    ("tasks stop", &[("id", "t1")], MANAGE_MESSAGES),
    ("settings model", &[], MANAGE_GUILD),
    ("settings permissions", &[], MANAGE_GUILD),
    ("settings idle", &[], MANAGE_GUILD),
    ("settings show", &[], MANAGE_GUILD),
    ("settings validate-keys", &[], MANAGE_GUILD),
];

#[test]
fn a_stranger_may_change_nothing_and_every_right_is_its_own() {
    let rig = Rig::new();
    rig.talk("scribe");
    rig.client().save("scribe", "as it was");
    let before = rig.client().message_texts("scribe");
    let all = MANAGE_CHANNELS | MANAGE_GUILD | MANAGE_MESSAGES;
    for (command, given, needed) in GUARDED {
        for may in [0, all & !needed] {
            rig.otto.grant_permissions(may);
            let refusal = rig.otto.run_slash_command(&rig.room, command, given);
            refused(&refusal, "you may not do that here");
            let deferred = refusal.wait_for_acknowledgement().0;
            assert_eq!((deferred, refusal.responses().len()), (5, 1), "{command}");
        }
    }
    assert_eq!(rig.client().message_texts("scribe"), before);
    assert_eq!((rig.client().history("scribe").len(), rig.audit().len()), (1, 0));
    let heard = rig.room.messages();
    assert!(!heard.iter().any(|message| !message.ephemeral && message.content.contains("may not")), "{heard:?}");
}

#[test]
fn another_agent_needs_manage_channels_and_one_of_another_server_is_not_there() {
    let rig = Rig::new();
    let (abroad, ours) = (rig.discord.create_guild("abroad"), rig.server.create_channel("ours"));
    let theirs = abroad.create_channel("spy");
    let boss = abroad.add_member("boss", &[], MANAGE_CHANNELS | MANAGE_MESSAGES);
    let guilds = format!("guilds = [\"{}\", \"{}\"]", rig.server.id, abroad.id);
    rig.home.write_config(&format!("{}{guilds}\n", rig.discord.config_toml()));
    let rig = rig.restart();
    boss.run_slash_command(&theirs, "ping", &[]).response_with("is there");
    let mut client = rig.client();
    for name in ["other", "spy", "nowhere"] {
        client.init(name);
        client.append_all(name, vec![NewMessage::text(Role::User, "a secret plan")]);
    }
    rig.bind("spy", &theirs);
    rig.bind("other", &ours);
    // One that lost its channel is still its server's, and one that never had any is of neither.
    for name in ["scribe", "nowhere"] {
        if name == "scribe" {
            rig.unbind(name);
        }
        refused(&boss.run_slash_command(&theirs, "context save", &[("agent", name)]), "here is no agent");
        refused(&boss.run_slash_command(&theirs, "agent destroy", &[("name", name)]), "here is no agent");
    }
    refused(&rig.slash("context history", &[("agent", "nowhere")]), "here is no agent");
    rig.slash("context history", &[("agent", "scribe")]).response_with("has no saved");
    rig.bind("scribe", &rig.room);
    rig.otto.grant_permissions(MANAGE_MESSAGES | MANAGE_GUILD);
    for command in ["context save", "context history", "context clear", "status", "usage", "approvals", "tasks list"] {
        for name in ["other", "spy", "nobody"] {
            let options = [("agent", name)];
            refused(&rig.otto.run_slash_command(&rig.room, command, &options), "you may not reach for another channel");
        }
        refused(&rig.slash(command, &[("agent", "spy")]), "here is no agent \"spy\" here");
        refused(&rig.slash(command, &[("agent", "nobody")]), "here is no agent \"nobody\" here");
    }
    rig.slash("context save", &[("agent", "other")]).response_with("Saved as");
    rig.slash("agent config", &[("name", "spy")]).response_with("here is no agent \"spy\" here");
    let list = rig.slash("agent list", &[]).response_with("**other**");
    assert!(!list.content.contains("spy"), "{list:?}");
}

#[test]
fn a_role_of_the_approvers_may_change_conversations() {
    let rig = Rig::with("");
    rig.talk("scribe");
    let rig = approvers(rig, "helpers");
    let vera = rig.server.add_member("vera", &["helpers"], 0);
    vera.run_slash_command(&rig.room, "context save", &[]).response_with("Saved as");
    // A role that only looks like it, by calling itself a number.
    let helpers = rig.server.find_or_create_role("helpers").to_string();
    let rig = approvers(rig, &helpers);
    vera.run_slash_command(&rig.room, "context rewind", &[]).response_with("dropped");
    let sly = rig.server.add_member("sly", &[&helpers], 0);
    refused(&sly.run_slash_command(&rig.room, "context save", &[]), "you may not do that here");
}

/// With these approvers from now on.
fn approvers(rig: Rig, role: &str) -> Rig {
    rig.home.write_config(&format!("{}approvers = [\"{role}\"]\n", rig.discord.config_toml()));
    rig.restart()
}

#[test]
fn in_a_direct_message_there_is_only_a_kind_word() {
    let rig = Rig::new();
    let direct = rig.discord.direct_channel(&rig.mara);
    let answer = rig.mara.run_slash_command(&direct, "context save", &[]);
    refused(&answer, "in servers only");
    assert_eq!(answer.wait_for_acknowledgement().0, 4);
}

#[test]
fn what_a_channel_grants_holds_for_its_conversation_and_for_no_agent() {
    let rig = Rig::new();
    rig.client().init("other");
    rig.talk("scribe");
    rig.room.grant_to_user(&rig.otto, MANAGE_CHANNELS | MANAGE_GUILD | MANAGE_MESSAGES);
    let guarded = GUARDED.iter().filter(|(_, _, needed)| *needed != MANAGE_MESSAGES);
    for (command, given, _) in guarded {
        refused(&rig.otto.run_slash_command(&rig.room, command, given), "you may not do that here");
    }
    refused(
        &rig.otto.run_slash_command(&rig.room, "context save", &[("agent", "other")]),
        "you may not reach for another",
    );
    let list = rig.otto.run_slash_command(&rig.room, "agent list", &[]).response_with("**scribe**");
    assert!(!list.content.contains("other"), "{list:?}");
    rig.otto.run_slash_command(&rig.room, "context save", &[]).response_with("Saved as");
}

#[test]
fn where_discord_does_not_say_which_roles_there_are_that_is_said() {
    let rig = Rig::new();
    for route in ["GET /guilds/*", "GET /guilds/*/roles"] {
        rig.discord.inject_fault(route, 1000, Fault::Status(500));
    }
    let rig = rig.restart();
    refused(&rig.slash("agent destroy", &[("name", "scribe")]), "Discord did not say which roles there are");
    rig.otto.run_slash_command(&rig.room, "status", &[]).response_with("scribe");
    rig.discord.clear_faults();
    wait_until("the roles to be known", DEADLINE, || {
        let answer = rig.slash("agent destroy", &[("name", "scribe")]).response();
        answer.content.contains("Take the agent").then_some(())
    });
}
