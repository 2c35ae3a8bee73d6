//! Files with mistakes, files that nobody may change, and what the audit log has of changes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use chorus_proto::methods::audit::{Audit, AuditParams};
use chorus_tests::ctl::{chorusctl, chorusctl_with, run_command};
use chorus_tests::process::signal;
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use rustix::process::Signal;

use super::text;
use crate::home;

/// Returns the changed keys with their commands, in the order of the audit log.
fn audited(daemon: &Daemon) -> Vec<[String; 4]> {
    let mut rows = daemon.client().call::<Audit>(&AuditParams::default()).expect("audit").rows;
    rows.retain(|row| row.action.starts_with("settings:"));
    rows.sort_by_key(|row| row.id);
    let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    rows.into_iter().map(|row| [row.action, row.rule, text(row.old), text(row.new)]).collect()
}

#[test]
fn mistakes_of_the_grammar_are_named_with_their_line_by_every_command() {
    let home = home();
    let broken = "# top\ndefault_model = local/small\n";
    home.write_config(broken);
    for args in [
        &["config", "check"][..],
        &["config", "set", "approval_timeout", "1m"],
        &["config", "set", "default_model", "local/small"],
        &["config", "unset", "default_model"],
        &["config", "unset", "approval_timeout"],
        &["config", "show"],
    ] {
        let said = chorusctl(&home, args);
        let stderr = &said.stderr;
        assert!(said.status != 0 && said.stdout.is_empty(), "{said:?}");
        assert!(stderr.contains("config.toml, line 2, column 17: text must be in quotes"), "{args:?}: {stderr}");
        assert!(stderr.contains("write: default_model = \"…\""), "{args:?}: {stderr}");
        assert!(!stderr.contains("was saved"), "{args:?}: {stderr}");
    }
    assert_eq!(text(&home), broken);
    let said = chorusctl_with(&home, ["config", "check", "-"], b"log_level = \"warn\nmax_connections = 5\n");
    let stderr = said.expect_failure_with_hint(2);
    assert!(stderr.contains("standard input, line 1, column 18: the closing \" is missing"), "{stderr}");
    let said = chorusctl_with(&home, ["config", "check", "-"], b"log_level = \"warn\"\n").expect_success();
    assert_eq!(said, "standard input is valid\n");
}

#[test]
fn a_running_daemon_says_that_the_file_is_broken_and_what_it_runs_with() {
    let home = home();
    let _daemon = Daemon::start_with(&home, "approval_timeout = \"7m\"\nmax_connections = 9\n");
    home.write_config("approval_timeout = \"8m\nmax_connections = 9\n");
    let shown = chorusctl(&home, ["config", "show"]);
    assert!(shown.status == 0 && shown.stdout.contains("approval_timeout"), "{shown:?}");
    assert!(shown.stdout.lines().any(|line| line.starts_with("approval_timeout") && line.contains("7m")), "{shown:?}");
    let warned =
        "config.toml, line 1, column 23: the closing \" is missing; these are the values that the daemon read before";
    assert!(shown.stderr.contains(warned), "{shown:?}");
    let json = chorusctl(&home, ["config", "show", "--json"]).expect_json();
    assert!(json["problem"].as_str().is_some_and(|problem| problem.contains("line 1")), "{json}");
    let said = chorusctl(&home, ["config", "set", "max_connections", "8"]);
    assert!(said.expect_failure_with_hint(2).contains("line 1, column 23"), "{said:?}");
}

#[test]
fn the_line_and_the_value_of_a_key_that_waits_for_a_restart_are_said() {
    let home = home();
    let _daemon = Daemon::start_with(&home, "max_connections = 9\n");
    home.write_config("# one\n# two\napproval_timeout = \"7m\"\nmax_connections = 8\n");
    chorusctl(&home, ["config", "reload"]).expect_success();
    let shown = chorusctl(&home, ["config", "show", "--origin", "--long"]).expect_success();
    let row = |key: &str| shown.lines().find(|line| line.starts_with(key)).expect("the row").trim_end().to_owned();
    assert!(row("max_connections").contains(" 9 ") && row("max_connections").ends_with("config.toml:4"), "{shown}");
    assert!(row("approval_timeout").ends_with("config.toml:3"), "{shown}");
    let said = chorusctl(&home, ["config", "get", "max_connections"]);
    assert_eq!((said.status, &*said.stdout), (0, "9\n"));
    assert!(
        said.stderr.contains("hint: the file has another value; max_connections applies after a restart"),
        "{said:?}"
    );
    let said = chorusctl(&home, ["config", "get", "approval_timeout"]);
    assert_eq!((&*said.stdout, &*said.stderr), ("7m\n", ""));
}

#[test]
fn a_model_is_checked_without_a_daemon_as_with_one() {
    let home = home();
    home.write_config("[providers.local]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\n");
    let before = text(&home);
    let offline = chorusctl(&home, ["config", "set", "default_model", "nope/x"]);
    offline.expect_failure_with_hint(1);
    assert_eq!((home.running_pid(), text(&home)), (None, before.clone()));
    let _daemon = Daemon::start(&home);
    let online = chorusctl(&home, ["config", "set", "default_model", "nope/x"]);
    assert_eq!((online.status, &online.stderr), (offline.status, &offline.stderr));
    assert_eq!(text(&home), before);
}

#[test]
fn a_model_of_no_provider_is_saved_with_a_warning_while_none_is_configured() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let said = chorusctl(&home, ["config", "set", "default_model", "nope/x"]);
    assert_eq!(said.status, 0, "{said:?}");
    assert!(said.stderr.contains("no provider is called nope") && said.stderr.contains("models add nope"), "{said:?}");
}

#[test]
fn a_read_only_file_is_not_replaced() {
    let home = home();
    let old = "approval_timeout = \"7m\"\n";
    home.write_config(old);
    let file = home.path.join("config.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).expect("its mode");
    let refused = |home: &Home| {
        for args in [
            &["config", "set", "approval_timeout", "8m"][..],
            &["config", "unset", "approval_timeout"],
            &["models", "add", "local", "http://127.0.0.1:9/v1"],
        ] {
            let said = chorusctl(home, args);
            assert!(said.expect_failure_with_hint(6).contains("config.toml is read-only"), "{said:?}");
            assert_eq!(text(home), old);
        }
    };
    refused(&home);
    let daemon = Daemon::start(&home);
    refused(&home);
    assert!(audited(&daemon).is_empty(), "{:?}", audited(&daemon));
}

#[test]
fn an_editor_is_not_started_without_a_terminal() {
    let home = home();
    let mut command = home.command(home.bins.chorusctl);
    command.args(["config", "edit"]).env_remove("EDITOR").env_remove("VISUAL");
    let said = run_command(command, b"");
    assert!(said.expect_failure_with_hint(2).contains("not a terminal"), "{said:?}");
}

#[test]
fn changes_by_any_way_are_in_the_audit_log() {
    let home = home();
    home.write_config("approval_timeout = \"7m\"\n");
    let mut command = home.command("setsid");
    command.arg(home.bins.chorusd);
    let daemon = Daemon::start_command(&home, command);
    let row = |key: &str, command: &str, old: &str, new: &str| {
        [format!("settings:{key}"), command.to_owned(), old.to_owned(), new.to_owned()]
    };
    chorusctl(&home, ["config", "set", "approval_timeout", "8m"]).expect_success();
    let mut rows = vec![row("approval_timeout", "config set", "\"7m\"", "8m")];
    assert_eq!(audited(&daemon), rows);
    home.write_config("approval_timeout = \"9m\"\nmax_connections = 64\n");
    chorusctl(&home, ["config", "reload"]).expect_success();
    rows.push(row("max_connections", "config reload", "1024", "64"));
    rows.push(row("approval_timeout", "config reload", "8m", "9m"));
    assert_eq!(audited(&daemon)[1..].len(), 2);
    assert!(rows.iter().all(|row| audited(&daemon).contains(row)), "{:?}", audited(&daemon));
    chorusctl(&home, ["config", "reload"]).expect_success();
    assert_eq!(audited(&daemon).len(), 3, "what waits for a restart is recorded once");
    home.write_config("approval_timeout = \"10m\"\nmax_connections = 64\n");
    signal(daemon.pid, Signal::HUP);
    let last = wait_until("the row", DEADLINE, || audited(&daemon).pop().filter(|row| row[1] == "SIGHUP"));
    assert_eq!(last, row("approval_timeout", "SIGHUP", "9m", "10m"));
}

#[test]
fn standard_input_is_checked_as_if_it_were_the_file() {
    let home = home();
    home.write_config("");
    let text = b"[capture]\nsources = [\"claude-code\"]\n\xff";
    let said = chorusctl_with(&home, ["config", "check", "-"], text);
    assert!(said.expect_failure_with_hint(2).contains("standard input, line 3: not text in UTF-8"), "{said:?}");
    for text in ["max_connections = 0", "max_connections = 2000000", "max_connections = \"many\""] {
        let said = chorusctl_with(&home, ["config", "check", "-"], text.as_bytes());
        let stderr = said.expect_failure_with_hint(2);
        assert!(stderr.contains("`max_connections` must be a whole number from 1 to 1000000"), "{stderr}");
    }
}

#[test]
fn a_broken_file_is_named_by_commands_that_go_on_without_it() {
    let home = home();
    let _daemon = Daemon::start_with(&home, "approval_timeout = \"7m\"\n");
    home.write_config("approval_timeout = \"8m\n");
    const PROBLEM: &str = "config.toml, line 1, column 23: the closing \" is missing";
    let got = chorusctl(&home, ["config", "get", "approval_timeout"]);
    assert!(got.stdout == "7m\n" && got.stderr.contains(PROBLEM), "{got:?}");
    let status = chorusctl(&home, ["daemon", "status"]);
    assert!(status.stdout.starts_with("chorusd ") && status.stderr.contains(PROBLEM), "{status:?}");
    let mut edit = home.command(home.bins.chorusctl);
    edit.args(["config", "edit"]).env("EDITOR", "true");
    let edited = run_command(edit, b"");
    assert!(edited.expect_failure_with_hint(2).contains(PROBLEM), "{edited:?}");
    let stopped = chorusctl(&home, ["daemon", "stop"]);
    assert!(stopped.status == 0 && stopped.stderr.contains("a daemon cannot start now: "), "{stopped:?}");
    assert!(stopped.stderr.contains(PROBLEM), "{stopped:?}");
}
