//! The least work of a program that asks a daemon for its status: connect, send one request, print the answer.

use std::io::{Read, Write};

fn main() {
    let path = std::env::args().nth(1).expect("a socket");
    let mut stream = std::os::unix::net::UnixStream::connect(path).expect("a daemon");
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"status","params":{}}"#;
    let mut frame = (body.len() as u32).to_be_bytes().to_vec();
    frame.extend_from_slice(body);
    stream.write_all(&frame).expect("sent");
    let mut header = [0; 4];
    stream.read_exact(&mut header).expect("an answer");
    let mut answer = vec![0; u32::from_be_bytes(header) as usize];
    stream.read_exact(&mut answer).expect("an answer");
    std::io::stdout().write_all(&answer).expect("printed");
}
