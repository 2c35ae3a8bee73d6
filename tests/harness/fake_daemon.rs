//! A fake daemon that implements the protocol and answers as the test says.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use crate::home::Home;

/// The answer to a request: its result, then notifications; disconnects if `gone` is set.
#[derive(Debug, Default)]
pub struct FakeReply {
    pub result: Value,
    /// Methods with their params.
    pub notifications: Vec<(&'static str, Value)>,
    pub disconnect: bool,
}

impl From<Value> for FakeReply {
    fn from(result: Value) -> Self {
        Self { result, ..Self::default() }
    }
}

/// Listens on the socket of `home`. `answer` receives each request's method and params and returns the reply.
pub fn start_fake_daemon(home: &Home, answer: impl FnMut(&str, &Value) -> FakeReply + Send + 'static) {
    let answer = Mutex::new(answer);
    start_fake_daemon_with(home, move |mut asked| {
        let answer = (answer.lock().expect("no answer panicked"))(&asked.method, &asked.params);
        asked.send_result(answer.result);
        for (method, params) in answer.notifications {
            asked.send_notification(method, params);
        }
        if answer.disconnect {
            asked.disconnect();
        }
    });
}

/// A request, and the connection on which it arrived.
#[derive(Debug)]
pub struct FakeRequest<'a> {
    pub method: String,
    pub params: Value,
    id: Value,
    stream: &'a mut UnixStream,
}

/// Listens on the socket of `home` until that is removed. Calls `play` for each request. Requests of one connection are
/// handled one after the other, those of several connections concurrently, so that one may wait for another.
pub fn start_fake_daemon_with(home: &Home, play: impl Fn(FakeRequest<'_>) + Send + Sync + 'static) {
    fs::create_dir_all(home.socket().parent().expect("a directory")).expect("run/");
    let listener = UnixListener::bind(home.socket()).expect("a socket");
    let play = Arc::new(play);
    let serve = move |mut stream: UnixStream| {
        let play = play.clone();
        std::thread::spawn(move || {
            while let Some(mut request) = read_message(&mut stream) {
                let method = request["method"].as_str().expect("a method").to_owned();
                let (params, id) = (request["params"].take(), request["id"].take());
                play(FakeRequest { method, params, id, stream: &mut stream });
            }
        })
    };
    std::thread::spawn(move || listener.incoming().map_while(Result::ok).map(serve).for_each(drop));
}

impl FakeRequest<'_> {
    /// Sends `said` as a `progress` notification of `send`; it must be an object.
    pub fn send_progress(&mut self, mut said: Value) {
        said.as_object_mut().expect("an object").insert("id".into(), self.id.clone());
        self.send_notification("progress", said);
    }

    /// Sends a notification.
    pub fn send_notification(&mut self, method: &str, params: Value) {
        write_message(self.stream, &json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Answers with a result.
    pub fn send_result(&mut self, result: Value) {
        write_message(self.stream, &json!({"jsonrpc": "2.0", "id": self.id, "result": result}));
    }

    /// Answers with an error.
    pub fn send_error(&mut self, kind: &str, message: &str, hint: &str) {
        self.send_error_with_code(-32000, kind, message, hint);
    }

    /// Answers as a daemon of a release that does not have the method.
    pub fn send_unknown_method(&mut self) {
        let message = format!("unknown method {:?}", self.method);
        self.send_error_with_code(-32601, "unsupported", &message, "see the methods in docs/PROTOCOL.md");
    }

    fn send_error_with_code(&mut self, code: i32, kind: &str, message: &str, hint: &str) {
        let error = json!({"code": code, "message": message, "data": {"kind": kind, "hint": hint}});
        write_message(self.stream, &json!({"jsonrpc": "2.0", "id": self.id, "error": error}));
    }

    /// Returns true if the client is still connected.
    #[must_use]
    pub fn is_client_connected(&self) -> bool {
        let mut waiting = [PollFd::new(&*self.stream, PollFlags::RDHUP)];
        poll(&mut waiting, Some(&Timespec { tv_sec: 0, tv_nsec: 10_000_000 })).is_ok_and(|gone| gone == 0)
    }

    /// Sends nothing and waits until the client disconnects.
    pub fn wait_for_disconnect(self) {
        // The client sends nothing more, so the read returns at the end of the connection.
        let _ = self.stream.read(&mut [0]);
    }

    /// Closes the connection.
    pub fn disconnect(self) {
        // The client may have disconnected already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

fn read_message(stream: &mut UnixStream) -> Option<Value> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).ok()?;
    let mut body = vec![0; u32::from_be_bytes(header) as usize];
    stream.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn write_message(stream: &mut UnixStream, value: &Value) {
    let body = value.to_string();
    let header = u32::try_from(body.len()).expect("a length").to_be_bytes();
    // The client may have disconnected already.
    let _ = stream.write_all(&[&header[..], body.as_bytes()].concat());
}
