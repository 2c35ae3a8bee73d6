//! Connections share a line, which ssh keeps open.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};

use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, InteractiveCommand, wait_until};

use super::Machines;

#[test]
fn a_second_command_uses_the_line_of_the_first() {
    let Some(machines) = Machines::start() else { return };
    machines.run(&["status"]).expect_success();
    machines.run(&["agent", "list"]).expect_success();
    assert_eq!(machines.server.logins(), 1);
    let run = machines.here.path.join("run");
    assert_eq!(run.metadata().expect("a directory").permissions().mode() & 0o777, 0o700);
    let is_socket = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_socket());
    let sockets = || fs::read_dir(&run).expect("a directory").flatten().filter(is_socket).count();
    assert_eq!(sockets(), 1);
    // Another line takes the place of one that has ended.
    machines.server.kill_connections();
    wait_until("the end of the line", DEADLINE, || (sockets() == 0).then_some(()));
    machines.run(&["status"]).expect_success();
    machines.run(&["status"]).expect_success();
    assert_eq!(machines.server.logins(), 2);
}

#[test]
fn lines_that_the_configuration_of_ssh_names_are_used() {
    let Some(machines) = Machines::start() else { return };
    let path = machines.server.home().join("own");
    let own = format!(" ControlMaster auto\n ControlPath {}\n ControlPersist 30\n", path.display());
    machines.server.write_client_config(machines.server.port(), &own);
    machines.run(&["status"]).expect_success();
    assert!(path.exists(), "the socket is where the user wants it");
    machines.run(&["status"]).expect_success();
    assert_eq!(machines.server.logins(), 1);
    assert!(!machines.here.path.join("run").exists(), "there is no other");
}

#[test]
fn ssh_may_ask_when_a_line_is_opened() {
    let Some(machines) = Machines::start() else { return };
    fs::write(machines.server.home().join("known"), "").expect("known hosts");
    machines.server.write_client_config(machines.server.port(), " StrictHostKeyChecking ask\n");
    let mut status = InteractiveCommand::on_terminal(&machines.command(&["status"]));
    status.stdout.wait_for("Are you sure you want to continue connecting");
    status.type_text("yes\r");
    status.stdout.wait_for("api");
    assert_eq!(status.wait_for_exit().0.code(), Some(0));
    machines.run(&["status"]).expect_success();
    assert_eq!(machines.server.logins(), 1);
}

#[test]
fn ctrl_c_cancels_the_turn_and_not_the_line() {
    let Some(machines) = Machines::start() else { return };
    machines.there.answer(Response::text(["A part "]).gate("never"));
    let mut sent = InteractiveCommand::on_terminal(&machines.command(&["send", "what is it?"]));
    sent.stdout.wait_for("A part");
    sent.type_text("\u{3}");
    sent.stdout.wait_for("cancelled; the partial reply was kept");
    assert_eq!(sent.wait_for_exit().0.code(), Some(1));
    assert_eq!(machines.server.logins(), 1);
}

#[test]
fn commands_that_start_at_once_share_one_line() {
    let Some(machines) = Machines::start() else { return };
    let running: Vec<_> = (0..4).map(|_| machines.start_piped(&["status"])).collect();
    for mut command in running {
        let (status, _, said) = command.wait_for_exit();
        assert_eq!(status.code(), Some(0), "{said}");
    }
    assert_eq!(machines.server.logins(), 1);
}
