//! `[discord]`: where the token may be, and what is refused.

use std::fs;

use chorus_proto::methods::daemon::DiscordState;
use chorus_proto::methods::send::{Send, SendParams};
use chorus_proto::methods::settings::{Show, ShowParams};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::discord::{FakeDiscord, TOKEN};
use chorus_tests::model_server::ModelServer;

use super::{becomes, rig};
use crate::home;

#[test]
fn the_token_is_found_wherever_it_may_be_and_shown_nowhere() {
    let discord = FakeDiscord::start();
    discord.create_guild("home");
    let base = format!("api_base = \"{}\"\n", discord.url());
    let folder = discord.token_file().parent().expect("its folder").to_owned();
    for (keys, variable) in [
        ("token_env = \"DISCORD_TOKEN\"\n".to_owned(), Some("DISCORD_TOKEN")),
        ("token_env = \"MY_BOT\"\n".to_owned(), Some("MY_BOT")),
        (format!("token_file = \"{}\"\n", discord.token_file().display()), None),
        ("token_file = \"beside\"\n".to_owned(), None),
        ("credential = \"token\"\n".to_owned(), None),
    ] {
        let home = home();
        home.write_config(&format!("[discord]\n{keys}{base}guilds = [1, \"2\"]\napprovers = [\"admin\", \"7\"]\ndm_agent = \"maps\"\ndm_allow = [\"8\"]\n"));
        fs::write(home.path.join("beside"), TOKEN).expect("a token");
        let mut command = home.command(home.bins.chorusd);
        command.env("CREDENTIALS_DIRECTORY", &folder).env("CHORUS_LOG_LEVEL", "trace");
        if let Some(variable) = variable {
            command.env(variable, TOKEN);
        }
        discord.set_identify_interval(std::time::Duration::ZERO);
        let daemon = Daemon::start_command(&home, command);
        becomes(&daemon, DiscordState::Connected);
        let settings = daemon.client().call::<Show>(&ShowParams::default()).expect("settings").settings;
        let value = |key: &str| {
            let found = settings.iter().find(|setting| setting.key == key);
            found.unwrap_or_else(|| panic!("no {key}")).value.clone()
        };
        assert_eq!((value("discord.guilds"), value("discord.approvers")), ("1,2".into(), "admin,7".into()));
        assert_eq!((value("discord.dm_agent"), value("discord.dm_allow")), ("maps".into(), "8".into()));
        assert_eq!((value("discord.category"), value("discord.reconnect_max")), ("Agents".into(), "5m".into()));
        assert_eq!(value("discord.gateway_url"), serde_json::Value::Null);
        assert!(!serde_json::to_string(&settings).expect("JSON").contains(TOKEN));
        assert!(!daemon.read_log().contains(TOKEN), "{}", daemon.read_log());
        daemon.terminate();
    }
}

#[test]
fn the_usual_token_is_not_sent_to_another_server() {
    let discord = FakeDiscord::start();
    discord.create_guild("home");
    let home = home();
    home.write_config(&format!("[discord]\napi_base = \"{}\"\n", discord.url()));
    let mut command = home.command(home.bins.chorusd);
    command.env("DISCORD_TOKEN", TOKEN);
    let daemon = Daemon::start_command(&home, command);
    becomes(&daemon, DiscordState::Off);
    let said = chorusctl(&home, ["doctor"]).stdout;
    assert!(said.contains("off (no token configured)") && said.contains("token_env"), "{said}");
    assert_eq!(discord.identifies(), 0);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let (_discord, home) = rig("");
    for (key, told) in [
        ("token_env = \"not a name\"", "token_env"),
        ("credential = \"../up\"", "credential"),
        ("guilds = [\"home\"]", "guilds"),
        ("guilds = [0]", "guilds"),
        ("guilds = true", "guilds"),
        ("approvers = 7", "approvers"),
        ("dm_agent = \"Maps!\"", "dm_agent"),
        ("dm_allow = 7", "dm_allow"),
        ("category = \"\"", "category"),
        ("api_base = \"wss://discord.com\"", "api_base"),
        ("gateway_url = \"https://discord.com\"", "gateway_url"),
        ("gateway_url = \"wss://user:word@discord.com\"", "gateway_url"),
        ("reconnect_max = \"0\"", "reconnect_max"),
        ("shards = 0", "shards"),
        ("shards = 257", "shards"),
        ("shards = \"many\"", "shards"),
        ("tokn_file = \"a\"", "token_file"),
    ] {
        home.write_config(&format!("[discord]\n{key}\n"));
        let (status, said) = Daemon::try_start(&home, home.command(home.bins.chorusd)).expect_err("refused");
        assert!(status.code() == Some(2) && said.contains(told) && !said.contains("panicked"), "{key}: {said}");
    }
}

#[test]
fn the_token_is_taken_out_of_what_models_say_wherever_it_comes_from() {
    // Of no form by which it would be known.
    const ODD: &str = "quite-an-odd-token-of-words";
    let (discord, model, home) = (FakeDiscord::start(), ModelServer::start(), home());
    fs::write(discord.token_file(), ODD).expect("a token");
    let daemon = Daemon::start_with(&home, &(model.config_toml() + &discord.config_toml()));
    let mut client = daemon.client();
    client.init("a");
    model.anthropic().queue_text([format!("It is {ODD}, is it not?")]);
    let params = SendParams { agent: Some("a".into()), text: "what is it?".into(), ..Default::default() };
    let reply = client.call::<Send>(&params).expect("an answer").reply;
    assert!(reply.starts_with("It is [redacted:") && !reply.contains(ODD), "{reply}");
}
