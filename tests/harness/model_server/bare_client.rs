//! A client of the server that only sends a request and reads its answer: the floor of a turn.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::ModelServer;

/// A connection that is kept, as the daemon keeps its own.
#[derive(Debug)]
pub struct BareClient {
    stream: TcpStream,
    answer: Vec<u8>,
}

impl BareClient {
    /// Connects to the server.
    #[must_use]
    pub fn connect(server: &ModelServer) -> Self {
        let stream = TcpStream::connect(server.address).expect("the server");
        stream.set_nodelay(true).expect("a socket");
        Self { stream, answer: Vec::new() }
    }

    /// Sends a request and waits until its answer has ended.
    pub fn request(&mut self) {
        const BODY: &str = r#"{"model":"m"}"#;
        const END: &[u8] = b"0\r\n\r\n";
        let length = BODY.len();
        let request = format!("POST /v1/messages HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{BODY}");
        self.stream.write_all(request.as_bytes()).expect("sent");
        self.answer.clear();
        let mut piece = [0; 4096];
        while !self.answer.ends_with(END) {
            let read = self.stream.read(&mut piece).expect("an answer");
            assert!(read > 0, "the answer has no end");
            self.answer.extend_from_slice(&piece[..read]);
        }
    }
}
