//! The part of HTTP/1.1 that model clients need.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use super::state::RecordedRequest;

/// Reads the next request; `None` if the client has disconnected.
pub fn read_request(reader: &mut BufReader<TcpStream>, connection: u64) -> io::Result<Option<RecordedRequest>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_ascii_whitespace();
    let (method, path) = (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let text = String::from_utf8_lossy(&body).into_owned();
    let body = serde_json::from_str(&text).unwrap_or(Value::Null);
    Ok(Some(RecordedRequest { method, path, headers, text, body, connection }))
}

/// Writes a complete response.
pub fn write_response(
    stream: &mut TcpStream,
    status: u16,
    kind: &str,
    headers: &[(String, String)],
    body: &str,
) -> io::Result<()> {
    let mut head = response_head(status, kind, headers);
    head.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    stream.write_all(head.as_bytes())
}

/// Writes the head of a chunked response.
pub fn start_chunked(stream: &mut TcpStream, headers: &[(String, String)]) -> io::Result<()> {
    let mut head = response_head(200, "text/event-stream; charset=utf-8", headers);
    head.push_str("transfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes())
}

/// Writes one chunk.
pub fn write_chunk(stream: &mut TcpStream, piece: &[u8]) -> io::Result<()> {
    if piece.is_empty() {
        return Ok(());
    }
    let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
    chunk.extend_from_slice(piece);
    chunk.extend_from_slice(b"\r\n");
    stream.write_all(&chunk)
}

/// Writes the final chunk.
pub fn end_chunked(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"0\r\n\r\n")
}

fn response_head(status: u16, kind: &str, headers: &[(String, String)]) -> String {
    let mut head = format!("HTTP/1.1 {status} Scripted\r\n");
    if !headers.iter().any(|(name, _)| name == "content-type") {
        head.push_str(&format!("content-type: {kind}\r\n"));
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head
}
