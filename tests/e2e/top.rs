//! `chorusctl top`, on a terminal.

mod answers;
mod reading;
mod sends;

use std::fs::OpenOptions;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use chorus_proto::methods::context::{Save, SaveParams};
use chorus_proto::{Client, EventType};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::screen::rows_of;
use chorus_tests::{DEADLINE, Fixture, Home, InteractiveCommand, wait_until};
use rustix::process::Signal;
use rustix::termios::{Action, tcflow};

use crate::approvals::{decisions, queue_calls, start_fixture};
use crate::home;

const SIZE: (u16, u16) = (80, 24);

/// A daemon with a model server and the agents `api` and `web`.
fn fixture() -> Fixture {
    let fixture = Fixture::builder(home()).models().model(chorus_tests::fixture::ANTHROPIC_MODEL).start();
    fixture.create_agent("api", None);
    fixture.create_agent("web", None);
    fixture
}

fn command(home: &Home, args: &[&str]) -> Command {
    let mut command = home.command(home.bins.chorusctl);
    command.arg("top").args(args);
    command
}

/// Runs it until a row contains `shown`.
fn start(home: &Home, args: &[&str], shown: &str) -> InteractiveCommand {
    let running = InteractiveCommand::on_terminal_of(&command(home, args), SIZE.0, SIZE.1);
    wait_for_row(&running, shown);
    running
}

fn wait_for_row(running: &InteractiveCommand, text: &str) -> Vec<String> {
    running.wait_for_rows(SIZE, 0, text, |rows| rows.iter().any(|row| row.contains(text)))
}

fn wait_until_no_row(running: &InteractiveCommand, text: &str) -> Vec<String> {
    running.wait_for_rows(SIZE, 0, text, |rows| !rows.iter().any(|row| row.contains(text)))
}

/// Types a text and waits until a row contains `shown`, which no row may contain before: the next text would be typed too early.
fn type_until(running: &mut InteractiveCommand, text: &str, shown: &str) -> Vec<String> {
    let before = rows_of(&running.stdout.text(), SIZE.0, SIZE.1);
    assert!(!before.iter().any(|row| row.contains(shown)), "{shown:?} is shown before {text:?} is typed: {before:#?}");
    running.type_text(text);
    wait_for_row(running, shown)
}

/// Leaves by `q`. The terminal is as it was.
fn leave(mut running: InteractiveCommand) {
    let modes = running.initial_modes();
    running.type_text("q");
    running.stdout.wait_for("\u{1b}[?1049l");
    wait_until("the modes", DEADLINE, || (running.terminal_modes() == modes).then_some(()));
    let (status, output, _) = running.wait_for_exit();
    assert_eq!(status.code(), Some(0), "{output:?}");
    assert!(output.rfind("\u{1b}[?25h") > output.rfind("\u{1b}[?25l"), "the cursor is hidden: {output:?}");
    assert!(rows_of(&output, SIZE.0, SIZE.1).iter().all(String::is_empty), "{output:?}");
}

#[test]
fn agents_are_listed_as_they_change() {
    let fixture = fixture();
    let running = start(&fixture.home, &[], "web");
    let rows = wait_for_row(&running, "2 agents, 0 active");
    assert!(rows[0].starts_with("chorusd ") && rows[2].starts_with("AGENT "), "{rows:#?}");
    fixture.client().append("web", "hello");
    wait_for_row(&running, "2 agents, 1 active");
    let rows = running.wait_for_rows(SIZE, 0, "the active one first", |rows| rows[3].starts_with("web "));
    assert!(rows[3].contains("active") && rows[3].contains("30 min"), "{rows:#?}");
    fixture.create_agent("later", None);
    wait_for_row(&running, "later");
    let destroyed = chorusctl(&fixture.home, ["agent", "destroy", "later", "--yes"]);
    destroyed.expect_success();
    wait_until_no_row(&running, "later");
    leave(running);
}

#[test]
fn a_message_is_answered_live() {
    let fixture = fixture();
    fixture.reply("The loader skips rows without a country.");
    let mut running = start(&fixture.home, &["--agent", "web"], "web");
    type_until(&mut running, "\r", "no messages yet; type below");
    type_until(&mut running, "Why are rows missing?\r", "  The loader skips rows without a country.");
    let rows = wait_for_row(&running, "2 messages");
    assert!(rows[0].starts_with("web · 2 messages") && rows[0].ends_with("anthropic/claude-test"), "{rows:#?}");
    let said = |what: &str| rows.iter().position(|row| row.contains(what));
    assert!(said("Why are rows missing?") < said("The loader skips"), "{rows:#?}");
    // What others say there is shown, too.
    fixture.client().append("web", "from elsewhere");
    wait_for_row(&running, "  from elsewhere");
    type_until(&mut running, "\u{1b}", "AGENT ");
    leave(running);
    assert_eq!(fixture.client().messages("web").len(), 3);
}

#[test]
fn an_approval_is_answered() {
    let fixture = start_fixture();
    queue_calls(&fixture, 1);
    let mut running = start(&fixture.home, &[], "1 agent, 0 active");
    let turn = fixture.spawn_send("a", "Which are there?");
    wait_for_row(&running, "? a wants to use a tool");
    wait_for_row(&running, "1 approval (a)");
    type_until(&mut running, "a", "│ list_models");
    type_until(&mut running, "y", "no pending approvals");
    let sent = turn.join().expect("the turn").expect("its reply");
    assert_eq!(sent.reply, "Done.");
    assert_eq!(decisions(&fixture), ["ask", "approved"]);
    type_until(&mut running, "\u{1b}", "AGENT ");
    leave(running);
}

#[test]
fn a_daemon_that_goes_away_is_found_again() {
    let mut fixture = fixture();
    fixture.client().append("api", "hello");
    let mut running = start(&fixture.home, &[], "2 agents, 1 active");
    fixture.kill();
    // It has tried again a few times.
    let rows = wait_for_row(&running, "no connection to chorusd for 3 s");
    assert!(rows.iter().any(|row| row.starts_with("api ")), "the last picture: {rows:#?}");
    assert!(
        !fixture.home.socket().exists() || Client::connect(&fixture.home.socket()).is_err(),
        "it started no daemon"
    );
    fixture.start();
    wait_until_no_row(&running, "no connection to chorusd");
    // Events arrive again, also of a conversation.
    type_until(&mut running, "\r", "  hello");
    fixture.client().append("api", "after the restart");
    wait_for_row(&running, "  after the restart");
    type_until(&mut running, "\u{1b}", "2 agents, 1 active");
    fixture.create_agent("later", None);
    wait_for_row(&running, "3 agents, 1 active");
    fixture.client().append("web", "hello");
    wait_for_row(&running, "3 agents, 2 active");
    leave(running);
}

#[test]
fn a_saved_conversation_is_found_and_restored() {
    let fixture = fixture();
    let mut client = fixture.client();
    client.append("api", "we drop the cache for sessions");
    let params =
        SaveParams { agent: Some("api".into()), description: Some("Cache".into()), clear: true, ..Default::default() };
    client.call::<Save>(&params).expect("context.save");
    client.append("api", "something else");
    let mut running = start(&fixture.home, &[], "2 agents, 1 active");
    type_until(&mut running, "/", "type to search");
    type_until(&mut running, "drop cache", "we drop the cache");
    type_until(&mut running, "\r", "r restore");
    wait_for_row(&running, "▌ we drop the cache for sessions");
    type_until(&mut running, "\u{1b}", "/ drop cache");
    type_until(&mut running, "\u{1b}", "AGENT ");
    type_until(&mut running, "h", "History of api");
    wait_for_row(&running, "Cache");
    type_until(&mut running, "r", "Its 1 unsaved message is saved first.");
    type_until(&mut running, "y", "restored ");
    wait_for_row(&running, "  we drop the cache for sessions");
    assert_eq!(client.messages("api")[0].content, "we drop the cache for sessions");
    let saved = fixture.wait_for_events(EventType::ContextSaved, 2);
    assert_eq!(saved[1].data["trigger"], "restore");
    type_until(&mut running, "\u{1b}", "AGENT ");
    type_until(&mut running, "t", "Tree of api  2 saved");
    type_until(&mut running, "\u{1b}", "AGENT ");
    leave(running);
}

#[test]
fn a_terminal_may_be_too_small_for_a_while() {
    let fixture = fixture();
    let running = start(&fixture.home, &[], "web");
    let before = running.stdout.text().len();
    running.resize(30, 8);
    running.wait_for_rows((30, 8), before, "the size", |rows| rows[0] == "terminal too small");
    let before = running.stdout.text().len();
    running.resize(SIZE.0, SIZE.1);
    running.wait_for_rows(SIZE, before, "the list", |rows| rows.iter().any(|row| row.starts_with("web ")));
    leave(running);
}

#[test]
fn without_a_terminal_it_says_what_to_do_instead() {
    let home = home();
    let output = chorusctl(&home, ["top"]);
    let error = output.expect_failure_with_hint(2);
    assert!(error.contains("`chorusctl top` needs a terminal that can move its cursor"), "{error}");
    assert!(!home.socket().exists(), "no daemon was started");
}

#[test]
fn a_signal_that_ends_it_leaves_the_screen_first() {
    let fixture = fixture();
    let mut running = start(&fixture.home, &[], "web");
    let modes = running.initial_modes();
    running.signal(Signal::TERM);
    running.stdout.wait_for("\u{1b}[?1049l");
    wait_until("the modes", DEADLINE, || (running.terminal_modes() == modes).then_some(()));
    let (status, output, _) = running.wait_for_exit();
    assert_eq!(status.signal(), Some(Signal::TERM.as_raw()), "{output:?}");
}

#[test]
fn a_signal_ends_it_although_the_terminal_reads_nothing() {
    let fixture = fixture();
    let mut running = start(&fixture.home, &[], "web");
    let terminal = OpenOptions::new().read(true).write(true).open(format!("/proc/{}/fd/1", running.pid()));
    tcflow(terminal.expect("the terminal"), Action::OOff).expect("it stops");
    running.type_text("\u{c}");
    running.signal(Signal::TERM);
    let (status, output, _) = running.wait_for_exit();
    assert_eq!(status.signal(), Some(Signal::TERM.as_raw()), "{output:?}");
}

#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_until_it_continues() {
    let fixture = fixture();
    let mut shell = fixture.home.command("bash");
    let chorusctl = fixture.home.bins.chorusctl;
    shell.args([
        "-m",
        "-c",
        &format!("{chorusctl} top; stty -a | grep -o -- '[-]*icanon'; read line; fg >/dev/null; echo status $?"),
    ]);
    let mut running = InteractiveCommand::on_terminal_of(&shell, SIZE.0, SIZE.1);
    wait_for_row(&running, "web");
    running.type_text("\u{1a}");
    running.stdout.wait_for("icanon");
    assert!(!running.stdout.text().contains("-icanon"), "{}", running.stdout.text());
    let stopped = running.stdout.text().len();
    running.type_text("\r");
    running.wait_for_rows(SIZE, stopped, "the list", |rows| rows.iter().any(|row| row.starts_with("web ")));
    // Drawn again on request, too.
    let before = running.stdout.text().len();
    running.type_text("\u{c}");
    running.wait_for_rows(SIZE, before, "the list", |rows| rows.iter().any(|row| row.starts_with("web ")));
    running.type_text("q");
    running.stdout.wait_for("status 0");
}
