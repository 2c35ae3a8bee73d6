//! Servers at an address.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use chorus_tests::free_port::free_port;

use super::*;

/// The server as a process of the test, ended when it is dropped.
struct HttpServer {
    child: Child,
    port: u16,
}

impl HttpServer {
    fn start(place: &Place) -> Self {
        let mut command = Command::new("python3");
        let mut child =
            command.arg(SCRIPT).arg(place.path()).arg("--http").stdout(Stdio::piped()).spawn().expect("python3");
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("its output");
        BufReader::new(output).read_line(&mut line).expect("a port");
        let port = line.trim().parse().expect("a port");
        Self { child, port }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn it_gets_its_token_and_headers_and_nobody_sees_them() {
    let place = Place::new();
    let server = HttpServer::start(&place);
    let table = format!(
        "[mcp.test]\nurl = \"http://127.0.0.1:{}/mcp\"\ntoken_env = \"TOKEN_4711\"\nheaders_env = [\"X-Key=KEY_4711\"]\n",
        server.port
    );
    let fixture = builder(home())
        .tables(&table)
        .env("TOKEN_4711", "token-of-the-server-4711")
        .env("KEY_4711", "key-of-the-server-4711")
        .start();
    create_agent(&fixture, "a", "open");
    assert_eq!(body(&call(&fixture, "echo", "hello")), "said: hello");
    let all = |name: &str, value: &str| place.lines(name).iter().all(|line| line == value);
    assert!(all("authorization", "Bearer token-of-the-server-4711") && all("key", "key-of-the-server-4711"));
    let shown = chorusctl(&fixture.home, ["settings", "show"]).expect_success();
    assert!(shown.contains("TOKEN_4711") && shown.contains("X-Key=KEY_4711"), "{shown}");
    assert!(!shown.contains("of-the-server-4711"), "{shown}");
}

#[test]
fn one_that_is_not_there_is_reported_and_tried_again() {
    let place = Place::new();
    let free = free_port();
    let table = format!("[mcp.test]\nurl = \"http://127.0.0.1:{free}/mcp\"\n");
    let fixture = builder(home()).tables(&table).start();
    create_agent(&fixture, "a", "open");
    fixture.reply("Hi.");
    fixture.send("a", "Hello.").expect("a turn");
    let log = fixture.daemon().read_log();
    assert!(log.contains("the MCP server is not running") && log.contains("onnection refused"), "{log}");
    drop(place);
}
