//! Messages that are typed while connections fail or the screen is left: each is recorded once.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use chorus_tests::process::signal;
use chorus_tests::screen::rows_of;
use chorus_tests::{DEADLINE, Fixture, InteractiveCommand, wait_until};
use rustix::process::Signal;

use super::{SIZE, fixture, leave, start, type_until, wait_for_row, wait_until_no_row};

/// The screen with the conversation of `web` open.
fn open_web(fixture: &Fixture) -> InteractiveCommand {
    let mut running = start(&fixture.home, &["--agent", "web"], "2 agents, 0 active");
    type_until(&mut running, "\r", "no messages yet; type below");
    running
}

/// Waits until these are the messages of `web`: a reply is on the screen before it is recorded.
fn wait_for_texts(fixture: &Fixture, expected: [&str; 2]) {
    let texts = || fixture.client().messages("web").into_iter().map(|message| message.content).collect::<Vec<_>>();
    wait_until("the messages", DEADLINE, || (texts() == expected).then_some(()));
}

#[test]
fn a_message_in_mid_send_is_recorded_once_after_the_daemon_is_back() {
    let mut fixture = fixture();
    fixture.reply("An answer after the restart.");
    let mut running = open_web(&fixture);
    signal(fixture.daemon().pid, Signal::STOP);
    type_until(&mut running, "Are you there?\r", "you  sending …");
    fixture.kill();
    wait_for_row(&running, "you  not confirmed; sent again");
    fixture.start();
    wait_for_row(&running, "  An answer after the restart.");
    let rows = wait_until_no_row(&running, "you  not confirmed");
    assert!(!rows.iter().any(|row| row.contains("sending …")), "{rows:#?}");
    wait_for_texts(&fixture, ["Are you there?", "An answer after the restart."]);
    type_until(&mut running, "\u{1b}", "AGENT ");
    leave(running);
}

/// Forwards connections to the socket `to`. The first one with a message is closed as soon as the daemon says that it is recorded.
fn start_proxy(at: &Path, to: &Path) -> Arc<AtomicBool> {
    let listener = UnixListener::bind(at).expect("a socket");
    let (to, has_cut) = (to.to_owned(), Arc::new(AtomicBool::new(false)));
    let cut = has_cut.clone();
    std::thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let Ok(server) = UnixStream::connect(&to) else { continue };
            let (mut requests, mut to_server) =
                (client.try_clone().expect("a handle"), server.try_clone().expect("one"));
            let (mut answers, mut to_client) = (server, client);
            let (is_send, cut) = (Arc::new(AtomicBool::new(false)), cut.clone());
            let sends = is_send.clone();
            std::thread::spawn(move || {
                let mut buffer = [0; 64 << 10];
                while let Ok(length @ 1..) = requests.read(&mut buffer) {
                    if String::from_utf8_lossy(&buffer[..length]).contains("\"method\":\"send\"") {
                        sends.store(true, Ordering::SeqCst);
                    }
                    if to_server.write_all(&buffer[..length]).is_err() {
                        break;
                    }
                }
                let _ = to_server.shutdown(std::net::Shutdown::Both);
            });
            std::thread::spawn(move || {
                let mut buffer = [0; 64 << 10];
                while let Ok(length @ 1..) = answers.read(&mut buffer) {
                    let is_cut = is_send.load(Ordering::SeqCst) && !cut.swap(true, Ordering::SeqCst);
                    if is_cut || to_client.write_all(&buffer[..length]).is_err() {
                        break;
                    }
                }
                let _ = to_client.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    has_cut
}

#[test]
fn a_message_whose_answer_was_lost_is_not_recorded_twice() {
    let fixture = fixture();
    fixture.answer(Response::text(["One "]).gate("go").then_text("answer."));
    let socket = fixture.home.path.join("proxy.sock");
    let has_cut = start_proxy(&socket, &fixture.home.socket());
    let socket = socket.to_str().expect("UTF-8");
    let mut running = start(&fixture.home, &["--agent", "web", "--socket", socket], "2 agents, 0 active");
    type_until(&mut running, "\r", "no messages yet; type below");
    type_until(&mut running, "Only once.\r", "you  not confirmed; sent again");
    assert!(has_cut.load(Ordering::SeqCst));
    fixture.models().wait_for_gate("go");
    wait_until_no_row(&running, "you  not confirmed");
    fixture.models().open_gate("go");
    wait_for_row(&running, "  One answer.");
    wait_for_texts(&fixture, ["Only once.", "One answer."]);
    assert_eq!(fixture.models().requests().len(), 1);
    type_until(&mut running, "\u{1b}", "AGENT ");
    leave(running);
}

#[test]
fn a_message_is_sent_before_the_screen_is_left() {
    let fixture = fixture();
    fixture.reply("Yes.");
    let mut running = open_web(&fixture);
    running.type_text("Sent in a hurry?\r\u{3}");
    let (status, output, _) = running.wait_for_exit();
    assert_eq!(status.code(), Some(0), "{output:?}");
    wait_for_texts(&fixture, ["Sent in a hurry?", "Yes."]);
}

#[test]
fn a_message_that_nobody_took_is_printed_when_the_screen_is_left() {
    let fixture = fixture();
    let mut running = open_web(&fixture);
    signal(fixture.daemon().pid, Signal::STOP);
    running.type_text("Lost?\r\u{3}");
    let (status, output, _) = running.wait_for_exit();
    signal(fixture.daemon().pid, Signal::CONT);
    assert_eq!(status.code(), Some(1), "{output:?}");
    let rows = rows_of(&output, SIZE.0, SIZE.1);
    let has_row = |text: &str| rows.iter().any(|row| row == text);
    assert!(has_row("error: a message to web may not have been sent"), "{rows:#?}");
    assert!(has_row("hint: its text: Lost?"), "{rows:#?}");
}
