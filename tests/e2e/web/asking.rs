//! A conversation whose turn asks: what is shown once, where it is, and what stays to be read.

use chorus_proto::methods::approvals::{Deny, DenyParams};
use chorus_proto::{NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use serde_json::json;

use super::{Web, fixture};
use crate::approvals::{agent, calls_of, open, start_fixture};

/// Lets each change fail, as the server may.
const REFUSE: &str = "(() => { const real = window.fetch; window.fetch = async (...given) => \
    given[1]?.method === 'POST' ? new Response('it is too late', { status: 409 }) : real(...given); return true; })()";

#[test]
fn a_reply_that_asks_is_shown_once_and_its_answers_are_seen() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    client.append_all("a", (1..=40).map(|n| NewMessage::text(Role::User, format!("message {n}."))).collect());
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    browser.open(&web.address("/agent/a/live/main"));
    browser.wait_for("document.body.dataset.ready && document.querySelector('#m40')");
    fixture.answer(Response::text(["I look it up."]).then_call("c0", "list_models", &json!({})));
    fixture.reply("Done.");
    let turn = fixture.spawn_send("a", "Which are there?");
    browser.wait_for(
        "document.querySelector('#m42')?.innerText.includes('I look it up.') && document.querySelector('.approval')",
    );
    browser.wait_for("!document.querySelector('#partial .partial')");
    browser.wait_for(
        "document.querySelector('.approval button.no').getBoundingClientRect().bottom <= document.querySelector('#answer').getBoundingClientRect().top",
    );
    browser.type_into("[name=reason]", "no\u{e007}");
    turn.join().expect("the turn").expect("its reply");
    browser.wait_for("[...document.querySelectorAll('#messages article')].pop().innerText.includes('Done.') && document.querySelector('#partial').children.length === 0");
}

#[test]
fn what_went_wrong_stays_to_be_read() {
    let fixture = start_fixture();
    fixture.models().anthropic().queue(calls_of(1));
    let turn = fixture.spawn_send("a", "Which are there?");
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    browser.wait_for("document.querySelector('#pending').innerText.trim() === '1'");
    browser.open(&web.address("/approvals"));
    browser.wait_for("document.body.dataset.ready && document.querySelector('.approval')");
    assert_eq!(browser.evaluate(REFUSE), Some(json!(true)));
    browser.click("button.yes");
    browser.wait_for("document.querySelector('.approval .problem').innerText === 'it is too late'");
    agent(&mut fixture.client(), "b");
    fixture.models().anthropic().queue(calls_of(1));
    fixture.models().anthropic().set_fallback(Response::text(["Done."]));
    let other = fixture.spawn_send("b", "And of b?");
    browser.wait_for("document.querySelectorAll('.approval').length === 2");
    assert_eq!(
        browser.evaluate("document.querySelector('.approval .problem').innerText"),
        Some("it is too late".into())
    );
    let mut client = fixture.client();
    for approval in open(&mut client, 2) {
        client.call::<Deny>(&DenyParams { id: approval.id, reason: None }).expect("approvals.deny");
    }
    for turn in [turn, other] {
        turn.join().expect("the turn").expect("its reply");
    }
}

#[test]
fn a_cancellation_that_failed_says_why() {
    let fixture = fixture();
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    let page = web.address("/agent/docs/live/main");
    browser.open(&page);
    browser.wait_for("document.body.dataset.ready");
    fixture.answer(Response::text(["It never"]).stall());
    let turn = fixture.spawn_send("docs", "Go.");
    browser.wait_for("document.querySelector('form.turn button')");
    assert_eq!(browser.evaluate(REFUSE), Some(json!(true)));
    browser.click("form.turn button");
    browser.wait_for("document.querySelector('form.turn .problem').innerText === 'it is too late'");
    browser.open(&page);
    browser.wait_for("document.body.dataset.ready && document.querySelector('form.turn button')");
    browser.click("form.turn button");
    assert!(turn.join().expect("the turn").is_err(), "it was not cancelled");
}
