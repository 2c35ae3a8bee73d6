//! `/settings`.

use chorus_tests::discord::permissions::{ADMINISTRATOR, MANAGE_CHANNELS, MANAGE_GUILD};

use super::{CommandFixture, refused};

const CONFIG: &str = "[permission_grants]\nkeeper = [\"locked\"]\n\
    [providers.local]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9\"\n";

#[test]
fn settings_are_shown_set_and_taken_back() {
    let fixture = CommandFixture::with(CONFIG);
    let vera = fixture.server.add_member("vera", &["keeper"], MANAGE_GUILD);
    let slash = |command: &str, options: &[(&str, &str)]| {
        vera.run_slash_command(&fixture.room, &format!("settings {command}"), options)
    };
    let shown = slash("idle", &[]).response_with("`defaults.idle_timeout` is `30m`");
    assert!(shown.ephemeral);
    slash("idle", &[("timeout", "2h")]).response_with("is now `2h`");
    slash("idle", &[("reset", "true")]).response_with("is now `30m`. It was `2h` before.");
    refused(&slash("idle", &[("timeout", "soon")]), "idle_timeout");
    slash("model", &[("model", "local/small")]).response_with("`default_model` is now `local/small`");
    refused(&slash("model", &[("model", "nope/x")]), "provider \"nope\"");
    let of_agent = |value| {
        vera.run_slash_command(&fixture.room, "agent config", &[("name", "scribe"), ("key", "model"), ("value", value)])
    };
    vera.grant_permissions(MANAGE_GUILD | MANAGE_CHANNELS);
    refused(&of_agent("nope/x"), "provider \"nope\"");
    slash("permissions", &[("profile", "locked")]).response_with("is now `locked`");
    refused(&slash("permissions", &[("profile", "open")]), "is not allowed to grant the profile `open`");
    refused(&slash("permissions", &[("reset", "true")]), "is not allowed to grant the profile `standard`");
    let all = slash("show", &[]).response_with("defaults.idle_timeout = 30m (default)");
    assert!(all.content.contains("defaults.permissions = locked (settings)"), "{all:?}");
    assert!(!all.content.contains("token_file") && !all.content.contains("base_url"), "{all:?}");
    let keys = slash("validate-keys", &[]).response_with("**local**");
    assert!(keys.content.contains('✗'), "{keys:?}");

    let rows: Vec<(String, String)> = fixture.audit().into_iter().map(|row| (row.action, row.user)).collect();
    let who = format!("discord:{}", vera.id);
    let due = ["idle_timeout", "idle_timeout", "default_model", "permissions"];
    assert_eq!(rows, due.map(|name| (format!("settings:{name}"), who.clone())));
    // Who may manage the server in every other way.
    let boss = fixture.server.add_member("boss", &[], ADMINISTRATOR);
    boss.run_slash_command(&fixture.room, "settings idle", &[("timeout", "1h")]).response_with("is now `1h`");
    // Whoever owns the server may take everything from its agents, and give nothing that no role of theirs may.
    let owner = fixture.server.owner();
    owner
        .run_slash_command(&fixture.room, "settings permissions", &[("profile", "locked")])
        .response_with("is now `locked`");
    refused(
        &owner.run_slash_command(&fixture.room, "settings permissions", &[("profile", "open")]),
        "is not allowed to grant",
    );
}
