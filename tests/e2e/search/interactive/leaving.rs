//! The terminal is left as it was, however the search ends.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use chorus_tests::fake_daemon::FakeRequest;
use chorus_tests::screen::rows_of;

use chorus_tests::{DEADLINE, Home, InteractiveCommand, Need, skip_without, wait_until};
use rustix::process::Signal;
use serde_json::json;

use super::{SIZE, searches, start, type_until, wait_for_row};
use crate::home;
use crate::search::cli::{hit, result};
use crate::send::cli::daemon;

/// A shell that runs `script`, in which `{}` stands for `chorusctl search`.
fn in_shell(home: &Home, options: &[&str], script: &str) -> Command {
    searches(home, |mut asked| asked.send_result(result(vec![hit(json!({}))])));
    let mut command = home.command("bash");
    command.args(options).args(["-c", &script.replace("{}", &format!("{} search", home.bins.chorusctl))]);
    command
}

/// Runs the command, types `keys` once there is a result, and returns the modes of the terminal from before, and the command.
fn run(command: &Command, keys: &str) -> (String, InteractiveCommand) {
    let mut running = InteractiveCommand::on_terminal_of(command, SIZE.0, SIZE.1);
    let modes = running.initial_modes();
    wait_for_row(&running, "type words to find");
    assert_ne!(running.terminal_modes(), modes);
    type_until(&mut running, "redis", "1 result");
    running.type_text(keys);
    (modes, running)
}

/// The rows of the terminal without those at the end that are empty.
fn last_rows(output: &str) -> Vec<String> {
    let mut rows = rows_of(output, SIZE.0, SIZE.1);
    rows.truncate(rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1));
    rows
}

#[test]
fn esc_and_ctrl_c_leave_nothing_behind() {
    for key in ["\u{1b}", "\u{3}", "\t\u{1b}"] {
        let home = home();
        let command = in_shell(&home, &[], "echo before; {}; echo status $?");
        let (modes, mut running) = run(&command, key);
        running.stdout.wait_for("status 0");
        assert_eq!(running.terminal_modes(), modes, "{key:?}");
        let (_, output, _) = running.wait_for_exit();
        assert_eq!(last_rows(&output), ["before", "status 0"], "{key:?}");
        assert!(output.contains("\u{1b}[?2004l") && !output.ends_with("\u{1b}[?25l"), "{output:?}");
        assert!(output.rfind("\u{1b}[?25h") > output.rfind("\u{1b}[?25l"), "the cursor is hidden: {output:?}");
    }
}

#[test]
fn a_signal_that_ends_it_leaves_the_screen_first() {
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129), (Signal::QUIT, 131)] {
        let home = home();
        // The shell becomes the command, which is the one that gets the signal.
        let (modes, mut running) = run(&in_shell(&home, &[], "echo before; ulimit -c 0; exec {}"), "");
        running.signal(signal);
        running.stdout.wait_for("\u{1b}[?1049l");
        let modes_after =
            wait_until("the modes", DEADLINE, || Some(running.terminal_modes()).filter(|now| *now == modes));
        assert_eq!(modes_after, modes);
        let (ended, output, _) = running.wait_for_exit();
        assert_eq!(ended.signal().map(|number| number + 128), Some(status), "{output:?}");
        assert_eq!(last_rows(&output), ["before"]);
    }
}

#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_until_it_continues() {
    let home = home();
    let script = "{}; stty -a | grep -o -- '[-]*icanon'; read line; fg >/dev/null; echo status $?";
    let command = in_shell(&home, &["-m"], script);
    let (_, mut running) = run(&command, "\u{1a}");
    running.stdout.wait_for("icanon");
    let rows = last_rows(&running.stdout.text());
    assert!(rows.iter().any(|row| row == "icanon") && !rows.iter().any(|row| row.contains("redis")), "{rows:#?}");
    let stopped = running.stdout.text().len();
    running.type_text("\r");
    let again = running.wait_for_rows(SIZE, stopped, "the search", |rows| rows[0] == "> redis");
    assert_eq!(again[1], "1 result · api");
    let rows = type_until(&mut running, "!", "> redis!");
    assert!(rows[2].starts_with("▸ "), "{rows:#?}");
    running.type_text("\u{1b}");
    running.stdout.wait_for("status 0");
}

#[test]
fn a_stop_signal_of_another_program_gives_the_terminal_back_too() {
    let home = home();
    let script = "(read <fifo; pkill -TSTP -P $$ chorusctl) & {}; \
                  stty -a | grep -o -- '[-]*icanon'; read line; fg >/dev/null; echo status $?";
    let dir = tempfile::tempdir().expect("a directory");
    let fifo = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let script = script.replace("fifo", &fifo.to_string_lossy());
    let command = in_shell(&home, &["-m"], &script);
    let (_, mut running) = run(&command, "");
    std::fs::write(&fifo, "\n").expect("the signal is asked for");
    running.stdout.wait_for("icanon");
    let rows = last_rows(&running.stdout.text());
    assert!(rows.iter().any(|row| row == "icanon") && !rows.iter().any(|row| row.contains("redis")), "{rows:#?}");
    let stopped = running.stdout.text().len();
    running.type_text("\r");
    running.wait_for_rows(SIZE, stopped, "the search", |rows| rows[0] == "> redis");
    type_until(&mut running, "!", "> redis!");
    running.type_text("\u{1b}");
    running.stdout.wait_for("status 0");
}

#[test]
fn without_a_shell_that_continues_it_nothing_stops_it() {
    let home = home();
    // The shell becomes the command, which is started by no shell then.
    let (_, mut running) = run(&in_shell(&home, &[], "exec {}"), "");
    running.signal(Signal::TSTP);
    type_until(&mut running, "\u{1a}!", "> redis!");
    running.type_text("\u{1b}");
    let (status, output, _) = running.wait_for_exit();
    assert_eq!(status.code(), Some(0), "{output:?}");
}

#[test]
fn the_same_holds_in_a_container_that_was_entered_from_outside() {
    let test = std::env::current_exe().expect("this program");
    let mut inside = Command::new("unshare");
    inside.args(["--map-current-user", "--pid", "--fork", "--mount-proc", "--"]);
    if !Command::new(inside.get_program())
        .args(inside.get_args())
        .arg("true")
        .status()
        .is_ok_and(|ended| ended.success())
    {
        return skip_without(Need::Sandbox, "namespaces of processes cannot be made");
    }
    let outcome = inside
        .arg(test)
        .args(["search::interactive::leaving::without_a_shell_that_continues_it_nothing_stops_it", "--exact"])
        .output()
        .expect("the test in it");
    let output = String::from_utf8_lossy(&outcome.stdout);
    assert!(outcome.status.success() && output.contains("1 passed"), "{output}");
}

#[test]
fn an_error_is_printed_after_leaving() {
    let home = home();
    let mut command = home.command("bash");
    command.args(["-c", &format!("{} search --no-autostart; echo status $?", home.bins.chorusctl)]);
    let mut running = InteractiveCommand::on_terminal_of(&command, SIZE.0, SIZE.1);
    let (_, output, _) = running.wait_for_exit();
    let rows = last_rows(&output);
    assert!(rows[0].starts_with("error: no daemon running"), "{rows:#?}");
    assert_eq!(rows.last().map(String::as_str), Some("status 4"));
    assert!(!output.contains("\u{1b}[?1049h"), "the screen was not needed: {output:?}");
}

#[test]
fn ctrl_c_ends_what_runs_after_leaving() {
    let home = home();
    let rest = |mut asked: FakeRequest<'_>| match &*asked.method {
        "search" => asked.send_result(result(vec![hit(json!({}))])),
        "context.show" => asked.send_result(
            json!({"agent_name": "api", "messages": [], "working_set": {}, "context": null, "next": null}),
        ),
        "context.restore" => asked.wait_for_disconnect(),
        method => panic!("{method} was asked"),
    };
    let calls = daemon(&home, |asked| panic!("{} was asked", asked.method), rest);
    let mut running = start(&home, &[]);
    type_until(&mut running, "redis", "1 result");
    let modes = running.terminal_modes();
    running.type_text("\u{12}");
    running.stdout.wait_for("\u{1b}[?1049l");
    wait_until("the restore", DEADLINE, || calls.of("context.restore").pop());
    assert_ne!(running.terminal_modes(), modes, "the terminal makes Ctrl-C a signal again");
    running.type_text("\u{3}");
    let (status, output, _) = running.wait_for_exit();
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{output:?}");
}
