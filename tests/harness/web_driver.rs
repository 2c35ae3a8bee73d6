//! Drives a headless Chromium through chromedriver, by the WebDriver protocol.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::sync_channel;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::browser::{Browser, FLAGS};
use crate::http_client::exchange;
use crate::wait::{DEADLINE, wait_until};
use crate::{Home, skip};

/// A browser window.
#[derive(Debug)]
pub struct WebDriver {
    driver: Child,
    port: u16,
    session: String,
    _profile: tempfile::TempDir,
}

impl WebDriver {
    /// Starts a browser; skips the test and returns `None` without Chromium or chromedriver.
    #[must_use]
    pub fn start(home: &Home) -> Option<Self> {
        let browser = Browser::find()?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).map(|dir| dir.join("chromedriver")).find(|path| path.is_file());
        let Some(program) = found else {
            skip("no chromedriver here (Debian: chromium-driver)");
            return None;
        };
        let profile = tempfile::Builder::new().prefix("profile").tempdir_in(home.temp_dir()).expect("a profile");
        let (driver, port) = start_driver(home, &program);
        let mut arguments: Vec<String> =
            FLAGS.iter().filter(|flag| **flag != "--dump-dom").map(ToString::to_string).collect();
        arguments.push(format!("--user-data-dir={}", profile.path().display()));
        let options = json!({"args": arguments, "binary": browser.program()});
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}});
        let mut window = Self { driver, port, session: String::new(), _profile: profile };
        let made = window.request("POST", "/session", &wanted);
        window.session = made["sessionId"].as_str().expect("a session").to_owned();
        Some(window)
    }

    fn request(&self, method: &str, path: &str, body: &Value) -> Value {
        self.try_request(method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    fn try_request(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            self.port,
            body.len()
        );
        let response = exchange(self.port, request.as_bytes()).map_err(|error| error.to_string())?;
        let mut answer: Value = serde_json::from_str(&response.body).map_err(|error| error.to_string())?;
        match response.status {
            200 => Ok(answer["value"].take()),
            _ => Err(answer["value"]["message"].as_str().unwrap_or_default().to_owned()),
        }
    }

    fn call(&self, name: &str, body: &Value) -> Value {
        self.request("POST", &format!("/session/{}/{name}", self.session), body)
    }

    /// Opens an address and waits until it is loaded.
    pub fn open(&self, address: &str) {
        self.call("url", &json!({"url": address}));
    }

    /// Returns the value of an expression in the page; `None` if it fails, as while another page is being loaded.
    #[must_use]
    pub fn evaluate(&self, expression: &str) -> Option<Value> {
        let body = json!({"script": format!("return ({expression});"), "args": []});
        self.try_request("POST", &format!("/session/{}/execute/sync", self.session), &body).ok()
    }

    /// Waits until an expression is true, and returns its value.
    pub fn wait_for(&self, expression: &str) -> Value {
        let what = format!("{expression}, at {:?}", self.text().chars().take(3000).collect::<String>());
        wait_until(&what, DEADLINE, || {
            self.evaluate(expression).filter(|value| !matches!(value, Value::Null | Value::Bool(false)))
        })
    }

    /// Waits until the page shows a text.
    pub fn wait_for_text(&self, text: &str) {
        wait_until(&format!("{text:?} in the page"), DEADLINE, || self.text().contains(text).then_some(()));
    }

    /// Waits until the page does not show a text.
    pub fn wait_until_gone(&self, text: &str) {
        wait_until(&format!("{text:?} to go"), DEADLINE, || (!self.text().contains(text)).then_some(()));
    }

    /// Returns the text that the page shows.
    #[must_use]
    pub fn text(&self) -> String {
        let text = self.evaluate("document.body ? document.body.innerText : ''").unwrap_or_default();
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Returns the address.
    #[must_use]
    pub fn address(&self) -> String {
        let address = self.request("GET", &format!("/session/{}/url", self.session), &Value::Null);
        address.as_str().unwrap_or_default().to_owned()
    }

    /// Clicks on the first element that a CSS selector finds.
    pub fn click(&self, selector: &str) {
        self.act(selector, "click", &json!({}));
    }

    /// Types into an element. `\u{e007}` is Enter.
    pub fn type_into(&self, selector: &str, text: &str) {
        self.act(selector, "value", &json!({"text": text}));
    }

    /// Does something with an element; again if the page replaced the element after it was found.
    fn act(&self, selector: &str, action: &str, body: &Value) {
        let wanted = json!({"using": "css selector", "value": selector});
        wait_until(&format!("{action} of {selector}"), DEADLINE, || {
            let found = self.call("element", &wanted);
            let element = found.as_object()?.values().next()?.as_str()?.to_owned();
            let path = format!("/session/{}/element/{element}/{action}", self.session);
            match self.try_request("POST", &path, body) {
                Ok(_) => Some(()),
                Err(error) => {
                    assert!(error.contains("stale element"), "{action} of {selector}: {error}");
                    None
                }
            }
        });
    }

    /// Presses keys, wherever the focus is.
    pub fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key.to_string()})))
            .collect();
        self.call("actions", &json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}));
    }

    /// Runs a command of the DevTools protocol.
    pub fn run_devtools(&self, command: &str, params: &Value) {
        self.call("goog/cdp/execute", &json!({"cmd": command, "params": params}));
    }

    /// Sets the size of the page, and whether it is dark.
    pub fn set_display(&self, width: u32, height: u32, is_dark: bool) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.run_devtools("Emulation.setDeviceMetricsOverride", &size);
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.run_devtools("Emulation.setEmulatedMedia", &features);
    }

    /// Returns what the page shows as a PNG.
    #[must_use]
    pub fn screenshot(&self) -> Vec<u8> {
        let picture = self.request("GET", &format!("/session/{}/screenshot", self.session), &Value::Null);
        STANDARD.decode(picture.as_str().expect("a picture")).expect("base64")
    }

    /// Returns the errors and warnings since the last call, such as violations of the page's policy.
    #[must_use]
    pub fn take_complaints(&self) -> Vec<String> {
        let log = self.call("se/log", &json!({"type": "browser"}));
        let entries = log.as_array().cloned().unwrap_or_default().into_iter();
        let serious = entries.filter(|entry| matches!(entry["level"].as_str(), Some("SEVERE" | "WARNING")));
        serious.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

impl Drop for WebDriver {
    fn drop(&mut self) {
        // Ends the browser, too.
        let _ = self.try_request("DELETE", &format!("/session/{}", self.session), &Value::Null);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Starts chromedriver on a free port. It ends if the port that it gets for IPv4 is taken for IPv6; then it is started again.
fn start_driver(home: &Home, program: &Path) -> (Child, u16) {
    (0..10).find_map(|_| try_start_driver(home, program)).expect("chromedriver is ready")
}

fn try_start_driver(home: &Home, program: &Path) -> Option<(Child, u16)> {
    use std::io::BufRead as _;
    let mut command = Command::new(program);
    command.arg("--port=0").env("HOME", &home.user_home).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut driver = command.spawn().expect("chromedriver starts");
    let output = std::io::BufReader::new(driver.stdout.take().expect("its output"));
    let (sender, receiver) = sync_channel(1);
    std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            let port =
                line.strip_suffix('.').and_then(|line| line.rsplit_once("on port ")).map(|(_, port)| port.to_owned());
            if let Some(port) = port.and_then(|port| port.parse().ok()) {
                let _ = sender.try_send(port);
            }
        }
    });
    match receiver.recv_timeout(DEADLINE) {
        Ok(port) => Some((driver, port)),
        Err(_) => {
            let _ = driver.kill();
            let _ = driver.wait();
            None
        }
    }
}
