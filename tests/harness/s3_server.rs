//! A real server that speaks S3 (`moto_server`), one for the whole process, and a bucket in it for each test.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::free_port::free_port;
use crate::skip::skip;
use crate::{DEADLINE, wait_until};

/// A bucket that only one test uses.
#[derive(Debug, Clone)]
pub struct TestBucket {
    /// The port of the server on 127.0.0.1.
    pub port: u16,
    pub name: String,
}

/// Starts the server; `None` if it is not installed. It ends once the standard input that this process holds is closed,
/// however this process ends.
fn start_server() -> Option<u16> {
    let is_installed = Command::new("moto_server").arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !is_installed.is_ok_and(|status| status.success()) {
        return None;
    }
    let port = free_port();
    let run = format!("moto_server -H 127.0.0.1 -p {port} >/dev/null 2>&1 & read -r _; kill $!");
    let mut janitor = Command::new("sh");
    janitor.args(["-c", &run]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = janitor.spawn().expect("a shell");
    // Its standard input is closed when this process ends.
    std::mem::forget(child);
    wait_until("the S3 server", DEADLINE, || TcpStream::connect(("127.0.0.1", port)).ok());
    Some(port)
}

impl TestBucket {
    /// Creates an empty bucket on the server that all tests share; skips the test if the server is not installed.
    #[must_use]
    pub fn create() -> Option<Self> {
        static SHARED: OnceLock<Option<u16>> = OnceLock::new();
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let Some(port) = *SHARED.get_or_init(start_server) else {
            skip("moto_server is not installed here");
            return None;
        };
        let name = format!("test-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let answer = send(port, &format!("PUT /{name} HTTP/1.0\r\n"), b"");
        assert!(answer.contains(" 200 "), "the bucket: {answer}");
        Some(Self { port, name })
    }

    /// The URL of the server.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Writes an object without anything of Chorus, with a header line such as `If-None-Match: *`. Returns the status line.
    #[must_use]
    pub fn put(&self, key: &str, header: &str, body: &[u8]) -> String {
        let head = format!("PUT /{}/{key} HTTP/1.0\r\n{header}\r\n", self.name);
        send(self.port, &head, body).lines().next().unwrap_or_default().to_owned()
    }
}

/// Sends a request whose head has no blank line yet. Returns the answer.
fn send(port: u16, head: &str, body: &[u8]) -> String {
    let credential = "Credential=key/20270115/us-east-1/s3/aws4_request";
    let rest = format!(
        "Host: 127.0.0.1:{port}\r\nContent-Length: {}\r\n\
         Authorization: AWS4-HMAC-SHA256 {credential}, SignedHeaders=host, Signature=0\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.write_all(&[head.as_bytes(), rest.as_bytes(), body].concat()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}
