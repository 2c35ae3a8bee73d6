//! Plain HTTP requests, byte by byte, for servers that hostile clients reach, too.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use crate::wait::DEADLINE;

/// The answer to a request.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl HttpResponse {
    /// Returns the value of a header, or nothing.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| &**value)
    }
}

/// Sends `request` as it is to a port of 127.0.0.1, and reads one response.
///
/// # Errors
/// Nothing answers, or the connection ends before a whole response.
pub fn exchange(port: u16, request: &[u8]) -> io::Result<HttpResponse> {
    let mut connection = TcpStream::connect(("127.0.0.1", port))?;
    connection.set_read_timeout(Some(DEADLINE))?;
    // A server may refuse a long request before it has read it.
    let _ = connection.write_all(request);
    read_response(&mut BufReader::new(connection), request.starts_with(b"HEAD "))
}

fn read_response(reader: &mut BufReader<TcpStream>, is_head: bool) -> io::Result<HttpResponse> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, line.clone()))?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut response = HttpResponse { status, headers, body: String::new() };
    if is_head {
        return Ok(response);
    }
    let mut body = Vec::new();
    match response.header("content-length").and_then(|length| length.parse().ok()) {
        Some(length) => {
            body.resize(length, 0);
            reader.read_exact(&mut body)?;
        }
        None if status != 204 && response.header("transfer-encoding").is_none() => drop(reader.read_to_end(&mut body)?),
        None => {}
    }
    response.body = String::from_utf8_lossy(&body).into_owned();
    Ok(response)
}
