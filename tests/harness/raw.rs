//! A connection that sends arbitrary bytes.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use chorus_proto::frame;
use serde_json::{Value, json};

use crate::wait::DEADLINE;

/// A connection below the level of the protocol.
#[derive(Debug)]
pub struct RawConnection {
    stream: UnixStream,
}

impl RawConnection {
    #[must_use]
    pub fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("the daemon accepts");
        stream.set_read_timeout(Some(DEADLINE)).expect("a time-out");
        stream.set_write_timeout(Some(DEADLINE)).expect("a time-out");
        Self { stream }
    }

    /// Sends raw bytes. If the daemon has closed the connection, that shows when the answer is read.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        match self.stream.write_all(bytes) {
            Err(e) if !matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => panic!("write: {e}"),
            _ => {}
        }
    }

    /// Sends `piece` up to `times` times at an interval, until the daemon closes the connection. Returns how many it
    /// sent before that. Panics if the daemon answers.
    pub fn drip(&mut self, piece: &[u8], every: Duration, times: usize) -> usize {
        self.stream.set_read_timeout(Some(every)).expect("a time-out");
        let taken = (0..times).find(|_| {
            self.send_bytes(piece);
            match self.stream.read(&mut [0]) {
                Ok(0) => true,
                Ok(_) => panic!("an answer in the middle of a frame"),
                Err(e) if e.kind() == ErrorKind::WouldBlock => false,
                Err(e) if e.kind() == ErrorKind::ConnectionReset => true,
                Err(e) => panic!("read: {e}"),
            }
        });
        self.stream.set_read_timeout(Some(DEADLINE)).expect("a time-out");
        taken.unwrap_or(times)
    }

    /// Sends `piece` repeatedly at an interval while `go_on` returns true. Returns the first answer; `None` if there
    /// was none by then or the daemon closed the connection.
    pub fn drip_while(&mut self, piece: &[u8], every: Duration, go_on: impl Fn() -> bool) -> Option<Vec<u8>> {
        self.stream.set_read_timeout(Some(every)).expect("a time-out");
        let mut header = [0; frame::HEADER_BYTES];
        let mut is_answered = false;
        while !is_answered && go_on() {
            self.send_bytes(piece);
            match self.stream.read(&mut header[..1]) {
                Ok(0) => break,
                Ok(_) => is_answered = true,
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) if e.kind() == ErrorKind::ConnectionReset => break,
                Err(e) => panic!("read: {e}"),
            }
        }
        self.stream.set_read_timeout(Some(DEADLINE)).expect("a time-out");
        is_answered.then(|| {
            self.stream.read_exact(&mut header[1..]).expect("the rest of a header");
            let mut body = vec![0; u32::from_be_bytes(header) as usize];
            self.stream.read_exact(&mut body).expect("the rest of an answer");
            body
        })
    }

    /// Sends `body` as one frame.
    pub fn send_frame(&mut self, body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        let header = u32::try_from(body.len()).expect("a length").to_be_bytes();
        self.send_bytes(&[&header[..], body].concat());
    }

    /// Sends `body` up to `times` times, until the daemon accepts no more.
    pub fn send_until_blocked(&mut self, body: &str, times: usize) {
        self.stream.set_write_timeout(Some(Duration::from_millis(300))).expect("a time-out");
        let frame = [&u32::try_from(body.len()).expect("a length").to_be_bytes()[..], body.as_bytes()].concat();
        for _ in 0..times {
            if self.stream.write_all(&frame).is_err() {
                break;
            }
        }
    }

    /// Closes the sending side of the connection.
    pub fn shutdown_write(&mut self) {
        self.stream.shutdown(Shutdown::Write).expect("a shutdown");
    }

    /// Receives the next frame; `None` if the daemon closed the connection.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        let mut header = [0; frame::HEADER_BYTES];
        match self.stream.read_exact(&mut header) {
            Ok(()) => {}
            Err(e) if matches!(e.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => return None,
            Err(e) => panic!("no answer: {e}"),
        }
        let mut body = vec![0; u32::from_be_bytes(header) as usize];
        self.stream.read_exact(&mut body).expect("a whole frame");
        Some(body)
    }

    /// Receives the next frame as JSON.
    pub fn receive_json(&mut self) -> Value {
        let body = self.receive().expect("an answer, not the end of the connection");
        serde_json::from_slice(&body).expect("JSON")
    }

    /// Sends `body` and receives the answer.
    pub fn exchange(&mut self, body: impl AsRef<[u8]>) -> Value {
        self.send_frame(body);
        self.receive_json()
    }

    /// Calls a method and receives the whole answer.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.exchange(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string())
    }

    /// Checks that the connection works by calling `hello`.
    pub fn check_hello(&mut self) {
        let answer = self.call("hello", json!({}));
        assert_eq!(answer["result"]["server"], "chorusd", "{answer}");
    }

    /// Reads until the daemon closes the connection; returns true.
    pub fn wait_until_closed(&mut self) -> bool {
        while self.receive().is_some() {}
        true
    }
}
