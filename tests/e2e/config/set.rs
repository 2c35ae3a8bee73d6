//! `config set` and `config unset` while a daemon runs.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use chorus_proto::methods::settings::From;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{chorusctl, run_command};
use chorus_tests::model_server::ModelServer;
use chorus_tests::{DEADLINE, Daemon, wait_until};

use super::text;
use crate::approvals::audit;
use crate::home;
use crate::settings::{one, set};

#[test]
fn a_value_applies_at_once_and_the_rest_of_the_file_stays() {
    let home = home();
    let config =
        "# mine\nmax_connections = 64 # not too many\n\n[defaults]\n# what agents get\nidle_timeout = \"5m\"\n";
    let daemon = Daemon::start_with(&home, config);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let minutes = |client: &mut chorus_proto::Client| {
        let context = client.agent_status("a").context.expect("a context");
        context.idle_deadline_at.expect("a deadline").duration_since(context.last_activity_at).as_mins()
    };
    let said = chorusctl(&home, ["config", "set", "defaults.idle_timeout", "45m"]).expect_success();
    let file = home.path.join("config.toml");
    assert_eq!(said, format!("defaults.idle_timeout: 45m ({})\n", file.display()));
    assert_eq!(text(&home), config.replace("5m", "45m"));
    assert_eq!(minutes(&mut client), 45, "the timer that runs is set again");
    // The short names of `settings set` are understood, numbers and lists are written as such.
    chorusctl(&home, ["config", "set", "idle_timeout", "50m"]).expect_success();
    assert_eq!(minutes(&mut client), 50);
    chorusctl(&home, ["config", "set", "defaults.window_messages", "40"]).expect_success();
    chorusctl(&home, ["config", "set", "capture.sources", "codex, claude-code"]).expect_success();
    chorusctl(&home, ["config", "set", "prices.\"local/small\".input", "0.25"]).expect_success();
    let lines = text(&home);
    for line in [
        "# mine",
        "max_connections = 64 # not too many",
        "# what agents get",
        "window_messages = 40",
        "sources = [\"codex\", \"claude-code\"]",
        "[prices.\"local/small\"]",
        "input = 0.25",
    ] {
        assert!(lines.lines().any(|there| there == line), "no {line} in {lines}");
    }
    let said = chorusctl(&home, ["config", "unset", "defaults.idle_timeout"]).expect_success();
    assert_eq!(said, "defaults.idle_timeout: 30m (default)\n");
    assert_eq!(minutes(&mut client), 30);
    assert!(text(&home).contains("# what agents get\nwindow_messages = 40\n"), "{}", text(&home));
    let again = chorusctl(&home, ["config", "unset", "defaults.idle_timeout"]);
    assert!(again.expect_failure_with_hint(5).contains("is not set in"), "{again:?}");
    let rows = audit(&mut client);
    let row = rows.iter().find(|row| row.new.as_deref() == Some("45m")).expect("a row of the audit log");
    assert_eq!(
        (&*row.action, &*row.rule, row.old.as_deref()),
        ("settings:defaults.idle_timeout", "config set", Some("\"5m\""))
    );
}

#[test]
fn a_stored_setting_that_would_override_the_file_is_removed() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    set(&mut client, "permissions", "locked");
    let said = chorusctl(&home, ["config", "set", "defaults.permissions", "open"]);
    assert!(said.stdout.contains("defaults.permissions: open ("), "{said:?}");
    assert!(said.stdout.contains("removed the stored setting locked"), "{said:?}");
    let setting = one(&mut client, "defaults.permissions");
    assert_eq!((setting.value, setting.from), ("open".into(), From::File));
    // So does `unset`, and a second one has nothing to do.
    set(&mut client, "permissions", "locked");
    let said = chorusctl(&home, ["config", "unset", "defaults.permissions"]).expect_success();
    assert!(said.contains("defaults.permissions: standard (default)"), "{said}");
    chorusctl(&home, ["config", "unset", "defaults.permissions"]).expect_failure(5);
    assert_eq!(one(&mut client, "defaults.permissions").from, From::Default);
}

#[test]
fn what_cannot_be_used_changes_nothing() {
    let server = ModelServer::start();
    let home = home();
    let config = format!("# before\n{}", server.config_toml());
    let daemon = Daemon::start_with(&home, &config);
    for (key, value, message, hint) in [
        ("defaults.idel_timeout", "5m", "unknown key `defaults.idel_timeout`", "did you mean `defaults.idle_timeout`?"),
        ("colour", "red", "unknown key `colour`", "known keys: "),
        ("durability", "sometimes", "must be \"always\" or \"interval\"", "fix the value"),
        ("resume_on_start", "yes", "`resume_on_start` must be true or false", "fix the value"),
        ("max_connections", "many", "must be a whole number", "fix the value"),
        ("max_frame", "1", "must be between 4KiB and 1GiB", "fix the value"),
        ("defaults.permissions", "lokced", "did you mean `locked`?", "fix the value"),
        ("providers.local.kidn", "openai", "unknown key `providers.local.kidn`", "providers.local.kind"),
        ("a b", "1", "`a b` is not a key", "in quotes"),
        ("defaults", "1", "is a table", "chorusctl config show"),
        ("default_model.x", "1", "`default_model` is not a table", "chorusctl config show"),
    ] {
        let said = chorusctl(&home, ["config", "set", key, value]);
        let stderr = said.expect_failure_with_hint(2);
        assert!(stderr.contains(message) && stderr.contains(hint), "{key}: {stderr}");
        assert!(!stderr.contains("config.toml, line"), "lines of a text that nobody wrote: {stderr}");
    }
    let said = chorusctl(&home, ["config", "unset", "defaults.idel_timeout"]);
    assert!(said.expect_failure_with_hint(2).contains("did you mean `defaults.idle_timeout`?"), "{said:?}");
    let said = chorusctl(&home, ["config", "unset", "providers.local.base_url"]);
    assert!(said.expect_failure_with_hint(2).contains("has no `base_url`"), "{said:?}");
    let said = chorusctl(&home, ["config", "set", "default_model", "lokal/small"]);
    assert!(said.expect_failure_with_hint(1).contains("did you mean local/small?"), "{said:?}");
    assert_eq!(text(&home), config);
    let names = fs::read_dir(&home.path).expect("the home").map(|entry| entry.expect("an entry").file_name());
    assert!(!names.into_iter().any(|name| name.to_string_lossy().starts_with("config.toml.")), "a draft stays");
    assert_eq!(one(&mut daemon.client(), "durability").from, From::Default);
}

#[test]
fn what_waits_for_a_restart_is_said_until_it_has_come() {
    let home = home();
    let daemon = Daemon::start(&home);
    let said = chorusctl(&home, ["config", "set", "max_connections", "64"]);
    assert!(said.stderr.contains("applies after a restart: chorusctl daemon restart"), "{said:?}");
    assert_eq!(one(&mut daemon.client(), "max_connections").value, 1024);
    let shown = chorusctl(&home, ["config", "show"]);
    assert!(shown.stderr.contains("max_connections applies after a restart"), "{shown:?}");
    // The old value again: nothing is left to wait for.
    chorusctl(&home, ["config", "unset", "max_connections"]).expect_success();
    assert!(chorusctl(&home, ["config", "show"]).stderr.is_empty());
    chorusctl(&home, ["config", "set", "max_connections", "64"]).expect_success();
    assert!(daemon.terminate().success());
    let daemon = Daemon::start(&home);
    assert_eq!(one(&mut daemon.client(), "max_connections").value, 64);
    assert!(chorusctl(&home, ["config", "show"]).stderr.is_empty());
}

#[test]
fn the_environment_overrides_the_file_and_the_answer_says_so() {
    let home = home();
    let mut command = home.command(home.bins.chorusd);
    command.env("CHORUS_IDLE_TIMEOUT", "20m");
    let _daemon = Daemon::start_command(&home, command);
    let said = chorusctl(&home, ["config", "set", "defaults.idle_timeout", "45m"]);
    assert!(said.stderr.contains("CHORUS_IDLE_TIMEOUT in the daemon's environment overrides it"), "{said:?}");
    assert!(text(&home).contains("idle_timeout = \"45m\""));
}

#[test]
fn new_providers_and_their_models_need_no_restart() {
    let server = ModelServer::start();
    let home = home();
    let daemon = Daemon::start(&home);
    let url = format!("{}/v1", server.url());
    let value = format!("{{ kind = \"openai\", base_url = \"{url}\" }}");
    chorusctl(&home, ["config", "set", "providers.local", &value]).expect_success();
    wait_until("its models", DEADLINE, || chorusctl(&home, ["models"]).stdout.contains("local/small").then_some(()));
    chorusctl(&home, ["config", "set", "aliases.fast", "local/small"]).expect_success();
    chorusctl(&home, ["config", "set", "default_model", "fast"]).expect_success();
    let mut client = daemon.client();
    client.init("a");
    server.openai().queue_text(["here I am"]);
    let said = chorusctl(&home, ["send", "hello"]).expect_success();
    assert!(said.contains("here I am"), "{said}");
    let config = text(&home);
    assert!(config.contains(&url), "{config}");
}

#[test]
fn links_and_permissions_stay_and_concurrent_changes_are_all_there() {
    let home = home();
    home.create();
    let real = home.temp_dir().join("real.toml");
    fs::write(&real, "# kept\n").expect("a file");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).expect("its permissions");
    let link = home.path.join("config.toml");
    std::os::unix::fs::symlink(&real, &link).expect("a link");
    let _daemon = Daemon::start(&home);
    let keys = ["a", "b", "c", "d", "e", "f", "g", "h"];
    std::thread::scope(|scope| {
        for key in keys {
            let home = &home;
            scope.spawn(move || {
                chorusctl(home, ["config", "set", &format!("aliases.{key}"), &format!("p/{key}")]).expect_success();
            });
        }
        // Without the daemon's lock, too.
        for key in keys {
            let mut command = home.command(home.bins.chorusd);
            command.args(["config-file", "set", &format!("aliases.{key}2"), &format!("p/{key}")]);
            scope.spawn(move || run_command(command, b"").expect_success());
        }
    });
    let text = fs::read_to_string(&real).expect("the file");
    for key in keys {
        assert!(text.contains(&format!("\n{key} = \"p/{key}\"\n")), "{text}");
        assert!(text.contains(&format!("\n{key}2 = \"p/{key}\"\n")), "{text}");
    }
    assert!(text.starts_with("# kept\n"));
    assert!(fs::symlink_metadata(&link).expect("the link").is_symlink());
    assert_eq!(fs::metadata(&real).expect("the file").mode() & 0o777, 0o640);
}
