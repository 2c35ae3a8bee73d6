//! `config edit`.

use std::fs;
use std::path::PathBuf;

use chorus_tests::ctl::{chorusctl, run_command};
use chorus_tests::interactive::InteractiveCommand;
use chorus_tests::program::write_program;
use chorus_tests::{Daemon, Home};

use super::text;
use crate::home;
use crate::settings::one;

/// An editor that is this script, with the file as `$1`.
fn editor(home: &Home, script: &str) -> PathBuf {
    let program = home.temp_dir().join("an editor");
    write_program(&program, format!("#!/bin/sh\n{script}\n"));
    program
}

fn edit(home: &Home, script: &str) -> std::process::Command {
    let program = editor(home, script);
    let mut command = home.command(home.bins.chorusctl);
    command.args(["config", "edit"]).env("EDITOR", format!("'{}' --wait", program.display()));
    command.env_remove("VISUAL").env("TMPDIR", home.temp_dir());
    command
}

#[test]
fn the_result_is_checked_and_applied() {
    let home = home();
    let daemon = Daemon::start_with(&home, "# mine\napproval_timeout = \"7m\"\n");
    let said = run_command(edit(&home, "sed -i s/7m/8m/ \"$2\""), b"");
    assert!(said.status == 0 && said.stdout.contains("1 key changed: approval_timeout"), "{said:?}");
    assert_eq!(text(&home), "# mine\napproval_timeout = \"8m\"\n");
    assert_eq!(one(&mut daemon.client(), "approval_timeout").value, "8m");
    let said = run_command(edit(&home, "exit 0"), b"");
    assert!(said.status == 0 && said.stdout.contains("was not changed"), "{said:?}");
    let mut command = edit(&home, "exit 0");
    command.arg("--json");
    assert_eq!(run_command(command, b"").expect_json()["changed"], false);
    let said = run_command(edit(&home, "sed -i s/8m/9m/ \"$2\"; exit 3"), b"");
    assert!(said.expect_failure_with_hint(1).contains("failed"), "{said:?}");
    assert_eq!(text(&home), "# mine\napproval_timeout = \"8m\"\n");
}

#[test]
fn a_text_with_an_error_never_replaces_the_file() {
    let home = home();
    home.write_config("approval_timeout = \"7m\"\n");
    let said = run_command(edit(&home, "sed -i s/7m/soon/ \"$2\""), b"");
    let stderr = said.expect_failure_with_hint(2);
    assert!(stderr.contains("config.toml, line 1, column 1: `approval_timeout`"), "{stderr}");
    assert_eq!(text(&home), "approval_timeout = \"7m\"\n");
    let draft = stderr.split("your text is in ").nth(1).and_then(|rest| rest.lines().next()).expect("its path");
    assert_eq!(fs::read_to_string(draft).expect("the draft"), "approval_timeout = \"soon\"\n");
    // On a terminal it asks: first to edit again, then the text is discarded.
    let mut command = edit(&home, "sed -i s/7m/soon/ \"$2\"; echo more >> \"$2\"");
    command.current_dir(&home.path);
    let mut running = InteractiveCommand::on_terminal(&command);
    running.stdout.wait_for("[d]iscard your changes? ");
    running.type_and_wait("x\r", "[d]iscard your changes? ");
    running.type_and_wait("e\r", "[d]iscard your changes? ");
    running.type_text("d\r");
    let (status, ..) = running.wait_for_exit();
    assert_eq!(status.code(), Some(6), "{}", running.stdout.text());
    assert_eq!(text(&home), "approval_timeout = \"7m\"\n");
}

#[test]
fn a_change_by_somebody_else_is_not_lost() {
    let home = home();
    home.write_config("approval_timeout = \"7m\"\n");
    let file = home.path.join("config.toml");
    let said =
        run_command(edit(&home, &format!("echo '# theirs' >> '{}'; sed -i s/7m/8m/ \"$2\"", file.display())), b"");
    let stderr = said.expect_failure_with_hint(7);
    assert!(stderr.contains("changed by somebody else") && stderr.contains("your text is in"), "{stderr}");
    assert_eq!(text(&home), "approval_timeout = \"7m\"\n# theirs\n");
}

#[test]
fn a_new_file_starts_with_every_key() {
    let home = home();
    let said = run_command(edit(&home, "sed -i 's/^#max_connections = 1024$/max_connections = 7/' \"$2\""), b"");
    assert!(said.status == 0 && said.stdout.contains("saved"), "{said:?}");
    assert!(text(&home).contains("\nmax_connections = 7\n") && text(&home).contains("#[defaults]"));
    assert!(chorusctl(&home, ["config", "check"]).expect_success().contains("is valid"));
}
