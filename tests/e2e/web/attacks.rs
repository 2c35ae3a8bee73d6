//! Strangers: other pages in the same browser, other users of the machine, and what messages contain.

use chorus_proto::methods::conversations::{New, NewParams};
use chorus_proto::{NewMessage, Role, ToolCall};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::http_client::exchange;
use serde_json::value::RawValue;

use super::{Web, fixture};

const PAGES: [&str; 9] = [
    "/",
    "/search?q=x",
    "/usage",
    "/approvals",
    "/agent/docs",
    "/agent/docs/tree",
    "/agent/docs/live/main",
    "/agent/docs/live/main/state",
    "/agent/docs/live/main/new?after=0",
];

#[test]
fn nothing_is_shown_without_the_link() {
    let fixture = fixture();
    fixture.client().append("docs", "a secret word");
    let web = Web::start(&fixture.home, &[]);
    let host = web.host();
    for page in PAGES {
        for cookie in ["", "chorus_web=x", &format!("chorus_web_{}={}", web.port, web.token())] {
            let answer = web.request("GET", page, &[("Host", &host), ("Cookie", cookie)], "");
            assert_eq!(answer.status, 401, "{page}: {answer:?}");
            assert!(!answer.body.contains("docs") && !answer.body.contains("secret"), "{page}: {answer:?}");
        }
    }
    let cookie = web.sign_in();
    let sent = [("Host", &*host), ("Cookie", &*cookie)];
    for page in PAGES {
        let answer = web.request("GET", page, &sent, "");
        assert_eq!(answer.status, 200, "{page}: {answer:?}");
        let policy = answer.header("content-security-policy").unwrap_or_default();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; "), "{page}: {policy}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{page}: {policy}");
        for (name, value) in [
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{page}: {name}");
        }
    }
}

#[test]
fn the_link_works_once() {
    let fixture = fixture();
    let web = Web::start(&fixture.home, &[]);
    let (host, path) = (web.host(), web.link.split_once("127.0.0.1:").expect("an address").1);
    let path = &path[path.find("/open").expect("a path")..];
    // A browser that fetches it in advance, a check of the link, and wrong ones do not use it.
    for (method, headers) in [("GET", ("Sec-Purpose", "prefetch;prerender")), ("HEAD", ("Accept", "*/*"))] {
        let answer = web.request(method, path, &[("Host", &host), headers], "");
        assert_eq!(answer.status, 503, "{answer:?}");
        assert_eq!(answer.header("set-cookie"), None);
    }
    for wrong in ["/open", "/open?token=", "/open?token=0123", &path[..path.len() - 1], &format!("{path}0")] {
        let answer = web.request("GET", wrong, &[("Host", &host)], "");
        assert_eq!((answer.status, answer.header("set-cookie")), (403, None), "{wrong}: {answer:?}");
    }
    let opened = web.request("GET", path, &[("Host", &host)], "");
    let cookie = opened.header("set-cookie").expect("a cookie");
    assert!(cookie.starts_with(&format!("chorus_web_{}=", web.port)), "{cookie}");
    assert!(cookie.ends_with(&format!("; HttpOnly; SameSite=Strict; Path={}/", web.prefix())), "{cookie}");
    assert!(!cookie.contains(web.token()) && !opened.body.contains(web.token()));
    let again = web.request("GET", path, &[("Host", &host)], "");
    assert_eq!((again.status, again.header("set-cookie")), (410, None), "{again:?}");
    assert!(again.body.contains("This link was used already") && again.body.contains("run chorusctl web again"));
    // Whoever is signed in, and reads the page again, is not stopped.
    let session = cookie.split(';').next().expect("a pair");
    let again = web.request("GET", path, &[("Host", &host), ("Cookie", session)], "");
    assert_eq!(again.status, 200, "{again:?}");
}

#[test]
fn other_hosts_and_origins_are_refused() {
    let fixture = fixture();
    let web = Web::start(&fixture.home, &[]);
    let (cookie, host) = (web.sign_in(), web.host());
    let others = [format!("evil.example:{}", web.port), "127.0.0.1".into(), "localhost:1".into(), String::new()];
    for other in &others {
        let answer = web.request("GET", "/", &[("Host", other), ("Cookie", &cookie)], "");
        assert_eq!(answer.status, 421, "{other}: {answer:?}");
        assert!(!answer.body.contains("docs"), "{answer:?}");
    }
    let twice = [("Host", &*host), ("Host", "evil.example"), ("Cookie", &*cookie)];
    assert!(matches!(web.request("GET", "/", &twice, "").status, 400 | 421));
    let absolute = format!("http://evil.example:{}{}/", web.port, web.prefix());
    assert_eq!(web.request_path("GET", &absolute, &[("Host", &host), ("Cookie", &cookie)], "").status, 421);
    for name in ["localhost", "[::1]"] {
        let own = format!("{name}:{}", web.port);
        assert_eq!(web.request("GET", "/", &[("Host", &own), ("Cookie", &cookie)], "").status, 200, "{name}");
    }
    let send = "/agent/docs/live/main/send";
    let evil = format!("http://evil.example:{}", web.port);
    let foreign: [&[(&str, &str)]; 7] = [
        &[],
        &[("Origin", "http://evil.example")],
        &[("Origin", &evil)],
        &[("Origin", "null")],
        &[("Origin", "http://127.0.0.1:1")],
        &[("Sec-Fetch-Site", "cross-site")],
        // Another port of this machine.
        &[("Sec-Fetch-Site", "same-site"), ("Origin", "null")],
    ];
    for headers in foreign {
        for (method, path) in [("POST", send), ("POST", "/approvals/abc"), ("GET", "/events"), ("DELETE", "/")] {
            let all = [&[("Host", &*host), ("Cookie", &*cookie)][..], headers].concat();
            let answer = web.request(method, path, &all, if method == "POST" { "text=planted" } else { "" });
            assert_eq!(answer.status, 403, "{method} {path} {headers:?}: {answer:?}");
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
    // A page elsewhere that loads ours as a part of itself.
    let embedded = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "image")];
    let all = [&[("Host", &*host), ("Cookie", &*cookie)][..], &embedded[..]].concat();
    assert_eq!(web.request("GET", "/", &all, "").status, 403);
    assert!(fixture.client().messages("docs").is_empty(), "something was sent");
}

#[test]
fn hostile_addresses_and_bodies_are_refused() {
    let fixture = fixture();
    let web = Web::start(&fixture.home, &[]);
    let (cookie, host) = (web.sign_in(), web.host());
    let sent = [("Host", &*host), ("Cookie", &*cookie), ("Sec-Fetch-Site", "same-origin")];
    for path in [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/style.css/..%2f..%2fetc/passwd",
        "//evil.example/",
        "/agent/..%2fdocs/tree",
    ] {
        let answer = web.request("GET", path, &sent, "");
        assert!(matches!(answer.status, 400 | 404), "{path}: {answer:?}");
        assert!(!answer.body.contains("root:"), "{path}");
    }
    for path in ["/session/0", "/agent/nobody", "/agent/docs/live/nothing", "/agent/a%0d%0aSet-Cookie:x=y"] {
        let answer = web.request("GET", path, &sent, "");
        assert!(matches!(answer.status, 400 | 404), "{path}: {answer:?}");
        assert_eq!(answer.header("set-cookie"), None, "{path}");
    }
    let long = format!("text={}", "x".repeat(1 << 20));
    let answer = web.request("POST", "/agent/docs/live/main/send", &sent, &long);
    assert_eq!(answer.status, 413, "{}", answer.body);
    let longer = format!("text={}", "x".repeat(4 << 20));
    assert_eq!(web.request("POST", "/agent/docs/live/main/send", &sent, &longer).status, 413);
    // Encoded, it may be longer.
    let encoded = format!("key=web:1&text={}", "%F0%9F%A6%80".repeat(200_000));
    let answer = web.request("POST", "/agent/nobody/live/main/send", &sent, &encoded);
    assert_eq!(answer.status, 404, "{}", answer.body);
    let head = format!("GET {}/ HTTP/1.1\r\nHost: {host}\r\nX: {}\r\n\r\n", web.prefix(), "x".repeat(64 << 10));
    let refused = exchange(web.port, head.as_bytes());
    assert!(refused.as_ref().map_or(true, |answer| answer.status == 431), "{refused:?}");
    // The page that a browser without the script continues at is ours.
    let own = web.prefix();
    for back in ["//evil.example", "https://evil.example", "/\\evil.example", "/%0d%0aX: y"] {
        let back = format!("{}{back}", if back.starts_with('/') { own } else { "" });
        let body = format!("decision=deny&hash=x&reason=&back={back}");
        let answer = web.request("POST", "/approvals/abcdef", &sent, &body);
        assert_eq!((answer.status, answer.header("location")), (404, None), "{answer:?}");
    }
    assert!(fixture.client().messages("docs").is_empty(), "something was sent");
    assert_eq!(web.request("GET", "/", &sent, "").status, 200, "it still answers");
}

#[test]
fn nothing_can_be_changed_read_only() {
    let fixture = fixture();
    fixture.client().append("docs", "hello");
    let web = Web::start(&fixture.home, &["--read-only"]);
    let (cookie, host) = (web.sign_in(), web.host());
    let sent = [("Host", &*host), ("Cookie", &*cookie), ("Sec-Fetch-Site", "same-origin")];
    for path in [
        "/agent/docs/live/main/send",
        "/agent/docs/live/main/cancel",
        "/approvals/abcdef",
        "/agent/docs/live/main",
        "/",
    ] {
        let answer = web.request("POST", path, &sent, "text=planted&decision=once&hash=x");
        assert!(matches!(answer.status, 404 | 405), "{path}: {answer:?}");
    }
    let page = web.request("GET", "/agent/docs/live/main", &sent, "").body;
    assert!(page.contains("hello") && !page.contains("<textarea") && !page.contains("method=\"post\""), "{page}");
    assert_eq!(fixture.client().messages("docs").len(), 1);
}

#[test]
fn script_is_text_wherever_it_comes_from() {
    const EVIL: &str = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>";
    let fixture = fixture();
    let mut client = fixture.client();
    let title = Some(EVIL.to_owned());
    let params = NewParams { agent: Some("docs".into()), name: "side".into(), title, ..Default::default() };
    client.call::<New>(&params).expect("conversations.new");
    let mut call =
        NewMessage::text(Role::Assistant, format!("findme {EVIL}\n\n```html\n{EVIL}\n```\n[x](javascript:alert(1))"));
    let params = serde_json::to_string(EVIL).expect("JSON");
    let params = RawValue::from_string(format!("{{\"{}\":{params}}}", "<b>name")).expect("JSON");
    call.tool_calls = vec![ToolCall { id: "1".into(), name: EVIL.into(), params }];
    let mut result = NewMessage::text(Role::ToolResult, EVIL);
    (result.tool_call_id, result.name) = (Some("1".into()), Some(EVIL.into()));
    let mut user = NewMessage::text(Role::User, EVIL);
    user.author = Some(chorus_proto::Author { id: "1".into(), name: EVIL.into() });
    client.append_all("docs", vec![user, call, result]);
    let session = client.save("docs", EVIL).header.id;
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    for path in [
        "/".to_owned(),
        "/agent/docs".into(),
        "/agent/docs/tree".into(),
        "/agent/docs/live/main".into(),
        format!("/session/{session}"),
        "/search?q=findme".into(),
        "/search?q=%3Cscript%3Ealert(1)%3C/script%3E".into(),
        "/usage?agent=docs&since=%3Cscript%3E".into(),
    ] {
        browser.open(&web.address(&path));
        browser.wait_for("document.readyState === 'complete'");
        let found = browser.evaluate("document.title + ' ' + document.querySelectorAll('script').length + document.querySelectorAll('img, [onerror], iframe').length + [...document.links].some((link) => link.protocol === 'javascript:')");
        let found = found.and_then(|found| found.as_str().map(str::to_owned)).expect("a value");
        assert!(!found.starts_with("owned") && found.ends_with(" 10false"), "{path}: {found}");
        let complaints = browser.take_complaints();
        assert!(complaints.iter().all(|text| !text.contains("Content Security Policy")), "{path}: {complaints:#?}");
    }
}
