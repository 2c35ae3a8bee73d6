//! `chorusctl web`: its pages in a browser, and what strangers get who reach its port.

mod asking;
mod attacks;
mod changes;
mod mistakes;
mod pages;
mod ports;
mod reading;
mod screens;
mod start;

use std::fs;
use std::process::Command;

use chorus_tests::ctl::chorusctl;
use chorus_tests::fixture::ANTHROPIC_MODEL;
use chorus_tests::http_client::{HttpResponse, exchange};
use chorus_tests::web_driver::WebDriver;
use chorus_tests::{Fixture, Home, InteractiveCommand};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::home;

/// A daemon with a model server and the agent `docs`.
fn fixture() -> Fixture {
    let fixture = Fixture::builder(home()).models().model(ANTHROPIC_MODEL).start();
    fixture.create_agent("docs", None);
    fixture
}

fn command(home: &Home, args: &[&str]) -> Command {
    let mut command = home.command(home.bins.chorusctl);
    command.arg("web").args(args);
    command
}

/// Prices of the models of [`import_transcripts`].
const PRICES: &str = "[prices.\"anthropic/claude-opus-4-5\"]\ninput = 5\noutput = 25\n\
    [prices.\"anthropic/claude-test\"]\ninput = 2000\noutput = 9000\n";

/// Imports a transcript of Claude Code for each of two projects, with replies on the last 18 days.
fn import_transcripts(home: &Home) {
    for (number, project) in ["/srv/api", "/srv/importer"].into_iter().enumerate() {
        let id = format!("{number}1111111-0000-4000-8000-000000000000");
        let mut lines = String::new();
        for day in 0..18 {
            let at = Timestamp::now() - SignedDuration::from_hours(24 * (17 - day));
            let line = |kind: &str, message: Value| {
                json!({"type": kind, "uuid": format!("{kind}-{day}"), "isSidechain": false, "sessionId": id, "timestamp": at.to_string(),
                    "version": "2.1.332", "cwd": project, "message": message})
            };
            let tokens = 20_000 + day * 7_919 % 60_000 * (2 - i64::try_from(number).expect("a small number"));
            let reply = json!({"id": format!("msg_{number}_{day}"), "role": "assistant", "model": "claude-opus-4-5-20251101",
                "stop_reason": "end_turn", "content": [{"type": "text", "text": format!("Reply {day}.")}],
                "usage": {"input_tokens": tokens, "output_tokens": tokens / 20}});
            let question = json!({"role": "user", "content": format!("Question {day}?")});
            lines += &format!("{}\n{}\n", line("user", question), line("assistant", reply));
        }
        let dir = home.user_home.join(".claude/projects").join(project.replace('/', "-"));
        fs::create_dir_all(&dir).expect("a directory");
        let path = dir.join(format!("{id}.jsonl"));
        fs::write(&path, lines).expect("a transcript");
        chorusctl(home, ["import", path.to_str().expect("UTF-8")]).expect_success();
    }
}

/// The running command.
struct Web {
    running: InteractiveCommand,
    link: String,
    port: u16,
}

impl Web {
    fn start(home: &Home, args: &[&str]) -> Self {
        Self::start_command(command(home, &[&["--no-open"][..], args].concat()))
    }

    fn start_command(command: Command) -> Self {
        let running = InteractiveCommand::on_terminal_of(&command, 200, 24);
        running.stdout.wait_for("Ctrl-C ends the pages");
        let text = running.stdout.text();
        let link = text.lines().next().expect("a line").trim().to_owned();
        let port = link.split([':', '/']).nth(4).and_then(|port| port.parse().ok());
        Self { port: port.unwrap_or_else(|| panic!("no port in {link:?}")), running, link }
    }

    fn address(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{}{path}", self.port, self.prefix())
    }

    /// Returns the path that all pages are below.
    fn prefix(&self) -> &str {
        let path = self.link.split_once(&self.host()).expect("our host").1;
        path.split_once("/open?").expect("the path of the link").0
    }

    fn token(&self) -> &str {
        self.link.split_once("token=").expect("a token").1
    }

    /// Sends a request for a page with headers of one's own, besides the length of its body.
    fn request(&self, method: &str, page: &str, headers: &[(&str, &str)], body: &str) -> HttpResponse {
        self.request_path(method, &format!("{}{page}", self.prefix()), headers, body)
    }

    /// Sends a request for a whole path.
    fn request_path(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> HttpResponse {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() || method == "POST" {
            request +=
                &format!("Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n", body.len());
        }
        exchange(self.port, format!("{request}\r\n{body}").as_bytes()).expect("an answer")
    }

    /// Returns our own host.
    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Uses the link, and returns the cookie.
    fn sign_in(&self) -> String {
        let path = self.link.split_once(&self.host()).expect("our host").1;
        let opened = self.request_path("GET", path, &[("Host", &self.host())], "");
        assert_eq!(opened.status, 200, "{opened:?}");
        let cookie = opened.header("set-cookie").expect("a cookie");
        cookie.split(';').next().expect("a pair").to_owned()
    }

    /// Opens the link in a browser; `None` skips the test.
    fn browse(&self, home: &Home) -> Option<WebDriver> {
        let browser = WebDriver::start(home)?;
        browser.open(&self.link);
        browser.wait_for("location.pathname === document.body.dataset.root + '/' && document.body.dataset.ready");
        Some(browser)
    }
}
