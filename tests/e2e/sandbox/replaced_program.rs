//! An update replaces the daemon's program while it runs: the next command still starts with the daemon's own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::{PROFILES, WAYS, run_command, sandbox_info};
use crate::home;
use chorus_tests::{Fixture, Need, skip_without};

#[test]
fn commands_run_as_before_until_the_daemon_is_restarted() {
    for way in WAYS {
        let mut home = home();
        let of_build = home.bins.chorusd;
        let program = home.temp_dir().join("chorusd");
        // By another process: a file that is open for writing here, and so in whatever other tests start meanwhile, cannot be run.
        assert!(Command::new("cp").arg(of_build).arg(&program).status().expect("cp").success());
        home.bins.chorusd = Box::leak(program.to_string_lossy().into_owned().into_boxed_str());
        let builder = Fixture::builder(home).models().tables(PROFILES).model("anthropic/claude-test");
        let mut fixture = builder.env("CHORUS_SANDBOX", way).start();
        fixture.create_agent("a", Some("any"));
        if sandbox_info(&fixture).way != way {
            skip_without(Need::Sandbox, &format!("no sandbox by {way} here"));
            continue;
        }
        assert_eq!(run_command(&fixture, "echo before").ok(), "before\n");
        let next = program.with_extension("next");
        fs::write(&next, "#!/bin/sh\necho the next version >&2\nexit 3\n").expect("another program");
        fs::set_permissions(&next, fs::Permissions::from_mode(0o755)).expect("its mode");
        fs::rename(&next, &program).expect("an update");
        assert_eq!(run_command(&fixture, "echo after").ok(), "after\n");
        fs::remove_file(&program).expect("the package removed");
        assert_eq!(run_command(&fixture, "echo later").ok(), "later\n");
        let copy = fixture.home.path.join("db/chorusd-helper");
        assert!(copy.exists());
        fixture.stop();
        fixture.home.bins.chorusd = of_build;
        fixture.start();
        assert!(!copy.exists(), "the next daemon removes it");
    }
}
