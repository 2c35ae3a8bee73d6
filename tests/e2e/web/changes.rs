//! What changes under a user's hands: approvals that are answered elsewhere, an undo, a command that was started again.

use std::io::Write as _;
use std::net::TcpStream;

use chorus_proto::methods::approvals::{Deny, DenyParams};
use chorus_proto::methods::context::{Rewind, RewindParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::free_port::free_port;
use chorus_tests::{DEADLINE, wait_until};
use rustix::process::Signal;
use serde_json::json;

use super::{Web, fixture};
use crate::approvals::{ask_for_two_agents, decisions, open, start_fixture};

#[test]
fn what_is_answered_elsewhere_keeps_its_place() {
    let fixture = start_fixture();
    let (one, other) = ask_for_two_agents(&fixture, 1);
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    browser.open(&web.address("/approvals"));
    browser.wait_for("document.body.dataset.ready && document.querySelectorAll('.approval').length === 2");
    let listed = open(&mut fixture.client(), 2);
    let place = "Math.round(document.querySelectorAll('.approval')[document.querySelectorAll('.approval').length - 1].querySelector('button.yes').getBoundingClientRect().top)";
    browser.type_into("article.approval:nth-of-type(2) [name=reason]", "not ye");
    let before = browser.evaluate(place).expect("a place");
    let first = listed.iter().find(|approval| approval.agent == "a").expect("that of a").id.clone();
    fixture.client().call::<Deny>(&DenyParams { id: first, reason: None }).expect("approvals.deny");
    browser.wait_for("document.querySelector('.decided')?.innerText.startsWith('answered elsewhere')");
    assert_eq!(browser.evaluate(place), Some(before), "it moved");
    // What is being written stays, and where.
    browser.press("t");
    assert_eq!(browser.evaluate("document.activeElement.value"), Some("not yet".into()));
    one.join().expect("the turn").expect("its reply");
    browser.press("\u{e007}");
    browser.wait_for("!document.querySelector('.approval') && !document.querySelector('.decided')");
    other.join().expect("the turn").expect("its reply");
    assert_eq!(decisions(&fixture).iter().filter(|decision| *decision == "approved").count(), 0);
}

#[test]
fn a_button_that_moved_just_now_answers_nothing() {
    let fixture = start_fixture();
    let (one, other) = ask_for_two_agents(&fixture, 1);
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    browser.open(&web.address("/approvals"));
    browser.wait_for("document.body.dataset.ready && document.querySelectorAll('.approval').length === 2");
    // The clock stands still, so that the test may take its time.
    let moved = "(() => { const now = performance.now() + 1e6; performance.now = () => now; \
                 document.querySelector('h1').style.paddingBottom = '3rem'; return true; })()";
    assert_eq!(browser.evaluate(moved), Some(json!(true)));
    browser.click("button.yes");
    browser.wait_for("document.querySelector('.answers .problem').innerText.includes('press again')");
    assert_eq!(decisions(&fixture), ["ask", "ask"]);
    assert_eq!(
        browser
            .evaluate("(() => { const now = performance.now() + 1e6; performance.now = () => now; return true; })()"),
        Some(json!(true))
    );
    browser.click("button.yes");
    browser.wait_for("document.querySelectorAll('.approval').length === 1");
    let rest = open(&mut fixture.client(), 1).remove(0).id;
    fixture.client().call::<Deny>(&DenyParams { id: rest, reason: None }).expect("approvals.deny");
    one.join().expect("the turn").expect("its reply");
    other.join().expect("the turn").expect("its reply");
}

#[test]
fn an_undone_message_does_not_stay() {
    let fixture = fixture();
    let mut client = fixture.client();
    client.append("docs", "kept");
    client.append("docs", "taken back");
    let web = Web::start(&fixture.home, &[]);
    let (cookie, host) = (web.sign_in(), web.host());
    let sent = [("Host", &*host), ("Cookie", &*cookie), ("Sec-Fetch-Site", "same-origin")];
    let page = web.request("GET", "/agent/docs/live/main", &sent, "").body;
    let value = |name: &str| {
        let rest = page.split_once(&format!("data-{name}=\"")).expect("the attribute").1;
        rest.split('"').next().expect("a value").to_owned()
    };
    let newer = format!("/agent/docs/live/main/new?after=2&context={}&last={}", value("context"), value("last"));
    let answer = web.request("GET", &newer, &sent, "");
    assert_eq!((answer.status, &*answer.body, answer.header("x-total")), (200, "", Some("2")), "{answer:?}");
    client.call::<Rewind>(&RewindParams { agent: Some("docs".into()), ..Default::default() }).expect("context.rewind");
    client.append("docs", "in its place");
    assert_eq!(web.request("GET", &newer, &sent, "").status, 409);
}

#[test]
fn a_command_that_was_started_again_asks_for_its_link() {
    let fixture = fixture();
    let port = free_port().to_string();
    let mut web = Web::start(&fixture.home, &["--port", &port]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    browser.open(&web.address("/agent/docs/live/main"));
    browser.wait_for("document.body.dataset.ready");
    browser.type_into("#text", "a draft");
    web.running.signal(Signal::TERM);
    web.running.wait_for_exit();
    browser.wait_for_text("cannot be reached");
    let web = Web::start(&fixture.home, &["--port", &port]);
    browser.wait_for_text("not signed in");
    assert_eq!(browser.evaluate("document.querySelector('#text').value"), Some("a draft".into()));
    browser.open(&web.link);
    browser.wait_for("location.pathname === document.body.dataset.root + '/' && document.body.dataset.ready");
    browser.open(&web.address("/agent/docs/live/main"));
    browser.wait_for("document.body.dataset.ready && document.querySelector('#text').value === 'a draft'");
}

#[test]
fn strangers_do_not_hold_all_connections() {
    let fixture = fixture();
    let web = Web::start(&fixture.home, &[]);
    let (cookie, host) = (web.sign_in(), web.host());
    let request = format!("GET {}/script.js HTTP/1.1\r\nHost: {host}\r\n\r\n", web.prefix()).repeat(2000);
    let mut held = Vec::new();
    for _ in 0..300 {
        let mut connection = TcpStream::connect(("127.0.0.1", web.port)).expect("a connection");
        connection.set_nonblocking(true).expect("a setting");
        // Its answers are never read.
        let _ = connection.write(request.as_bytes());
        held.push(connection);
    }
    let answer = wait_until("an answer", DEADLINE / 2, || {
        Some(web.request("GET", "/", &[("Host", &host), ("Cookie", &cookie)], ""))
    });
    assert_eq!(answer.status, 200, "{answer:?}");
    drop(held);
}
