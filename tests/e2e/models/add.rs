//! `models add`: a server of models, from nothing to an answer.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use chorus_tests::ctl::{Output, chorusctl};
use chorus_tests::model_server::ModelServer;
use chorus_tests::{Daemon, Home, InteractiveCommand};
use serde_json::json;

use crate::home;

fn add(home: &Home, name: &str, server: &ModelServer, options: &[&str]) -> Output {
    let url = format!("{}/v1", server.url());
    chorusctl(home, ["models", "add", name, &*url].iter().chain(options))
}

fn config(home: &Home) -> String {
    fs::read_to_string(home.path.join("config.toml")).expect("config.toml")
}

/// Stops the daemon that a command started when the test ends.
struct Stop<'a>(&'a Home);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        chorusctl(self.0, ["daemon", "stop"]);
    }
}

#[test]
fn the_command_that_the_hint_names_is_enough_for_an_answer() {
    let (home, server) = (home(), ModelServer::start());
    let _stop = Stop(&home);
    server.set_openai_models(200, &json!({"data": [{"id": "small"}]}));
    let refused = chorusctl(&home, ["send", "hi"]);
    let said = refused.expect_failure_with_hint(1);
    assert!(said.contains("has no model") && said.contains("`chorusctl models add local http://"), "{said}");
    let said = add(&home, "local", &server, &[]).expect_success();
    let file = home.path.join("config.toml");
    assert_eq!(
        said.lines().collect::<Vec<_>>(),
        [
            &*format!("added [providers.local] to {} (a new file)", file.display()),
            "the daemon uses it now",
            "found 1 model: local/small",
            "default model: local/small",
        ]
    );
    assert_eq!(fs::metadata(&file).expect("the file").permissions().mode() & 0o777, 0o600);
    server.openai().queue_text(["Hello."]);
    assert_eq!(chorusctl(&home, ["send", "hi"]).expect_success(), "Hello.\n");
}

#[test]
fn the_rest_of_the_file_stays_as_it_is() {
    let (home, server) = (home(), ModelServer::start());
    let _stop = Stop(&home);
    let old = "# mine\nmax_connections = 7   # few\n\n[aliases]\nfast = \"local/small\"";
    home.write_config(old);
    let file = home.path.join("config.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("its mode");
    let said =
        add(&home, "local", &server, &["--default", "large", "--key-file", &server.key_file().to_string_lossy()])
            .expect_success();
    assert!(said.contains("found 2 models: local/large, local/small\ndefault model: local/large\n"), "{said}");
    let new = config(&home);
    let added = new.strip_prefix(old).expect("the old text");
    assert!(added.starts_with("\n\n[providers.local]\nkind = \"openai\"\nbase_url = \"http://"), "{added}");
    assert_eq!(fs::metadata(&file).expect("the file").permissions().mode() & 0o777, 0o640);
    // Another one leaves the default alone.
    let said = add(&home, "other", &server, &[]).expect_success();
    assert!(said.ends_with("the default model stays local/large\n"), "{said}");
    assert!(config(&home).starts_with(&new));
}

#[test]
fn what_cannot_be_added_changes_nothing() {
    let (home, server) = (home(), ModelServer::start());
    let daemon = Daemon::start_with(&home, &server.config_toml());
    let (old, pid) = (config(&home), home.running_pid());
    for (args, what) in [
        (&["local", "http://127.0.0.1:1/v1"][..], "provider local exists already"),
        (&["new", "ftp://127.0.0.1/v1"], "`providers.new.base_url` must start with http"),
        (&["new"], "the address of new is missing"),
        (&["a/b", "http://127.0.0.1:1/v1"], "not a name for a provider"),
        (
            &["new", "http://127.0.0.1:1/v1", "--key-env", "NO_SUCH_KEY"],
            "--key-env must name an environment variable that is set",
        ),
        (&["new", "http://127.0.0.1:1/v1", "--key-file", "/nonexistent"], "/nonexistent: "),
    ] {
        let refused = chorusctl(&home, ["models", "add"].iter().chain(args));
        assert!(refused.stderr.contains(what) && refused.stderr.contains("hint: "), "{refused:?}");
        assert!(refused.status != 0 && !refused.stderr.contains("config.toml."), "{refused:?}");
        assert_eq!((config(&home), home.running_pid()), (old.clone(), pid), "{args:?}");
    }
    let left: Vec<_> = fs::read_dir(&home.path).expect("the home").flatten().map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("config.toml.")), "{left:?}");
    drop(daemon);
}

#[test]
fn a_provider_that_was_there_without_a_table_stays() {
    let (home, server) = (home(), ModelServer::start());
    let _stop = Stop(&home);
    // Without a key, nothing is sent to it.
    home.write_config("default_model = \"anthropic/claude-test\"\n");
    let said = add(&home, "local", &server, &[]).expect_success();
    assert!(said.contains("added [providers.anthropic] too, so that its models stay"), "{said}");
    assert!(config(&home).ends_with("\n\n[providers.anthropic]\n"));
}

#[test]
fn a_server_that_is_off_is_added_and_said_to_be_off() {
    let home = home();
    let _stop = Stop(&home);
    let failed = chorusctl(&home, ["models", "add", "off", "http://127.0.0.1:1/v1"]);
    assert_eq!(failed.status, 1, "{failed:?}");
    assert!(failed.stderr.contains("cannot reach off") && failed.stderr.contains("added anyway"), "{failed:?}");
    assert!(failed.stderr.contains("chorusctl models validate"), "{failed:?}");
    assert!(config(&home).contains("[providers.off]"));
}

#[test]
fn the_default_that_was_named_is_set_even_if_the_server_is_off() {
    let home = home();
    let _stop = Stop(&home);
    let failed = chorusctl(&home, ["models", "add", "off", "http://127.0.0.1:1/v1", "--default", "large"]);
    assert_eq!(failed.status, 1, "{failed:?}");
    assert!(failed.stdout.ends_with("default model: off/large\n"), "{failed:?}");
    assert!(failed.stderr.contains("warning: the provider did not answer, so off/large was not checked"), "{failed:?}");
    let shown = chorusctl(&home, ["settings", "--json"]).expect_json();
    let of = |name: &str| {
        let settings = shown["settings"].as_array().expect("a list");
        settings.iter().find(|setting| setting["key"] == name).map(|setting| setting["value"].clone())
    };
    assert_eq!(of("default_model"), Some(json!("off/large")), "{shown}");
}

/// OpenRouter calls a model of its own `openrouter/auto`.
#[test]
fn an_id_may_start_with_the_name_of_its_provider() {
    let (home, server) = (home(), ModelServer::start());
    let _stop = Stop(&home);
    server.set_openai_models(200, &json!({"data": [{"id": "router/auto"}, {"id": "large"}]}));
    let said = add(&home, "router", &server, &["--default", "router/auto"]).expect_success();
    assert!(said.ends_with("default model: router/router/auto\n"), "{said}");
    let said = add(&home, "other", &server, &["--default", "other/large"]).expect_success();
    assert!(said.ends_with("default model: other/large\n"), "{said}");
    let audit = chorusctl(&home, ["audit"]).expect_success();
    assert!(audit.contains("owner changed the setting default_model") && audit.contains("with models add"), "{audit}");
    assert!(!audit.contains("with settings set"), "{audit}");
}

#[test]
fn a_hint_quotes_what_a_shell_would_not_take_as_one_word() {
    let (home, server) = (home(), ModelServer::start());
    let _stop = Stop(&home);
    server.set_openai_models(200, &json!({"data": [{"id": "a $(touch x) 'b'"}, {"id": "large"}]}));
    let said = add(&home, "local", &server, &[]);
    let due = r"chorusctl config set default_model 'local/a $(touch x) '\''b'\'''";
    assert!(said.stderr.contains(due), "{said:?}");
    server.set_openai_models(200, &json!({"data": [{"id": "a $(touch x) 'b'"}]}));
    chorusctl(&home, ["models", "validate"]).expect_success();
    let said = chorusctl(&home, ["send", "hi"]);
    assert!(said.expect_failure_with_hint(1).contains(due), "{said:?}");
    assert!(chorusctl(&home, ["doctor"]).stdout.contains(due));
}

#[test]
fn a_link_to_a_file_that_does_not_exist_yet_stays_a_link() {
    let (home, server) = (home(), ModelServer::start());
    let _stop = Stop(&home);
    let target = home.temp_dir().join("dotfiles/config.toml");
    let link = home.path.join("config.toml");
    home.write_config("");
    fs::remove_file(&link).expect("the file");
    std::os::unix::fs::symlink(&target, &link).expect("a link");
    add(&home, "local", &server, &[]).expect_success();
    assert!(fs::symlink_metadata(&link).expect("the link").is_symlink());
    assert!(fs::read_to_string(&target).expect("its target").contains("[providers.local]"));
}

/// Each reads what the other has written.
#[test]
fn two_additions_at_once_are_both_there() {
    let (home, server) = (home(), ModelServer::start());
    let _stop = Stop(&home);
    std::thread::scope(|scope| {
        for name in ["one", "two", "three"] {
            let (home, server) = (&home, &server);
            // The daemon may be restarted by another of them.
            scope.spawn(move || _ = add(home, name, server, &[]));
        }
    });
    let written = config(&home);
    assert!(["one", "two", "three"].iter().all(|name| written.contains(&format!("[providers.{name}]"))), "{written}");
}

#[test]
fn the_only_model_is_named_to_an_agent_without_one() {
    let (home, server) = (home(), ModelServer::start());
    let _stop = Stop(&home);
    server.set_openai_models(200, &json!({"data": [{"id": "small"}]}));
    add(&home, "local", &server, &[]).expect_success();
    chorusctl(&home, ["settings", "set", "default_model", ""]).expect_success();
    let said = chorusctl(&home, ["send", "hi"]);
    assert!(said.expect_failure_with_hint(1).contains("hint: chorusctl config set default_model local/small\n"));
}

#[test]
fn the_path_of_the_configuration_is_shown_whether_or_not_it_exists() {
    let home = home();
    let file = home.path.join("config.toml").display().to_string();
    let mut check = home.command(home.bins.chorusd);
    check.arg("--check-config");
    let checked = chorus_tests::ctl::run_command(check, b"").expect_json();
    assert_eq!(checked, json!({"config": file, "exists": false, "providers": []}));
    let daemon = Daemon::start(&home);
    let said = chorusctl(&home, ["settings"]).expect_success();
    assert!(said.ends_with(&format!("\nconfiguration file: {file} (no such file)\n")), "{said}");
    assert!(chorusctl(&home, ["doctor"]).stdout.contains(&format!("{file} (no such file; the defaults apply)")));
    drop(daemon);
    home.write_config("max_connections = 7\n");
    let _daemon = Daemon::start(&home);
    assert!(chorusctl(&home, ["settings"]).expect_success().ends_with(&format!("\nconfiguration file: {file}\n")));
}

#[test]
fn on_a_terminal_the_hint_is_wrapped_at_words_and_its_commands_stay_whole() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let mut command = home.command(home.bins.chorusctl);
    command.args(["models"]);
    let (_, shown, _) = InteractiveCommand::on_terminal_of(&command, 60, 24).wait_for_exit();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 60) && lines.len() > 3, "{shown}");
    assert!(shown.contains("`chorusctl models add local http://localhost:11434/v1`"), "{shown}");
    assert!(shown.contains("`export ANTHROPIC_API_KEY=…`"), "{shown}");
}

#[test]
fn a_turn_goes_on_while_a_provider_is_added() {
    let (home, server) = (home(), ModelServer::start());
    let daemon = Daemon::start_with(&home, &server.config_toml());
    let pid = home.running_pid();
    let said = add(&home, "more", &server, &[]).expect_success();
    assert!(said.contains("the daemon uses it now"), "{said}");
    assert_eq!(home.running_pid(), pid, "the daemon was restarted");
    // A key that only this shell has needs a daemon with the same environment.
    let mut command = home.command(home.bins.chorusctl);
    command.args(["models", "add", "keyed", &format!("{}/v1", server.url()), "--key-env", "A_KEY_OF_THIS_SHELL"]);
    let said = chorus_tests::ctl::run_command(
        {
            command.env("A_KEY_OF_THIS_SHELL", "k-1");
            command
        },
        b"",
    );
    assert!(said.stdout.contains("restarted the daemon, which did not have the key in its environment"), "{said:?}");
    assert_ne!(home.running_pid(), pid);
    chorusctl(&home, ["daemon", "stop"]).expect_success();
    drop(daemon);
}
