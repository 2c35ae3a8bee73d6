//! The pages as a user meets them, in a browser.

use chorus_proto::methods::context::{Save, SaveParams};
use chorus_proto::{Client, NewMessage, Role};
use chorus_tests::Fixture;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::Response;
use chorus_tests::web_driver::WebDriver;

use serde_json::Value;

use super::{PRICES, Web, fixture, import_transcripts};
use crate::approvals::{decisions, queue_calls, start_fixture};
use crate::home;

const ENTER: &str = "\u{e007}";

/// Saves and clears a conversation.
fn save(client: &mut Client, agent: &str, text: &str, description: &str) {
    client.append(agent, text);
    let (agent, description) = (Some(agent.to_owned()), Some(description.to_owned()));
    client.call::<Save>(&SaveParams { agent, description, clear: true, ..Default::default() }).expect("context.save");
}

#[test]
fn conversations_are_listed_as_they_change() {
    let fixture = fixture();
    let mut client = fixture.client();
    save(&mut client, "docs", "why are rows missing?", "Missing rows");
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    assert_eq!(browser.address(), web.address("/"), "the token stays in the address");
    assert_eq!(browser.evaluate("document.cookie"), Some("".into()), "a script reads the cookie");
    browser.wait_for_text("Missing rows");
    browser.wait_for("document.querySelector('#agents').innerText.includes('idle')");
    client.append("docs", "and the dates?");
    browser.wait_for("document.querySelector('#agents').innerText.includes('live')");
    fixture.create_agent("later", None);
    browser.wait_for("document.querySelector('#agents').innerText.includes('later')");
    // With the keys, to the saved conversation.
    browser.press("G\u{e007}");
    browser.wait_for("location.pathname.startsWith(document.body.dataset.root + '/session/')");
    browser.wait_for_text("why are rows missing?");
    browser.press("?");
    browser.wait_for("document.querySelector('#help').open");
    browser.press("\u{e00c}");
    browser.press("u");
    browser.wait_for("location.pathname === document.body.dataset.root + '/usage'");
    assert_eq!(browser.take_complaints(), Vec::<String>::new());
}

#[test]
fn a_message_is_answered_live() {
    let fixture = fixture();
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    browser.open(&web.address("/agent/docs/live/main"));
    browser.wait_for_text("Nothing was said yet.");
    browser.wait_for("document.body.dataset.ready");
    fixture.reply("The loader skips **rows** without a country.");
    browser.type_into("#text", &format!("Why are rows missing?{ENTER}"));
    browser.wait_for("document.querySelector('#m2 strong')?.innerText === 'rows'");
    browser.wait_for("document.querySelector('#m1').innerText.includes('Why are rows missing?')");
    browser.wait_for("document.querySelector('#partial').children.length === 0");
    browser.wait_for("document.querySelector('#state').innerText.startsWith('2 messages')");
    assert_eq!(browser.evaluate("document.querySelector('#text').value"), Some("".into()));
    // What others say there is shown, too, and what was written stays.
    browser.type_into("#text", "a draft");
    fixture.client().append("docs", "from elsewhere");
    browser.wait_for("document.querySelector('#m3')?.innerText.includes('from elsewhere')");
    // Another conversation takes its place.
    chorusctl(&fixture.home, ["context", "clear", "--yes"]).expect_success();
    browser.wait_for("!document.querySelector('#m1') && document.querySelector('#text')?.value === 'a draft'");
    fixture.client().append("docs", "a new start");
    browser.wait_for("document.querySelectorAll('article').length === 1 && document.querySelector('#m1').innerText.includes('a new start')");
}

#[test]
fn a_reply_is_shown_as_it_is_written() {
    let fixture = fixture();
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    browser.open(&web.address("/agent/docs/live/main"));
    browser.wait_for("document.body.dataset.ready");
    fixture.answer(Response::text(["The first half"]).gate("rest").then_text(" and the second."));
    let turn = fixture.spawn_send("docs", "Go.");
    browser.wait_for("document.querySelector('#partial .partial')?.innerText === 'The first half'");
    browser.wait_for("document.querySelector('#state').innerText.includes('working')");
    // Whoever opens it now sees the same.
    browser.open(&web.address("/agent/docs/live/main"));
    browser.wait_for("document.querySelector('#partial .partial')?.innerText === 'The first half'");
    fixture.models().open_gate("rest");
    browser.wait_for("document.querySelector('#m2')?.innerText.includes('The first half and the second.')");
    browser.wait_for("document.querySelector('#partial').children.length === 0");
    turn.join().expect("the turn").expect("its reply");
    // A turn can be cancelled.
    fixture.answer(Response::text(["It never"]).stall());
    let turn = fixture.spawn_send("docs", "Go again.");
    browser.wait_for("document.querySelector('#partial .partial')?.innerText.startsWith('It ne')");
    browser.wait_for("document.querySelector('form.turn button')");
    browser.click("form.turn button");
    assert!(turn.join().expect("the turn").is_err(), "it was not cancelled");
    browser.wait_for("!document.querySelector('form.turn')");
}

#[test]
fn usage_is_drawn_and_listed() {
    let fixture = Fixture::builder(home()).tables(PRICES).start();
    import_transcripts(&fixture.home);
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    browser.open(&web.address("/usage"));
    browser.wait_for("document.querySelectorAll('.chart svg g').length === 30");
    let total = chorusctl(&fixture.home, ["--json", "usage", "--by", "day", "--since", "30d"]).expect_json();
    let cost = format!("${:.2}", total["total"]["cost_usd"].as_f64().expect("a cost"));
    browser.wait_for(&format!("document.querySelector('.totals dd').innerText === '{cost}'"));
    browser.wait_for("document.querySelectorAll('.chart rect.s0').length === 18");
    let labels =
        browser.evaluate("[...document.querySelectorAll('.bars .label')].map((label) => label.innerText).join()");
    let labels = labels.expect("labels").as_str().unwrap_or_default().to_owned();
    for due in ["/srv/api", "/srv/importer", "claude-opus-4-5", "claude-code"] {
        assert!(labels.contains(due), "{due}: {labels}");
    }
    let rows = browser.evaluate("document.querySelector('details table tbody').rows.length");
    assert_eq!(rows, Some(18.into()));
    browser.click(".heading a[href*='7d']");
    browser.wait_for("document.querySelectorAll('.chart svg g').length >= 7 && document.querySelectorAll('.chart svg g').length <= 9");
    assert_eq!(browser.take_complaints(), Vec::<String>::new());
}

#[test]
fn a_failed_turn_says_why() {
    let fixture = Fixture::builder(home()).start();
    fixture.client().init("docs");
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    browser.open(&web.address("/agent/docs/live/main"));
    browser.wait_for("document.body.dataset.ready");
    browser.type_into("#text", &format!("hello{ENTER}"));
    browser.wait_for("document.querySelector('.answer .problem').innerText.includes('model')");
    assert_eq!(browser.evaluate("document.querySelector('#text').value"), Some("hello".into()), "it is lost");
    assert!(fixture.client().messages("docs").is_empty());
}

#[test]
fn it_searches_as_one_types() {
    let fixture = fixture();
    let mut client = fixture.client();
    save(&mut client, "docs", "we drop the cache for sessions", "Cache");
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    // The index may be a moment behind.
    chorus_tests::wait_until("the index", chorus_tests::DEADLINE, || {
        let found = chorusctl(&fixture.home, ["--json", "search", "cache"]);
        let found: Value = serde_json::from_str(&found.stdout).ok()?;
        (found["index"]["complete"] == true && found["hits"][0]["session"].is_object()).then_some(())
    });
    browser.press("/");
    browser.press("cach");
    browser.wait_for("document.querySelector('#results mark')?.innerText === 'cache'");
    browser.press("e");
    browser
        .wait_for("document.querySelector('#main').hidden && location.pathname === document.body.dataset.root + '/'");
    browser.press("\u{e015}");
    browser.wait_for("document.activeElement.matches('#results [data-item]')");
    browser.press(ENTER);
    browser
        .wait_for("location.pathname.startsWith(document.body.dataset.root + '/session/') && location.hash === '#m1'");
    browser.wait_for("document.querySelector('article:target').innerText.includes('we drop the cache')");
    // The same without the script: the form.
    browser.open(&web.address("/search?q=nothing-like-that"));
    browser.wait_for_text("Nothing was found.");
    browser.open(&web.address("/search?q=docs"));
    browser.wait_for("document.querySelector('#results a[href$=\"/agent/docs\"]')");
}

/// Clicks on an answer, again while the page says that it moved just now.
fn press_settled(browser: &WebDriver, selector: &str) {
    browser.click(selector);
    chorus_tests::wait_until("the answer is taken", chorus_tests::DEADLINE, || {
        let moved = browser.evaluate("[...document.querySelectorAll('.approval .problem')].some((line) => line.innerText.includes('press again'))");
        if moved == Some(true.into()) {
            browser.click(selector);
        }
        browser.evaluate("!document.querySelector('.approval')").filter(|gone| *gone == true)
    });
}

#[test]
fn an_approval_is_answered() {
    for deny in [false, true] {
        let fixture = start_fixture();
        queue_calls(&fixture, 1);
        let web = Web::start(&fixture.home, &[]);
        let Some(browser) = web.browse(&fixture.home) else { return };
        let turn = fixture.spawn_send("a", "Which are there?");
        browser.wait_for("document.querySelector('#pending').innerText.trim() === '1'");
        let page = if deny { "/agent/a/live/main" } else { "/approvals" };
        browser.open(&web.address(page));
        browser.wait_for(
            "document.body.dataset.ready && document.querySelector('.approval pre').innerText === 'list_models'",
        );
        if deny {
            browser.type_into("[name=reason]", "not now");
            press_settled(&browser, "button.no");
        } else {
            press_settled(&browser, "button.yes");
        }
        browser.wait_for("!document.querySelector('.approval')");
        let sent = turn.join().expect("the turn").expect("its reply");
        assert_eq!(sent.reply, "Done.");
        assert_eq!(decisions(&fixture), ["ask", if deny { "refused" } else { "approved" }]);
        let told = fixture.tool_results("a").remove(0).content;
        assert_eq!(told.contains("not now"), deny, "{told}");
        browser.wait_for("document.querySelector('#pending').innerText.trim() === ''");
    }
}

#[test]
fn a_daemon_that_goes_away_is_found_again() {
    let mut fixture = fixture();
    fixture.client().append("docs", "hello");
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    browser.open(&web.address("/agent/docs/live/main"));
    browser.wait_for("document.body.dataset.ready");
    fixture.kill();
    browser.wait_for_text("chorusd has stopped; trying again");
    browser.wait_for_text("hello");
    let home = browser.evaluate("fetch(document.body.dataset.root + '/').then((answer) => answer.status)");
    assert_eq!(home, Some(503.into()));
    fixture.start();
    browser.wait_until_gone("chorusd has stopped");
    fixture.client().append("docs", "after the restart");
    browser.wait_for("document.querySelector('#m2')?.innerText.includes('after the restart')");
}

#[test]
fn long_conversations_have_pages_and_messages_have_addresses() {
    let fixture = fixture();
    let mut client = fixture.client();
    let messages = (1..=180).map(|n| NewMessage::text(Role::User, format!("message number {n}."))).collect();
    client.append_all("docs", messages);
    let session = client.save("docs", "Long").header.id;
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    let numbers = "[...document.querySelectorAll('article')].map((article) => article.id).filter((id, at, all) => at === 0 || at === all.length - 1).join()";
    for (path, shown) in [
        (format!("/session/{session}"), "m1,m50"),
        (format!("/session/{session}?from=101"), "m101,m150"),
        (format!("/session/{session}?m=120"), "m115,m164"),
        (format!("/session/{session}?from=9999"), "m180"),
        ("/agent/docs/live/main".into(), "m131,m180"),
        ("/agent/docs/live/main?m=7".into(), "m2,m51"),
        ("/agent/docs/live/main?from=9999".into(), "m131,m180"),
    ] {
        browser.open(&web.address(&path));
        assert_eq!(browser.evaluate(numbers), Some(shown.into()), "{path}");
    }
    browser.open(&web.address(&format!("/session/{session}")));
    browser.click("#m7 .anchor");
    browser.wait_for("location.search === '?m=7' && location.hash === '#m7' && document.querySelector('#m7:target')");
    browser.open(&web.address(&format!("/session/{session}")));
    browser.click("nav.pages a[rel=next]");
    browser.wait_for("document.querySelector('article').id === 'm51'");
    // The tree leads to it.
    browser.open(&web.address("/agent/docs/tree"));
    browser.wait_for("document.querySelectorAll('.tree svg circle').length === 2");
    browser.click(".tree li a");
    browser.wait_for(&format!("location.pathname === document.body.dataset.root + '/session/{session}'"));
}

#[test]
fn a_phone_needs_no_sideways_scrolling() {
    let fixture = start_fixture();
    let long = "averylongwordwithoutanyplacetobreak".repeat(12);
    let code = format!("```\nlet line = \"{long}\";\n```\n\n| a | b | c |\n|---|---|---|\n| {long} | 2 | 3 |");
    let mut client = fixture.client();
    client.append_all("a", vec![NewMessage::text(Role::User, long.clone()), NewMessage::text(Role::Assistant, code)]);
    let session = client.save("a", &long).header.id;
    queue_calls(&fixture, 1);
    let turn = fixture.spawn_send("a", "Which are there?");
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    browser.wait_for("document.querySelector('#pending').innerText.trim() === '1'");
    browser.set_display(360, 740, true);
    for path in [
        "/",
        "/agent/a",
        "/agent/a/tree",
        "/agent/a/live/main",
        &format!("/session/{session}"),
        "/search?q=which",
        "/usage",
        "/approvals",
    ] {
        browser.open(&web.address(path));
        browser.wait_for("document.body.dataset.ready");
        let width = browser.evaluate("document.documentElement.scrollWidth");
        assert_eq!(width, Some(360.into()), "{path}");
        let dark = browser.evaluate("getComputedStyle(document.body).backgroundColor");
        assert_eq!(dark, Some("rgb(22, 24, 28)".into()), "{path}");
    }
    browser.click("button.yes");
    turn.join().expect("the turn").expect("its reply");
}

#[test]
fn mistakes_in_an_address_have_a_page() {
    let fixture = fixture();
    let web = Web::start(&fixture.home, &[]);
    let (cookie, host) = (web.sign_in(), web.host());
    let get = |method: &str, path: &str| {
        let headers = [("Host", &*host), ("Cookie", &*cookie), ("Sec-Fetch-Site", "same-origin")];
        web.request(method, path, &headers, "")
    };
    for (method, path, status, heading) in [
        ("GET", "/session/not-an-id", 400, "Not an address of these pages"),
        ("GET", "/?page=many", 400, "Not an address of these pages"),
        ("GET", "/agent/docs/live/main?from=-1", 400, "Not an address of these pages"),
        ("GET", "/no/such/page", 404, "No such page"),
        ("POST", "/usage", 405, "Method not allowed"),
    ] {
        let answer = get(method, path);
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        let heading = format!("<h1>{heading}</h1>");
        assert!(answer.body.contains(&heading) && answer.body.contains("</html>"), "{method} {path}: {answer:?}");
    }
}

#[test]
fn the_earlier_page_ends_with_the_message_before() {
    let fixture = fixture();
    let mut client = fixture.client();
    let messages = (1..=120).map(|number| NewMessage::text(Role::User, format!("message number {number}.")));
    client.append_all("docs", messages.collect());
    let session = client.save("docs", "Long").header.id;
    let web = Web::start(&fixture.home, &[]);
    let (cookie, host) = (web.sign_in(), web.host());
    let get = |path: &str| web.request("GET", path, &[("Host", &host), ("Cookie", &cookie)], "").body;
    for path in [format!("/session/{session}"), "/agent/docs/live/main".to_owned()] {
        // 21 to 70.
        let page = get(&format!("{path}?m=26"));
        assert!(page.contains("21–70 of 120") && page.contains("?before=21#m20"), "{page}");
        let earlier = get(&format!("{path}?before=21"));
        assert!(earlier.contains("1–20 of 120") && earlier.contains("message number 20."), "{earlier}");
        assert!(!earlier.contains("message number 21."), "{earlier}");
        let last = get(&format!("{path}?before=121"));
        assert!(last.contains("71–120 of 120"), "{last}");
    }
}

#[test]
fn agents_beyond_the_first_ones_are_on_further_pages() {
    let fixture = fixture();
    let mut client = fixture.client();
    // More live ones than on a page, the last ones first.
    for number in 0..4 {
        client.init(&format!("agent-{number}"));
        client.append(&format!("agent-{number}"), "hello");
    }
    let web = Web::start(&fixture.home, &[]);
    let (cookie, host) = (web.sign_in(), web.host());
    let get = |path: &str| web.request("GET", path, &[("Host", &host), ("Cookie", &cookie)], "").body;
    let first = get("/?agents=2");
    assert!(first.contains("2 of 5 agents"), "{first}");
    let next = get("/?agents=2&agents_from=2");
    assert!(next.contains("3–4 of 5 agents") && next.contains("previous"), "{next}");
    let last = get("/?agents=2&agents_from=4");
    let names = |page: &str| (0..4).filter(|number| page.contains(&format!("agent-{number}<"))).collect::<Vec<_>>();
    assert_eq!([names(&first), names(&next), names(&last)].concat(), [0, 1, 2, 3], "each is on one page");
    assert!(get("/?agents=2&agents_from=900").contains("5–5 of 5 agents"));
}
