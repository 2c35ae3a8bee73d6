//! The log of a daemon whose standard error is journald's.

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{Daemon, ctl};

use crate::home;

/// Runs journald in a sandbox in which `/run` is empty, and a daemon there as a service manager starts one.
const SCRIPT: &str = r#"
mkdir -p /run/systemd/journal /run/log/journal
/lib/systemd/systemd-journald >/run/journald.out 2>&1 &
journald=$!
until [ -S /run/systemd/journal/socket ] && [ -S /run/systemd/journal/stdout ]; do kill -0 $journald || exit 9; done
systemd-cat -t other sh -c 'JOURNAL_STREAM=$(stat -L -c %d:%i /dev/fd/2) exec "$0"' "$CHORUSD" &
daemon=$!
until "$CHORUSCTL" --no-autostart status >/dev/null 2>&1; do kill -0 $daemon || exit 7; done
"$CHORUSCTL" doctor --rebuild >/dev/null || exit 8
"$CHORUSCTL" daemon stop --quiet
wait $daemon
journalctl --sync
exec journalctl --quiet --output=json SYSLOG_IDENTIFIER=chorusd + SYSLOG_IDENTIFIER=other
"#;

#[test]
fn journald_gets_levels_and_fields() {
    let home = home();
    {
        let daemon = Daemon::start(&home);
        let mut client = daemon.client();
        client.init("a");
        client.append("a", "Hello.");
        client.save("a", "Greeting");
    }
    let mut command = home.command("bwrap");
    command.args(["--unshare-user", "--unshare-pid", "--uid", "0", "--gid", "0", "--bind", "/", "/", "--dev", "/dev"]);
    command.args(["--proc", "/proc", "--tmpfs", "/run", "--die-with-parent", "sh", "-c", SCRIPT]);
    command.env("CHORUSD", home.bins.chorusd).env("CHORUSCTL", home.bins.chorusctl);
    let shown = ctl::run_command(command, b"").expect_success();
    let entries: Vec<serde_json::Value> =
        shown.lines().map(|line| serde_json::from_str(line).expect("an entry")).collect();
    let entry = entries
        .iter()
        .find(|entry| entry["CHORUS_SESSIONS"] == "1")
        .unwrap_or_else(|| panic!("no field of a log line in {entries:#?}"));
    assert_eq!(
        (&entry["PRIORITY"], &entry["SYSLOG_IDENTIFIER"], &entry["_TRANSPORT"]),
        (&"6".into(), &"chorusd".into(), &"journal".into())
    );
    let message = entry["MESSAGE"].as_str().expect("a text");
    assert!(message.starts_with("index rebuilt agents=1 sessions=1 took="), "{message}");
    assert!(entry["CODE_FILE"].as_str().expect("a file").ends_with("catalog_rebuild.rs"), "{entry}");
    // Nothing stands there twice, as text of standard error.
    let copies = entries.iter().filter(|entry| entry["MESSAGE"].to_string().contains("index rebuilt")).count();
    assert_eq!(copies, 1, "{entries:#?}");
    // The log file has the lines, too.
    let log = std::fs::read_to_string(home.path.join("log/chorusd.log")).expect("the log");
    assert!(log.contains("index rebuilt agents=1 sessions=1"), "{log}");
}
