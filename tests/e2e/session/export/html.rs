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
        ran: [typeof window.ran, typeof window.parent.ran],
        links: [...document.querySelectorAll('a')].map(one => one.href),
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
        NewMessage::text(Role::User, format!("Look at this: {evil}\n{}", "wide".repeat(300))),
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
    assert_eq!(found["links"], json!([elsewhere, "https://example.org/", elsewhere]));
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
fn several_go_into_a_directory() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    client.save("a", "first");
    client.append("a", "two");
    client.save("a", "second");
    let out = home.temp_dir().join("pages");
    let to = out.to_str().expect("a path");
    chorusctl(&home, ["session", "export", "--as", "html", "--output", to]).expect_success();
    let pages: Vec<_> = fs::read_dir(&out).expect("pages").map(|page| page.expect("a page").path()).collect();
    assert_eq!(pages.len(), 2);
    for page in pages {
        assert!(page.extension().is_some_and(|ending| ending == "html"), "{}", page.display());
        assert!(fs::read_to_string(page).expect("text").ends_with("</html>\n"));
    }
    assert_eq!(
        chorusctl(&home, ["session", "export", "--as", "html", "--output", to]).expect_success(),
        "",
        "nothing is new"
    );
}
