//! A daemon that was started in one environment is found from every other: a login, cron, `su`, a service, a container.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use chorus_tests::ctl::run_command;
use chorus_tests::process::is_root;
use chorus_tests::{Home, Output};

use crate::home;

const NOBODY: u32 = 65534;

/// An ordinary user with the programs in PATH; root becomes one.
struct Person {
    home: Home,
    is_other: bool,
}

/// The value of `XDG_RUNTIME_DIR` in an environment.
const ENVIRONMENTS: [(&str, Option<&str>); 5] = [
    ("login", Some("runtime")),
    ("cron, su -, a container or a system service", None),
    ("a session that has ended", Some("ended/7")),
    ("su", Some("runtime-of-root")),
    ("a directory for everybody", Some("shared")),
];

impl Person {
    fn new() -> Self {
        let person = Self { home: home(), is_other: is_root() };
        let mode = |path: PathBuf, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
        mode(person.outside(""), 0o755);
        fs::create_dir(person.outside("bin")).expect("a directory");
        for (program, name) in [(person.home.bins.chorusctl, "chorusctl"), (person.home.bins.chorusd, "chorusd")] {
            let copy = person.outside("bin").join(name);
            if fs::hard_link(program, &copy).is_err() {
                fs::copy(program, &copy).expect("a program that the user can read");
            }
            mode(copy, 0o755);
        }
        // Where `cargo install` puts them.
        fs::create_dir(person.outside("user/.cargo")).expect("a directory");
        symlink(person.outside("bin"), person.outside("user/.cargo/bin")).expect("a link");
        for (name, bits) in [("runtime", 0o700), ("runtime-of-root", 0o700), ("shared", 0o1777)] {
            fs::create_dir(person.outside(name)).expect("a directory");
            mode(person.outside(name), bits);
        }
        if person.is_other {
            for name in ["runtime", "user"] {
                chown(person.outside(name), Some(NOBODY), Some(NOBODY)).expect("given to the user");
            }
        }
        person
    }

    fn outside(&self, name: &str) -> PathBuf {
        self.home.temp_dir().join(name)
    }

    /// A command line of the user's shell in an environment.
    fn shell(&self, line: &str, runtime: Option<&str>) -> Output {
        let path = std::env::var("PATH").unwrap_or_default();
        self.shell_with_path(line, runtime, &format!("{}:{path}", self.outside("bin").display()))
    }

    /// A line of the user's crontab, which has a PATH of its own.
    fn cron(&self, line: &str, runtime: Option<&str>) -> Output {
        self.shell_with_path(line, runtime, "/usr/bin:/bin")
    }

    fn shell_with_path(&self, line: &str, runtime: Option<&str>, path: &str) -> Output {
        let mut command = Command::new("sh");
        command.args(["-c", line]).env_clear().current_dir("/").env("HOME", &self.home.user_home).env("PATH", path);
        if let Some(runtime) = runtime {
            command.env("XDG_RUNTIME_DIR", self.outside(runtime));
        }
        if self.is_other {
            command.uid(NOBODY).gid(NOBODY);
        }
        run_command(command, b"")
    }

    fn pid(&self, runtime: Option<&str>) -> u64 {
        let status = self.shell("chorusctl --json --no-autostart status", runtime).expect_json();
        status["daemon"]["pid"].as_u64().expect("a pid")
    }
}

/// The line of the README, without its five fields of time.
fn cron_line() -> String {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
    let readme = fs::read_to_string(readme).expect("the README");
    let line = readme.lines().find_map(|line| line.trim().strip_prefix("17 * * * *")).expect("a cron line");
    line.trim().to_owned()
}

#[test]
fn doctor_says_why_the_socket_is_in_the_home() {
    let person = Person::new();
    person.shell("chorusctl daemon start", None).expect_success();
    let said = person.shell("chorusctl doctor", None);
    assert!(said.stdout.contains("because the daemon was started without XDG_RUNTIME_DIR"), "{said:?}");
    person.shell("chorusctl daemon stop", None).expect_success();
}

#[test]
fn whoever_started_it_it_is_found_used_and_stopped_from_everywhere() {
    let person = Person::new();
    person
        .shell("chorusctl agent init a && chorusctl context append one && chorusctl context save s", None)
        .expect_success();
    person.shell("chorusctl daemon stop", None).expect_success();
    for (n, (starter, started_in)) in ENVIRONMENTS.into_iter().enumerate() {
        // The line starts it where none runs.
        let line = cron_line();
        assert!(!line.contains("XDG_RUNTIME_DIR"), "{line}");
        person.cron(&line, started_in).expect_success();
        let exported: Vec<_> = fs::read_dir(person.home.user_home.join("chorus-backup")).expect("a backup").collect();
        assert!(!exported.is_empty(), "{starter}");
        let pid = person.pid(started_in);
        for (name, runtime) in ENVIRONMENTS {
            assert_eq!(person.pid(runtime), pid, "started in: {starter}; asked from: {name}");
            person.cron(&line, runtime).expect_success();
            person.shell("chorusctl daemon start", runtime).expect_success();
            assert_eq!(person.pid(runtime), pid, "started in: {starter}; started again from: {name}");
        }
        // From another environment each time.
        let (_, stopper) = ENVIRONMENTS[(n + 1) % ENVIRONMENTS.len()];
        person.shell("chorusctl daemon restart", stopper).expect_success();
        assert_ne!(person.pid(started_in), pid, "{starter}");
        person.shell("chorusctl daemon stop", stopper).expect_success();
        person.shell("chorusctl --no-autostart status", started_in).expect_failure_with_hint(4);
    }
}
