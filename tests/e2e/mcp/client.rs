//! A client that writes lines of JSON-RPC by hand.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};

use chorus_tests::Home;
use chorus_tests::process::wait_for_exit;
use chorus_tests::wait::DEADLINE;
use serde_json::{Value, json};

/// The newest version that begins with `initialize`.
pub(super) const VERSION: &str = "2025-11-25";

/// A server with its pipes. Dropping it ends the server.
pub(super) struct McpClient {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next_id: u64,
    /// `_meta` of every request, for the versions without `initialize`.
    pub(super) meta: Option<Value>,
}

impl McpClient {
    /// Runs `chorusctl` with `args`; nothing is said yet.
    pub(super) fn spawn(home: &Home, args: &[&str]) -> Self {
        let mut command = home.command(home.bins.chorusctl);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the server");
        let stdout = child.stdout.take().expect("its output");
        let (sender, lines) = sync_channel(1024);
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, next_id: 1, meta: None }
    }

    /// Runs `chorusctl` with `args` and initializes it.
    pub(super) fn start(home: &Home, args: &[&str]) -> Self {
        let mut client = Self::spawn(home, args);
        client.initialize(VERSION);
        client
    }

    /// Begins the session, and returns what the server says of itself.
    pub(super) fn initialize(&mut self, version: &str) -> Value {
        let about = json!({"name": "tests", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": about});
        let result = self.request("initialize", params).expect("it is accepted");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        result
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    pub(super) fn send_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("it is open");
        stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).expect("it is taken");
    }

    /// Sends bytes without the end of a line.
    pub(super) fn send_bytes(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().expect("it is open").write_all(bytes).expect("they are taken");
    }

    /// Returns the next message; every line must be one.
    pub(super) fn receive(&mut self) -> Value {
        let line = self.lines.recv_timeout(DEADLINE).expect("a message");
        let message: Value = serde_json::from_str(&line).expect("only messages are on standard output");
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    /// Sends a request and returns its id.
    pub(super) fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a request and returns its result, or its error.
    pub(super) fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.begin(method, params);
        let mut answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        match answer["error"].take() {
            Value::Null => Ok(answer["result"].take()),
            error => Err(error),
        }
    }

    /// Calls a tool and returns its text, or the text of its error.
    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Result<String, String> {
        let result = self.request("tools/call", json!({"name": tool, "arguments": arguments})).expect("a result");
        let text = result["content"][0]["text"].as_str().expect("text").to_owned();
        assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{result}");
        if result["isError"] == true { Err(text) } else { Ok(text) }
    }

    /// Calls a tool that succeeds.
    pub(super) fn text_of(&mut self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).expect("it succeeds")
    }

    /// Closes standard input and waits for the end; returns what it wrote to standard error, and the rest of its output.
    pub(super) fn close(mut self) -> (ExitStatus, String, Vec<String>) {
        self.stdin = None;
        let status = wait_for_exit(&mut self.child, "the server");
        let mut said = String::new();
        self.child.stderr.take().expect("its errors").read_to_string(&mut said).expect("text");
        (status, said, self.lines.iter().collect())
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
