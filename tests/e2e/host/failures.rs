//! What is said if another machine cannot be reached.

use std::fs;

use chorus_tests::ctl::run_command;

use super::Machines;

#[test]
fn each_failure_says_what_happened_and_what_to_do() {
    let Some(machines) = Machines::start() else { return };
    let Machines { here, server, .. } = &machines;
    let fails = |status: i32, expected: &str| {
        let failed = machines.run(&["status"]);
        let said = failed.expect_failure_with_hint(status).to_owned();
        assert!(said.contains(expected), "{said}");
        said
    };
    let table = server.host_table();
    here.write_config(&table.replace("/chorusctl\"", "/nowhere\""));
    let said = fails(3, "/nowhere` does not exist on box");
    assert!(said.contains("[hosts.box] with command ="), "{said}");
    here.write_config(&table);
    // Of a release without the command.
    server.write_chorusctl("#!/bin/sh\necho \"error: unrecognized subcommand 'dial-stdio'\" >&2\nexit 2\n");
    fails(2, "box: Chorus there is too old for --host");
    server.write_chorusctl("#!/bin/sh\necho 'This account is not available.'\nexit 1\n");
    fails(1, "did not start on box");
    // An error of the program there, with its hint.
    let report = r#"{"error":{"kind":"no_daemon","message":"no daemon running","hint":"start it"}}"#;
    server.write_chorusctl(&format!("#!/bin/sh\necho '{report}' >&2\nexit 4\n"));
    let said = fails(4, "box: no daemon running");
    assert!(said.contains("hint: start it"), "{said}");
    // One that says nothing is given up in the time of the command line, and what is typed there is no circle.
    server.write_chorusctl("#!/bin/sh\nexec sleep 600\n");
    let failed = machines.run(&["--timeout", "1s", "status"]);
    let said = failed.expect_failure_with_hint(1);
    assert!(said.contains("box") && said.contains("in time"), "{said}");
    let refused = machines.run(&["web"]);
    let said = refused.expect_failure_with_hint(2);
    assert!(said.contains("hint: run it there: ssh box ") && said.trim_end().ends_with(" web"), "{said}");
}

#[test]
fn failures_of_ssh_are_those_of_ssh() {
    let Some(machines) = Machines::start() else { return };
    let Machines { here, server, .. } = &machines;
    let fails = |expected: &str| {
        let failed = machines.run(&["status"]);
        let said = failed.expect_failure_with_hint(1);
        assert!(said.contains("error: failed to connect to box") && said.contains(expected), "{said}");
        assert!(said.contains("check that this works: ssh box"), "{said}");
    };
    fs::write(server.home().join("known"), "").expect("known hosts");
    fails("Host key verification failed.");
    let key = fs::read_to_string(server.home().join("host.pub")).expect("a key");
    fs::write(server.home().join("known"), format!("box {key}")).expect("known hosts");
    fs::write(server.home().join("authorized"), "").expect("keys");
    fails("Permission denied");
    server.write_client_config(1, "");
    fails("Connection refused");
    // An option is no machine, and no option of ssh is a command.
    let run = |args: &[&str]| {
        let mut command = here.command(here.bins.chorusctl);
        command.args(args);
        run_command(command, b"")
    };
    let refused = run(&["--host=-oProxyCommand=touch injected", "status"]);
    assert!(refused.expect_failure_with_hint(2).contains("is not the name of a machine"), "{refused:?}");
    here.write_config("[hosts.box]\nssh = \"-oProxyCommand=touch injected\"\n");
    machines.run(&["status"]).expect_failure_with_hint(2);
    assert!(!here.user_home.join("injected").exists());
    here.write_config("[hosts.box]\nshh = \"box\"\n");
    assert!(machines.run(&["status"]).expect_failure_with_hint(2).contains("unknown field `shh`"));
    let checked = run(&["daemon", "start"]);
    assert!(checked.stderr.contains("unknown key `hosts.box.shh`"), "the daemon checks them, too: {checked:?}");
}

#[test]
fn text_of_login_scripts_does_no_harm_and_a_daemon_is_started() {
    let Some(mut machines) = Machines::start() else { return };
    fs::write(machines.server.home().join(".bashrc"), "echo welcome; echo news >&2\n").expect("a script");
    machines.run(&["status"]).expect_success();
    machines.there.kill();
    let refused = machines.run(&["--no-autostart", "status"]);
    assert!(refused.expect_failure_with_hint(4).contains("box: no daemon running"), "{refused:?}");
    machines.run(&["status"]).expect_success();
}
