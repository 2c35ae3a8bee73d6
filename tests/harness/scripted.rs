//! A peer in the daemon's place that speaks the protocol and answers as it is told.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::home::Home;

/// What follows a request: its result, then notifications; the connection ends where `gone` says so.
#[derive(Debug, Default)]
pub struct Answer {
    pub result: Value,
    /// Methods with their params.
    pub then: Vec<(&'static str, Value)>,
    pub gone: bool,
}

impl From<Value> for Answer {
    fn from(result: Value) -> Self {
        Self { result, ..Self::default() }
    }
}

/// Listens where the daemon of `home` would; `answer` is given each request's method and params.
///
/// # Panics
/// Where there can be no socket.
pub fn scripted(home: &Home, answer: impl FnMut(&str, &Value) -> Answer + Send + 'static) {
    fs::create_dir_all(home.socket().parent().expect("a directory")).expect("run/");
    let listener = UnixListener::bind(home.socket()).expect("a socket");
    let answer = Arc::new(Mutex::new(answer));
    let serve = move |mut stream: UnixStream| {
        let answer = answer.clone();
        std::thread::spawn(move || {
            while let Some(request) = receive(&mut stream) {
                let method = request["method"].as_str().expect("a method");
                let answer = (answer.lock().expect("no answer panicked"))(method, &request["params"]);
                send(&mut stream, &json!({"jsonrpc": "2.0", "id": request["id"], "result": answer.result}));
                for (method, params) in answer.then {
                    send(&mut stream, &json!({"jsonrpc": "2.0", "method": method, "params": params}));
                }
                if answer.gone {
                    break;
                }
            }
        })
    };
    std::thread::spawn(move || listener.incoming().map_while(Result::ok).map(serve).for_each(drop));
}

fn receive(stream: &mut UnixStream) -> Option<Value> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).ok()?;
    let mut body = vec![0; u32::from_be_bytes(header) as usize];
    stream.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn send(stream: &mut UnixStream, value: &Value) {
    let body = value.to_string();
    let header = u32::try_from(body.len()).expect("a length").to_be_bytes();
    // Whoever asked may have gone.
    let _ = stream.write_all(&[&header[..], body.as_bytes()].concat());
}
