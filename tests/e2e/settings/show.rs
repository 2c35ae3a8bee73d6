//! `settings show`.

use chorus_proto::methods::settings::From;
use chorus_tests::Daemon;
use chorus_tests::ctl::chorusctl;
use serde_json::{Value, json};

use super::{one, set, shown};
use crate::home;

const CONFIG: &str = "max_connections = 64\n[defaults]\nwindow_messages = 40\nidle_timeout = \"5m\"\n\
    [providers.local]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9\"\napi_key_env = \"LOCAL_KEY\"\n\
    [aliases]\nfast = \"local/small\"\n[permissions.careful]\nallow = [\"tool:view:.*\"]\n[permission_grants]\nadmin = [\"open\", \"careful\"]\n";

#[test]
fn every_key_is_shown_with_where_it_comes_from_and_no_secret_is() {
    let home = home();
    home.write_config(CONFIG);
    let mut command = home.command(home.bins.chorusd);
    command.env("LOCAL_KEY", "a-very-secret-key").env("CHORUS_IDLE_TIMEOUT", "1h30m").env("CHORUS_MAX_FRAME", "8MiB");
    let daemon = Daemon::start_command(&home, command);
    let mut client = daemon.client();
    set(&mut client, "permissions", "careful");
    let file = home.path.join("config.toml").display().to_string();
    for (key, value, from, place) in [
        ("default_model", Value::Null, From::Default, None),
        ("max_connections", 64.into(), From::File, Some(file.as_str())),
        ("max_frame", "8MiB".into(), From::Environment, Some("CHORUS_MAX_FRAME")),
        ("approval_timeout", "2m".into(), From::Default, None),
        ("defaults.idle_timeout", "1h30m".into(), From::Environment, Some("CHORUS_IDLE_TIMEOUT")),
        ("defaults.permissions", "careful".into(), From::Settings, None),
        ("defaults.window_messages", 40.into(), From::File, Some(file.as_str())),
        ("defaults.redact", true.into(), From::Default, None),
        ("aliases.fast", "local/small".into(), From::File, Some(file.as_str())),
        ("providers.local.api_key_env", "LOCAL_KEY".into(), From::File, Some(file.as_str())),
        ("permission_grants.admin", json!(["open", "careful"]), From::File, Some(file.as_str())),
        ("providers.local.total_timeout", "15m".into(), From::Default, None),
    ] {
        let setting = one(&mut client, key);
        assert_eq!((setting.value, setting.from, setting.place.as_deref()), (value, from, place), "{key}");
    }
    let all = shown(&mut client);
    assert!(all.iter().any(|setting| setting.key == "permissions.careful" && setting.value.is_object()));
    assert!(!serde_json::to_string(&all).expect("JSON").contains("a-very-secret-key"));
    let text = chorusctl(&home, ["settings"]).expect_success();
    let line = |key: &str| text.lines().find(|line| line.starts_with(key)).unwrap_or_default().to_owned();
    assert!(line("defaults.permissions").ends_with("settings"), "{text}");
    assert!(line("max_frame").contains("8MiB") && line("max_frame").ends_with("$CHORUS_MAX_FRAME"), "{text}");
    assert_eq!(text, chorusctl(&home, ["settings", "show"]).expect_success());
    let json = chorusctl(&home, ["settings", "show", "--json"]).expect_json();
    assert_eq!(json["settings"].as_array().map(Vec::len), Some(all.len()));
    assert_eq!(chorusctl(&home, ["settings", "show", "--format", "jsonl"]).expect_success().lines().count(), all.len());
}
