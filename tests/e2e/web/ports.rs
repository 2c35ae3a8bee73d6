//! The path that all pages are below, and other listeners of this machine, which get the cookies that a browser has for its address.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc::sync_channel;

use chorus_tests::DEADLINE;
use chorus_tests::client_ext::ClientExt as _;

use super::{Web, fixture};

#[test]
fn nothing_is_answered_elsewhere() {
    let fixture = fixture();
    fixture.client().append("docs", "a secret word");
    let web = Web::start(&fixture.home, &[]);
    let (cookie, host) = (web.sign_in(), web.host());
    let sent = [("Host", &*host), ("Cookie", &*cookie), ("Sec-Fetch-Site", "same-origin")];
    let prefix = web.prefix();
    assert!(prefix.len() == 33 && prefix[1..].bytes().all(|byte| byte.is_ascii_hexdigit()), "{prefix}");
    let open = format!("/open?token={}", web.token());
    let other = format!("/{}/", "0".repeat(32));
    let shorter = format!("{}/", &prefix[..32]);
    for path in ["/", "/open", &open, "/script.js", "/style.css", "/events", "/usage", "//", &other, &shorter, prefix] {
        for headers in [&sent[..], &sent[..1], &[("Host", "evil.example")]] {
            for method in ["GET", "POST"] {
                let answer = web.request_path(method, path, headers, "");
                assert_eq!((answer.status, &*answer.body), (404, ""), "{method} {path}: {answer:?}");
                assert_eq!((answer.header("set-cookie"), answer.header("location")), (None, None), "{answer:?}");
            }
        }
    }
    assert_eq!(web.request("GET", "/", &sent, "").status, 200);
    // Addresses of messages stay, and nobody else reads the key.
    let key = fixture.home.path.join("run/web.key");
    assert_eq!(fs::metadata(&key).expect("the key").permissions().mode() & 0o777, 0o600);
    assert_eq!(Web::start(&fixture.home, &[]).prefix(), prefix);
    fs::remove_file(&key).expect("the key");
    assert_ne!(Web::start(&fixture.home, &[]).prefix(), prefix);
}

/// Checks that a request has no cookie but the one that the listener has set.
fn assert_foreign(head: &str, port: u16) {
    let own = format!("cookie: chorus_web_{port}=x");
    let cookies = head.lines().map(str::to_ascii_lowercase).filter(|line| line.starts_with("cookie:"));
    for line in cookies {
        assert_eq!(line, own, "{head}");
    }
}

#[test]
fn a_listener_on_another_port_gets_no_cookie_and_signs_nobody_out() {
    let fixture = fixture();
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let other = listener.local_addr().expect("its address").port();
    let (sender, heads) = sync_channel(100);
    let port = web.port;
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { return };
            let mut head = [0; 8192];
            let Ok(length) = connection.read(&mut head) else { continue };
            let _ = sender.try_send(String::from_utf8_lossy(&head[..length]).into_owned());
            let answer = format!(
                "HTTP/1.1 200 OK\r\nSet-Cookie: chorus_web_{port}=x; Path=/\r\nContent-Type: text/html\r\n\
                 Connection: close\r\n\r\n<title>other</title>"
            );
            let _ = connection.write_all(answer.as_bytes());
        }
    });
    // The browser follows a link of our own page, or is sent there.
    for path in ["/", "/agent/docs/live/main", "/%2e%2e/"] {
        browser.open(&format!("http://127.0.0.1:{other}{path}"));
        browser.wait_for("document.title === 'other'");
        let head = heads.recv_timeout(DEADLINE).expect("a request");
        assert!(head.starts_with("GET /"), "{head}");
        assert_foreign(&head, port);
    }
    while let Ok(head) = heads.try_recv() {
        assert_foreign(&head, port);
    }
    browser.open(&web.address("/usage"));
    browser.wait_for("document.body.dataset.ready && document.title.startsWith('Usage')");
}
