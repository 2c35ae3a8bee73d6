//! The page for a browser, looked at in one.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;

use chorus_proto::{NewMessage, Role};
use chorus_tests::browser::Browser;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, Daemon, wait_until};
use serde_json::json;

use crate::home;

/// What a page of this session is looked at for: its messages, how wide it is, what ran in it.
const LOOK: &str = "
    const style = document.createElement('style');
    style.textContent = '*{content-visibility:visible!important}';
    document.head.append(style);
    const folded = [...document.querySelectorAll('details')].filter(one => !one.open).length;
    document.querySelectorAll('details').forEach(one => one.open = true);
    const articles = [...document.querySelectorAll('article')];
    return {
        texts: articles.map(one => one.innerText),
        over: document.documentElement.scrollWidth - document.documentElement.clientWidth,
        wide: articles.filter(one => one.scrollWidth > one.clientWidth).map(one => one.id),
        cut: articles.flatMap(one => {
            const left = one.getBoundingClientRect().left + parseFloat(window.getComputedStyle(one).paddingLeft);
            const walk = document.createTreeWalker(one, window.NodeFilter.SHOW_TEXT), out = [];
            for (let text = walk.nextNode(); text; text = walk.nextNode()) {
                const range = document.createRange();
                range.selectNodeContents(text);
                const box = range.getBoundingClientRect();
                if (text.data.trim() && box.width && box.left < left - 1) out.push(text.data);
            }
            return out;
        }),
        ran: [typeof window.ran, typeof window.parent.ran],
        links: [...document.querySelectorAll(`a:not([href^='#'])`)].map(one => one.href),
        anchors: [...document.querySelectorAll(`a[href^='#']`)].map(one => one.getAttribute('href'))
            .filter(href => document.getElementById(href.slice(1))),
        pictures: [...document.querySelectorAll('img')].map(one => one.naturalWidth),
        folded,
    };";

/// A PNG of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn messages(elsewhere: &str) -> Vec<NewMessage> {
    let evil = format!(
        "</pre></div><script>parent.ran = window.ran = 1</script><img src={elsewhere} onerror='ran=1'> [l]({elsewhere})"
    );
    let read = |value: serde_json::Value| serde_json::from_value(value).expect("a message");
    vec![
        NewMessage::text(
            Role::User,
            format!(
                "Look at this: {evil}\n{}\n\nA paragraph.\n\n- item\n- [ ] task\n\n1. first\n   - [x] inner\n\n> quoted",
                "wide".repeat(300)
            ),
        ),
        read(json!({"role": "assistant", "content": format!(
            "# Found\n\n```sh\n{}\n```\n\n| a | {} |\n|---|---|\n| 1 | 2 |\n\n![p]({elsewhere}) [ok](https://example.org/) [no](javascript:ran=1)\n\n{evil}",
            "echo ".repeat(100), "column ".repeat(60)),
            "tool_calls": [{"id": "c", "name": "view", "params": {"path": "a.py", "text": evil}}]})),
        read(
            json!({"role": "tool_result", "tool_call_id": "c", "name": "view", "content": format!("{evil}\n{}", "x".repeat(3000))}),
        ),
        read(json!({"role": "user", "content": "and \u{202e}this", "attachments": [
            {"name": "dot.png", "media_type": "image/png", "data": PIXEL}, {"name": "notes.txt"}]})),
    ]
}

#[test]
fn a_phone_shows_all_of_it_and_nothing_runs_or_leaves() {
    let Some(browser) = Browser::find() else { return };
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("it does not block");
    let elsewhere = format!("http://{}/planted.png", listener.local_addr().expect("an address"));
    client.append_all("a", messages(&elsewhere));
    client.save("a", "A <b>look</b>");
    let page = chorusctl(&home, ["session", "export", "latest", "--as", "html"]).expect_success();
    let found = browser.evaluate(&home, &page, 390, LOOK);
    assert_eq!((&found["over"], &found["wide"]), (&json!(0), &json!([])), "nothing is wider than the screen");
    for width in [390, 1000] {
        let cut = &browser.evaluate(&home, &page, width, LOOK)["cut"];
        assert_eq!(cut, &json!([]), "no text begins left of its box");
    }
    let texts: Vec<&str> = found["texts"].as_array().expect("a list").iter().filter_map(|text| text.as_str()).collect();
    assert_eq!(texts.len(), 4);
    for (n, due) in [
        (0, "Look at this: </pre></div><script>"),
        (0, &*"wide".repeat(300)),
        (1, "Found"),
        (1, "echo echo"),
        (1, "a.py"),
        (2, "</pre></div><script>"),
        (3, "and ⟨U+202E⟩this"),
        (3, "notes.txt"),
    ] {
        assert!(texts[n].contains(due), "{due} is not in {}", texts[n]);
    }
    assert_eq!(found["ran"], json!(["undefined", "undefined"]), "no script runs");
    // Two questions in the contents, four anchors, and the links in the texts: the user's Markdown is rendered, too.
    assert_eq!(found["anchors"], json!(["#m1", "#m4", "#m1", "#m2", "#m3", "#m4"]));
    assert_eq!(found["links"], json!([elsewhere, elsewhere, "https://example.org/", elsewhere]));
    assert_eq!(
        (&found["pictures"], &found["folded"]),
        (&json!([1]), &json!(3)),
        "a picture; the call, the result and the facts are folded"
    );
    let nobody = listener.accept().expect_err("nothing is fetched");
    assert_eq!(nobody.kind(), ErrorKind::WouldBlock);
    // The same listener hears of a page that does fetch.
    let other = home.temp_dir().join("other.html");
    fs::write(&other, format!("<img src=\"{elsewhere}\">")).expect("a page");
    let opened = std::thread::spawn(move || browser.dump_dom(&crate::home(), &other));
    let line = wait_until("a request", DEADLINE, || listener.accept().ok());
    // Without an answer the page would never be whole.
    drop((line, listener));
    assert!(opened.join().expect("the browser").contains("planted.png"));
}

#[test]
fn a_reply_has_the_name_of_its_model_and_a_question_its_entry() {
    let home = home();
    let file = home.temp_dir().join("talk.json");
    let talk = json!({"schema": 2, "id": "7d444840-9dc0-41d1-b245-5ffdce74fad2", "session_id": "2026-01-02_talk",
        "model": "big/one", "saved_at": "2026-01-02T03:04:05Z", "messages": [
            {"id": "1", "role": "user", "content": "## **Why** <b>?", "timestamp": "2026-01-02T03:00:00Z"},
            {"id": "2", "role": "assistant", "content": "So.", "timestamp": "2026-01-02T03:00:01Z"},
            {"id": "3", "role": "assistant", "content": "A note.", "generated": true, "timestamp": "2026-01-02T03:00:02Z"},
            {"id": "4", "role": "user", "content": "- a\n- b\n\n[x](javascript:1)", "timestamp": "2026-01-02T03:00:03Z"}]});
    fs::write(&file, talk.to_string()).expect("written");
    let _daemon = Daemon::start(&home);
    chorusctl(&home, ["session", "import", file.to_str().expect("a path")]).expect_success();
    let page = chorusctl(&home, ["export", "2026-01-02_talk", "--as", "html"]).expect_success();
    for due in [
        "<li value=\"1\"><a href=\"#m1\">Why &lt;b&gt;?</a></li>\n<li value=\"4\"><a href=\"#m4\">a</a></li>",
        "<h4><strong>Why</strong> &lt;b&gt;?</h4>",
        "<span class=\"model\">big/one</span>",
        "<li>a</li>\n<li>b</li>",
        "<article class=\"user\" id=\"m4\">",
        "<a class=\"anchor\" href=\"#m4\">#4</a>",
    ] {
        assert!(page.contains(due), "{due} is not in {page}");
    }
    assert_eq!(page.matches("<span class=\"model\">").count(), 1, "a note of Chorus is of no model");
    assert!(!page.contains("href=\"javascript"), "{page}");
}

#[test]
fn several_go_into_a_directory_with_an_index() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    client.save("a", "The <first> one");
    client.append("a", "two");
    let second = client.save("a", "second");
    let out = home.temp_dir().join("pages");
    let to = out.to_str().expect("a path");
    let export =
        |args: &[&str]| chorusctl(&home, [&["session", "export", "--as", "html", "--output", to], args].concat());
    let said = export(&[]).expect_success();
    assert!(said.contains("exported 2 sessions to") && said.contains("index.html"), "{said}");
    let pages: Vec<_> = fs::read_dir(&out).expect("pages").map(|page| page.expect("a page").path()).collect();
    assert_eq!(pages.len(), 3);
    for page in pages {
        assert!(page.extension().is_some_and(|ending| ending == "html"), "{}", page.display());
        assert!(fs::read_to_string(page).expect("text").ends_with("</html>\n"));
    }
    assert_eq!(export(&[]).expect_success(), "", "nothing is new");
    // Of an export of one, the index lists those that were there, too.
    client.append("a", "three");
    client.save("a", "third");
    export(&["latest"]).expect_success();
    let index = fs::read_to_string(out.join("index.html")).expect("the index");
    assert_eq!(index.matches("<li><a href=").count(), 3, "{index}");
    assert!(index.contains(&format!("<li><a href=\"{}.html\">second</a>", second.header.session_id)), "{index}");
    assert!(index.contains(">The &lt;first&gt; one</a>") && index.contains("<h1>Conversations of a</h1>"), "{index}");
    // With several agents, one index links into their directories; a page of somebody else's is left alone.
    let all = home.temp_dir().join("all");
    fs::create_dir(&all).expect("a folder");
    let to = all.to_str().expect("a path");
    chorusctl(&home, ["export", "--all-agents", "--as", "html", "--output", to]).expect_success();
    assert!(fs::read_to_string(all.join("index.html")).expect("the index").contains("<a href=\"a/20"));
    fs::write(all.join("index.html"), "mine").expect("written");
    client.append("a", "four");
    client.save("a", "fourth");
    let said = chorusctl(&home, ["export", "--all-agents", "--as", "html", "--output", to]);
    assert!(said.status == 0 && said.stderr.contains("it was not replaced"), "{}", said.stderr);
    assert_eq!(fs::read_to_string(all.join("index.html")).expect("the file"), "mine");
}
