//! Conversations and trees that are longer than a page, or become longer.

use std::fs::{self, OpenOptions};
use std::io::Write as _;

use chorus_proto::methods::context::{History, HistoryParams, Restore, RestoreParams, Save, SaveParams};
use chorus_proto::{NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, wait_until};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{Web, fixture};

#[test]
fn a_captured_conversation_grows_on_its_page() {
    let fixture = fixture();
    let dir = fixture.home.user_home.join(".claude/projects/-srv-api");
    fs::create_dir_all(&dir).expect("a directory");
    let id = "aaaaaaaa-0000-4000-8000-000000000000";
    let say = |n: u32, text: &str| {
        let at = Timestamp::now() - SignedDuration::from_secs(60) + SignedDuration::from_secs(i64::from(n));
        let role = if n.is_multiple_of(2) { "user" } else { "assistant" };
        let line = json!({"type": role, "uuid": format!("u{n}"), "isSidechain": false, "sessionId": id, "version": "2.1.332",
            "timestamp": at.to_string(), "cwd": "/srv/api",
            "message": {"role": role, "id": format!("msg_{n}"), "model": "claude-opus-4-5", "content": text}});
        let mut file =
            OpenOptions::new().create(true).append(true).open(dir.join(format!("{id}.jsonl"))).expect("a transcript");
        file.write_all(format!("{line}\n").as_bytes()).expect("written");
    };
    say(0, "Which rows are dropped?");
    chorusctl(&fixture.home, ["capture", "on", "claude-code"]).expect_success();
    let mut client = fixture.client();
    let session = wait_until("the conversation", DEADLINE, || {
        let params = HistoryParams { all_agents: true, ..HistoryParams::default() };
        client.call::<History>(&params).expect("the history").sessions.pop().map(|session| session.header.id)
    });
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    browser.open(&web.address(&format!("/session/{session}")));
    browser.wait_for("document.body.dataset.ready && document.querySelectorAll('article').length === 1");
    say(1, "Those without a country.");
    browser.wait_for("document.querySelector('#m2')?.innerText.includes('Those without a country.')");
    browser.wait_for_text("2 messages");
    // More than a page has.
    (2..53).for_each(|n| say(n, "More of it."));
    browser
        .wait_for("document.querySelectorAll('article').length === 50 && document.querySelector('#links a[rel=next]')");
    browser.wait_for_text("53 messages");
}

#[test]
fn a_long_tree_begins_with_the_latest_work_and_shows_the_session_that_leads_to_it() {
    let fixture = fixture();
    let mut client = fixture.client();
    let ids: Vec<_> = (0..203)
        .map(|n| {
            client.append("docs", &format!("talk {n}"));
            let params = SaveParams { agent: Some("docs".into()), clear: true, ..SaveParams::default() };
            client.call::<Save>(&params).expect("saved").session.header.id
        })
        .collect();
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    let count = "document.querySelectorAll('.tree li[id]').length";
    browser.open(&web.address("/agent/docs/tree"));
    browser.wait_for(&format!("{count} === 3 && document.querySelector('#s{}')", ids[202]));
    browser.click("nav.pages a[rel=prev]");
    browser.wait_for(&format!("{count} === 200 && document.querySelector('#s{}')", ids[0]));
    // A new conversation continues nothing, and then the work continues an old one.
    client.append("docs", "a fresh one");
    browser.open(&web.address("/agent/docs/tree"));
    browser.wait_for_text("Live conversation");
    client.save("docs", "Fresh");
    let restore = RestoreParams { agent: Some("docs".into()), session: ids[0].to_string(), ..Default::default() };
    client.call::<Restore>(&restore).expect("restored");
    browser.open(&web.address("/agent/docs/tree"));
    browser.wait_for(&format!(
        "document.body.innerText.includes('Live conversation') && document.querySelector('#s{}')",
        ids[0]
    ));
    for id in [ids[1], ids[201]] {
        browser.open(&web.address(&format!("/session/{id}")));
        browser.click("p.line a[href*=tree]");
        browser.wait_for(&format!("location.pathname.endsWith('/tree') && document.querySelector('#s{id}:target')"));
    }
}

#[test]
fn a_live_conversation_with_tall_messages_opens_at_its_end() {
    let fixture = fixture();
    let tall = |n: usize| NewMessage::text(Role::User, format!("{n}\n\n{}", "one line\n\n".repeat(n % 3 * 200)));
    fixture.client().append_all("docs", (1..=12).map(tall).collect());
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    browser.open(&web.address("/agent/docs/live/main"));
    let end = "innerHeight + scrollY >= document.documentElement.scrollHeight - 2";
    browser.wait_for(&format!("document.body.dataset.ready && {end} && scrollY > 10000"));
    browser.wait_for("document.querySelector('#m12').getBoundingClientRect().top < innerHeight");
}
