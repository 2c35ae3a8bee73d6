//! config.toml: what cannot be meant is refused before anything is touched.

use chorus_proto::methods::context::{Show, ShowParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, Home};

use crate::home;

fn refused(home: &Home, config: &str) -> String {
    home.write_config(config);
    let (status, said) = Daemon::try_start(home, home.command(home.bins.chorusd)).expect_err("refused");
    assert_eq!(status.code(), Some(2), "{config}: {said}");
    assert!(said.contains("error: ") && !said.contains("panicked"), "{said}");
    assert!(!home.path.join("db").exists(), "nothing was made");
    said
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_nearest() {
    let home = home();
    let said = refused(&home, "durability = \"always\"\n\nmax_conections = 7\n");
    for word in ["max_conections", "max_connections", "3"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let said = refused(&home, "[defaults]\nidle_timout = \"5m\"\n");
    for word in ["idle_timout", "idle_timeout", "2"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn a_restart_with_a_broken_configuration_leaves_the_running_daemon_alone() {
    let home = home();
    let daemon = Daemon::start(&home);
    let pid = home.running_pid();
    home.write_config("max_conections = 7\n");
    let refused = chorusctl(&home, ["daemon", "restart"]);
    assert_eq!(refused.status, 2, "{refused:?}");
    assert!(refused.stderr.contains("max_conections") && refused.stderr.contains("was not stopped"), "{refused:?}");
    assert_eq!(home.running_pid(), pid, "it still runs");
    home.write_config("max_connections = 7\n");
    chorusctl(&home, ["daemon", "restart"]).expect_success();
    assert_ne!(home.running_pid(), pid);
    chorusctl(&home, ["daemon", "stop"]).expect_success();
    drop(daemon);
}

#[test]
fn values_that_cannot_be_meant_are_refused() {
    let home = home();
    for config in [
        "max_connections = 0\n",
        "max_connections = \"many\"\n",
        "max_connections = -1\n",
        "max_frame = \"16 bananas\"\n",
        "max_frame = \"0\"\n",
        "durability = \"sometimes\"\n",
        "frame_timeout = \"soon\"\n",
        "resume_on_start = \"yes\"\n",
        "[defaults]\nidle_timeout = \"soon\"\n",
        "[defaults]\nwindow_messages = -5\n",
        "not toml at all\n",
        "durability = \"always\"\ndurability = \"always\"\n",
    ] {
        refused(&home, config);
    }
}

#[test]
fn everything_the_specification_lists_is_accepted() {
    let home = home();
    let config = r#"
        durability = "always"
        resume_on_start = true
        max_frame = "16MiB"
        max_connections = 1024
        [defaults]
        idle_timeout = "30m"
        permissions = "standard"
        window_messages = 50
        compact_at_tokens = 15000
    "#;
    Daemon::start_with(&home, config).raw_connection().check_hello();
}

#[test]
fn defaults_are_those_of_new_agents() {
    let home = home();
    let daemon = Daemon::start_with(&home, "[defaults]\nidle_timeout = \"5m\"\n");
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let shown = client.call::<Show>(&ShowParams { agent: Some("a".into()), ..Default::default() }).expect("shown");
    let context = shown.context.expect("a context");
    let minutes = context.idle_deadline_at.expect("a deadline").duration_since(context.last_activity_at).as_mins();
    assert!((4..=5).contains(&minutes), "{context:?}");
}
