//! The least work of a program that relays a stream: read what is available and write it, in one thread.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Requests a response from the server at `url` and relays it to another thread. Returns the processor time that took.
pub fn relay_response(url: &str) -> Duration {
    let (mut out, mut listener) = UnixStream::pair().expect("a socket");
    let heard = std::thread::spawn(move || while listener.read(&mut [0; 4096]).expect("a piece") > 0 {});
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).expect("the server");
    let body = r#"{"model":"m"}"#;
    write!(stream, "POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len()).expect("a request");
    let mut incoming = BufReader::new(stream);
    let before = thread_cpu_time();
    loop {
        let piece = incoming.fill_buf().expect("a piece");
        let (all, ended) = (piece.len(), piece.is_empty() || piece.ends_with(b"0\r\n\r\n"));
        out.write_all(piece).expect("taken");
        incoming.consume(all);
        if ended {
            break;
        }
    }
    let took = thread_cpu_time() - before;
    drop(out);
    heard.join().expect("the listener");
    took
}

/// Returns the processor time of this thread.
fn thread_cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}
