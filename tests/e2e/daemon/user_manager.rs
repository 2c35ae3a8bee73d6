//! The units of `daemon install` under a real service manager.

use std::fs;

use chorus_proto::Client;
use chorus_proto::methods::daemon::{DiscordState, Status, StatusParams};
use chorus_tests::ctl::chorusctl;
use chorus_tests::discord::{FakeDiscord, TOKEN};
use chorus_tests::process;
use chorus_tests::user_manager::UserManager;
use chorus_tests::{DEADLINE, Home, wait_until};

use crate::home;

const SERVICE: &str = "chorusd.service";

fn show(home: &Home) -> String {
    chorusctl(home, ["context", "show", "--agent", "a"]).expect_success()
}

fn append(home: &Home, text: &str) {
    chorusctl(home, ["context", "append", "--agent", "a", "--role", "user", text]).expect_success();
}

#[test]
fn the_first_command_starts_the_daemon_and_a_stop_is_kept() {
    let home = home();
    chorusctl(&home, ["daemon", "install", "--socket-activation"]).expect_success();
    let Some(manager) = UserManager::start(&home) else { return };
    manager.systemctl_ok(&home, &["enable", "--now", "chorusd.socket"]);
    assert_eq!(manager.main_pid(&home, SERVICE), None);
    chorusctl(&home, ["agent", "init", "a"]).expect_success();
    append(&home, "one");
    let first = manager.main_pid(&home, SERVICE).expect("the daemon of the unit");
    assert_eq!(home.running_pid(), Some(first));
    process::kill(first);
    // The connection waits in the socket, which is the manager's.
    assert!(show(&home).contains("one"));
    let second = home.running_pid().expect("a daemon");
    assert_eq!((manager.main_pid(&home, SERVICE), second == first), (Some(second), false));
    chorusctl(&home, ["daemon", "stop"]).expect_success();
    let states = || manager.systemctl(&home, &["is-active", SERVICE, "chorusd.socket"]);
    wait_until("the service to have stopped", DEADLINE, || (states() == "inactive\nactive\n").then_some(()));
    assert!(show(&home).contains("one"));
    assert_eq!(manager.main_pid(&home, SERVICE), home.running_pid());
    chorusctl(&home, ["daemon", "restart"]).expect_success();
    assert_eq!(manager.main_pid(&home, SERVICE), home.running_pid());
}

#[test]
fn a_service_answers_once_it_is_started_and_is_there_again_after_a_crash() {
    let home = home();
    let discord = FakeDiscord::start();
    discord.create_guild("home");
    chorusctl(&home, ["daemon", "install"]).expect_success();
    let key = home.user_home.join(".config/keys/discord");
    let drop_in = home.user_home.join(".config/systemd/user/chorusd.service.d/override.conf");
    for file in [&key, &drop_in] {
        fs::create_dir_all(file.parent().expect("its directory")).expect("a directory");
    }
    fs::write(&key, TOKEN).expect("a token");
    fs::write(&drop_in, "[Service]\nLoadCredential=token:%h/.config/keys/discord\nRestartSec=100ms\n")
        .expect("a drop-in");
    home.write_config(&format!("[discord]\ncredential = \"token\"\napi_base = \"{}\"\nguilds = [1]\n", discord.url()));
    let Some(manager) = UserManager::start(&home) else { return };
    manager.systemctl_ok(&home, &["enable", "--now", SERVICE]);
    let first = manager.main_pid(&home, SERVICE).expect("the daemon of the unit");
    // Type=notify: it answers at once.
    assert_eq!(home.running_pid(), Some(first));
    let mut client = Client::connect(&home.socket()).expect("the daemon");
    let mut discord = || client.call::<Status>(&StatusParams::default()).expect("status").discord;
    wait_until("Discord", DEADLINE, || (discord().state == Some(DiscordState::Connected)).then_some(()));
    chorusctl(&home, ["agent", "init", "a"]).expect_success();
    append(&home, "one");
    process::kill(first);
    let second = wait_until("another daemon", DEADLINE, || home.running_pid().filter(|pid| *pid != first));
    assert_eq!(manager.main_pid(&home, SERVICE), Some(second));
    assert!(show(&home).contains("one"));
    manager.systemctl_ok(&home, &["stop", SERVICE]);
    assert_eq!(manager.systemctl(&home, &["show", "--property=Result", "--value", SERVICE]), "success\n");
    manager.systemctl_ok(&home, &["start", SERVICE]);
    assert!(show(&home).contains("one"));
}

#[test]
fn the_timer_exports_what_is_saved() {
    let home = home();
    let target = home.user_home.join("exported");
    let args = ["daemon", "install", "--socket-activation", "--nightly-export", target.to_str().expect("UTF-8")];
    chorusctl(&home, args).expect_success();
    let sooner = home.user_home.join(".config/systemd/user/chorus-export.timer.d/sooner.conf");
    fs::create_dir_all(sooner.parent().expect("its directory")).expect("a directory");
    let each_second = "[Timer]\nOnCalendar=\nOnCalendar=*:*:*\nAccuracySec=10ms\nRandomizedDelaySec=0\n";
    fs::write(&sooner, each_second).expect("a drop-in");
    let Some(manager) = UserManager::start(&home) else { return };
    manager.systemctl_ok(&home, &["enable", "--now", "chorusd.socket"]);
    chorusctl(&home, ["agent", "init", "a"]).expect_success();
    append(&home, "kept at night");
    chorusctl(&home, ["context", "save", "--agent", "a", "Night"]).expect_success();
    manager.systemctl_ok(&home, &["enable", "--now", "chorus-export.timer"]);
    let exported = wait_until("the export", DEADLINE, || {
        let file = fs::read_dir(target.join("a")).ok()?.flatten().find(|entry| entry.path().extension().is_some())?;
        fs::read_to_string(file.path()).ok().filter(|text| !text.is_empty())
    });
    assert!(exported.contains("kept at night"), "{exported}");
}
