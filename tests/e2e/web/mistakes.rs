//! What a user does by mistake: Enter in the wrong box, a message that is sent twice or changed while it is being sent.

use chorus_tests::client_ext::ClientExt as _;
use serde_json::json;

use super::{Web, fixture};
use crate::approvals::{ask, decisions, queue_calls, start_fixture};

const ENTER: &str = "\u{e007}";

#[test]
fn enter_in_the_reason_denies() {
    let fixture = start_fixture();
    queue_calls(&fixture, 1);
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    let turn = fixture.spawn_send("a", "Which are there?");
    browser.wait_for("document.querySelector('#pending').innerText.trim() === '1'");
    browser.open(&web.address("/approvals"));
    browser
        .wait_for("document.body.dataset.ready && document.querySelector('.approval pre').innerText === 'list_models'");
    browser.type_into("[name=reason]", &format!("not this one{ENTER}"));
    turn.join().expect("the turn").expect("its reply");
    assert_eq!(decisions(&fixture), ["ask", "refused"]);
    let result = fixture.tool_results("a").remove(0).content;
    assert!(result.contains("not this one"), "{result}");
}

#[test]
fn an_approval_with_a_reason_is_refused() {
    let fixture = start_fixture();
    let (asked, turn) = ask(&fixture, 1);
    let web = Web::start(&fixture.home, &[]);
    let (cookie, host) = (web.sign_in(), web.host());
    let sent = [("Host", &*host), ("Cookie", &*cookie), ("Sec-Fetch-Site", "same-origin")];
    let decide = |decision: &str, reason: &str| {
        let body = format!("decision={decision}&hash={}&reason={reason}", asked[0].hash);
        web.request("POST", &format!("/approvals/{}", asked[0].id), &sent, &body)
    };
    for decision in ["once", "always", "pattern", "turn"] {
        let answer = decide(decision, "never");
        assert_eq!(answer.status, 400, "{decision}: {answer:?}");
        assert!(
            answer.body.contains("Only a denial has a reason") && answer.body.contains("choose Deny"),
            "{answer:?}"
        );
    }
    assert_eq!(decisions(&fixture), ["ask"]);
    let answer = decide("once", "+");
    let back = format!("{}/approvals", web.prefix());
    assert_eq!((answer.status, answer.header("location")), (303, Some(&*back)), "{answer:?}");
    turn.join().expect("the turn").expect("its reply");
}

#[test]
fn a_changed_message_is_another_one() {
    let fixture = fixture();
    let web = Web::start(&fixture.home, &[]);
    let (cookie, host) = (web.sign_in(), web.host());
    let sent = [("Host", &*host), ("Cookie", &*cookie), ("Sec-Fetch-Site", "same-origin")];
    for (text, count) in [("first", 2), ("first", 2), ("first+and+more", 4)] {
        if fixture.client().messages("docs").len() < count {
            fixture.reply("Yes.");
        }
        let body = format!("key=web:1&text={text}");
        let answer = web.request("POST", "/agent/docs/live/main/send", &sent, &body);
        assert_eq!(answer.status, 303, "{text}: {answer:?}");
        let messages = chorus_tests::wait_until("the reply", chorus_tests::DEADLINE, || {
            let messages = fixture.client().messages("docs");
            (messages.len() >= count).then_some(messages)
        });
        assert_eq!(messages.len(), count, "{messages:?}");
    }
    let last = fixture.client().messages("docs").remove(2);
    assert_eq!(last.content, "first and more");
}

#[test]
fn what_is_typed_while_a_message_is_sent_stays() {
    let fixture = fixture();
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    browser.open(&web.address("/agent/docs/live/main"));
    browser.wait_for("document.body.dataset.ready");
    fixture.reply("Yes.");
    fixture.reply("Also.");
    // The answer to each message comes when the test wants it.
    let hold = "(() => { const real = window.fetch; window.posts = 0; \
                window.fetch = async (...given) => { const answer = await real(...given); \
                if (given[1]?.method === 'POST') { window.posts += 1; await new Promise((go) => { window.go = go; }); } \
                return answer; }; return true; })()";
    assert_eq!(browser.evaluate(hold), Some(json!(true)));
    browser.type_into("#text", &format!("first{ENTER}"));
    browser.wait_for("window.posts === 1");
    browser.type_into("#text", &format!(" and second{ENTER}"));
    browser.wait_for("document.querySelector('#text').value === 'first and second'");
    browser.wait_for("(window.go(), !document.querySelector('.answer button').disabled)");
    assert_eq!(browser.evaluate("window.posts"), Some(json!(1)), "two messages at once");
    assert_eq!(
        browser.evaluate("document.querySelector('#text').value"),
        Some("first and second".into()),
        "it is lost"
    );
    assert_eq!(browser.evaluate("sessionStorage.getItem(location.pathname)"), Some("first and second".into()));
    browser.type_into("#text", ENTER);
    browser.wait_for("window.posts === 2 && (window.go(), document.querySelector('#text').value === '')");
    browser.wait_for("document.querySelector('#m3')?.innerText.includes('first and second')");
    assert_eq!(browser.evaluate("sessionStorage.getItem(location.pathname)"), Some(json!(null)));
}
