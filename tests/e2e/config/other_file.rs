//! A shell whose environment is another one than that of the daemon.

use std::fs;

use chorus_tests::Daemon;
use chorus_tests::ctl::{Output, run_command};

use crate::home;

#[test]
fn a_file_that_the_daemon_does_not_use_is_not_mistaken_for_its_own() {
    let home = home();
    let _daemon = Daemon::start_with(&home, "approval_timeout = \"7m\"\n");
    let (used, named) = (home.path.join("config.toml"), home.temp_dir().join("named.toml"));
    fs::write(&named, "").expect("a file");
    let ctl = |args: &[&str]| -> Output {
        let mut command = home.command(home.bins.chorusctl);
        command.arg("config").args(args).env("CHORUS_CONFIG", &named).env("CHORUS_LOG_LEVEL", "debug");
        run_command(command, b"")
    };
    let both = format!("CHORUS_CONFIG names {}, but the daemon uses {}", named.display(), used.display());
    for args in [&["set", "approval_timeout", "8m"][..], &["unset", "approval_timeout"]] {
        let said = ctl(args);
        assert!(said.expect_failure_with_hint(6).contains(&both), "{said:?}");
    }
    assert_eq!(fs::read_to_string(&used).expect("the file"), "approval_timeout = \"7m\"\n");
    assert_eq!(fs::read_to_string(&named).expect("the file"), "");
    for args in [&["show"][..], &["get", "approval_timeout"], &["path"]] {
        let said = ctl(args);
        assert!(said.status == 0 && said.stderr.contains(&format!("warning: {both}")), "{said:?}");
    }
    let shown = ctl(&["show"]);
    let warned = "warning: CHORUS_LOG_LEVEL is set here, but not in the environment of the daemon";
    assert!(shown.stderr.contains(warned), "{shown:?}");
}
