//! `config show`, `config get` and `config path`.

use std::fs;

use chorus_tests::Daemon;
use chorus_tests::ctl::chorusctl;

use crate::home;

const CONFIG: &str = "max_connections = 64\n[defaults]\nidle_timeout = \"5m\"\n\n[providers.local]\nkind = \"openai\"\n\
                      base_url = \"http://127.0.0.1:9\"\napi_key_env = \"LOCAL_KEY\"\n";

#[test]
fn values_are_shown_with_their_layers_and_lines_and_without_secrets() {
    let home = home();
    home.write_config(CONFIG);
    let mut command = home.command(home.bins.chorusd);
    command.env("LOCAL_KEY", "a-very-secret-key").env("CHORUS_MAX_FRAME", "8MiB");
    let _daemon = Daemon::start_command(&home, command);
    chorusctl(&home, ["settings", "set", "permissions", "locked"]).expect_success();
    let file = home.path.join("config.toml").display().to_string();
    let text = chorusctl(&home, ["config", "show", "--origin", "--long"]).expect_success();
    let from = |key: &str| {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(key));
        line.and_then(|line| line.split_whitespace().last()).unwrap_or_default().to_owned()
    };
    assert_eq!(from("max_connections"), format!("{file}:1"));
    assert_eq!(from("defaults.idle_timeout"), format!("{file}:3"));
    assert_eq!(from("providers.local.api_key_env"), format!("{file}:8"));
    assert_eq!(from("defaults.permissions"), "settings");
    assert_eq!(from("max_frame"), "$CHORUS_MAX_FRAME");
    assert_eq!(from("approval_timeout"), "default");
    assert!(!text.contains("a-very-secret-key"), "{text}");
    let plain = chorusctl(&home, ["config", "--long"]).expect_success();
    assert!(plain.lines().any(|line| line.starts_with("max_connections ") && line.ends_with(" file")), "{plain}");
    let changed = chorusctl(&home, ["config", "show", "--changed"]).expect_success();
    assert!(changed.contains("max_frame") && !changed.contains("approval_timeout"), "{changed}");
    let json = chorusctl(&home, ["config", "show", "--changed", "--json"]).expect_json();
    let settings = json["settings"].as_array().expect("a list");
    assert!(settings.iter().all(|setting| setting["from"] != "default") && settings.len() >= 6, "{json}");
}

#[test]
fn one_value_is_printed_alone() {
    let home = home();
    let _daemon = Daemon::start_with(&home, CONFIG);
    assert_eq!(chorusctl(&home, ["config", "get", "defaults.idle_timeout"]).expect_success(), "5m\n");
    let table = chorusctl(&home, ["config", "get", "providers.local"]).expect_success();
    assert!(table.contains("providers.local.kind = openai\n") && table.contains("api_key_env = LOCAL_KEY"), "{table}");
    let json = chorusctl(&home, ["config", "get", "max_connections", "--json"]).expect_json();
    assert_eq!((&json["value"], &json["line"]), (&64.into(), &1.into()));
    let unset = chorusctl(&home, ["config", "get", "default_model"]);
    assert!(unset.expect_failure_with_hint(3).contains("default_model is not set"), "{unset:?}");
    assert_eq!(chorusctl(&home, ["config", "get", "idle_timeout"]).expect_success(), "5m\n");
    for (typed, meant) in [("window_messages", "defaults.window_messages"), ("max_conections", "max_connections")] {
        let said = chorusctl(&home, ["config", "get", typed]);
        assert!(said.expect_failure_with_hint(2).contains(&format!("did you mean {meant}?")), "{said:?}");
    }
}

#[test]
fn the_path_is_that_of_the_daemon_and_needs_none() {
    let home = home();
    let file = home.path.join("config.toml").display().to_string();
    assert_eq!(chorusctl(&home, ["config", "path"]).expect_success(), format!("{file}\n"));
    let json = chorusctl(&home, ["config", "path", "--json"]).expect_json();
    assert_eq!((json["path"].as_str(), json["exists"].as_bool()), (Some(&*file), Some(false)));
    assert_eq!(home.running_pid(), None, "a daemon was started");
    let other = home.temp_dir().join("other.toml");
    fs::write(&other, "max_connections = 7\n").expect("a file");
    let mut command = home.command(home.bins.chorusd);
    command.env("CHORUS_CONFIG", &other);
    let _daemon = Daemon::start_command(&home, command);
    assert_eq!(chorusctl(&home, ["config", "path"]).expect_success(), format!("{}\n", other.display()));
    chorusctl(&home, ["config", "set", "approval_timeout", "1m"]).expect_success();
    assert!(fs::read_to_string(&other).expect("the file").contains("approval_timeout = \"1m\""));
    assert!(!home.path.join("config.toml").exists(), "another file was changed");
}

#[test]
fn the_default_file_has_every_key_and_loads() {
    let home = home();
    let text = chorusctl(&home, ["config", "show", "--default"]).expect_success();
    assert_eq!(home.running_pid(), None, "a daemon was started");
    let json = chorusctl(&home, ["config", "show", "--default", "--json"]).expect_json();
    assert_eq!(json["text"].as_str(), Some(&*text));
    for part in [
        "#default_model =\n",
        "#[defaults]\n",
        "#idle_timeout = \"30m\"\n",
        "#[providers.NAME]\n",
        "CHORUS_IDLE_TIMEOUT",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    home.write_config(&text);
    let checked = chorusctl(&home, ["config", "check"]).expect_success();
    assert!(checked.contains("is valid"), "{checked}");
    // What is set there is below its comment.
    chorusctl(&home, ["config", "set", "max_connections", "9"]).expect_success();
    assert!(super::text(&home).contains("#max_connections = 1024\nmax_connections = 9\n"));
}

#[test]
fn the_old_words_work_and_name_the_new_ones() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let said = chorusctl(&home, ["settings", "set", "idle_timeout", "45m"]);
    assert!(said.stdout.contains("defaults.idle_timeout: 45m"), "{said:?}");
    assert!(said.stderr.contains("chorusctl config set"), "{said:?}");
    let said = chorusctl(&home, ["settings"]);
    assert!(said.stdout.contains("45m") && said.stderr.contains("chorusctl config"), "{said:?}");
    assert!(chorusctl(&home, ["settings", "--json"]).stderr.is_empty());
    let help = chorusctl(&home, ["--help"]).expect_success();
    assert!(help.contains("\n  config ") && !help.contains("\n  settings "), "{help}");
}
