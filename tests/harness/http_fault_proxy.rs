//! An HTTP proxy in front of a server, which puts faults into single requests. Each connection has one request.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use chorus_base::sync::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The fate of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpFault {
    /// It does not reach the server, and is answered with this status.
    Status(u16),
    /// As [`HttpFault::Status`] with 503, and `Retry-After` of so many seconds.
    SlowDown(u64),
    /// It reaches the server, and the connection ends without an answer.
    LoseAnswer,
    /// It reaches the server, and half of the body of the answer comes through.
    HalfBody,
    /// It reaches the server, and a bit in the middle of the body of the answer is changed.
    WrongContent,
    /// It does not reach the server, and the connection stays open without an answer.
    Silence,
}

/// A request that came, with the bytes in the body of its answer.
#[derive(Debug, Clone)]
pub struct SeenRequest {
    pub method: String,
    pub target: String,
    pub answer_bytes: usize,
}

#[derive(Debug, Default)]
struct State {
    faults: VecDeque<(&'static str, HttpFault)>,
    seen: Vec<SeenRequest>,
    /// The last answers to lists, by what was asked for.
    lists: HashMap<String, Vec<u8>>,
    lists_are_stale: bool,
    dates_are_late: bool,
    conditions_are_ignored: bool,
}

/// A proxy on a separate port.
#[derive(Debug, Clone)]
pub struct HttpFaultProxy {
    port: u16,
    state: Arc<Mutex<State>>,
}

impl HttpFaultProxy {
    /// Starts a proxy in front of the port.
    pub async fn start(server_port: u16) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let proxy = Self { port: listener.local_addr()?.port(), state: Arc::default() };
        let shared = proxy.clone();
        chorus_runtime::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let proxy = shared.clone();
                chorus_runtime::spawn(async move { drop(proxy.serve(client, server_port).await) });
            }
        });
        Ok(proxy)
    }

    /// The URL of the proxy.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Puts faults into the next requests with this method, one each.
    pub fn fail(&self, method: &'static str, faults: &[HttpFault]) {
        self.state.lock().faults.extend(faults.iter().map(|fault| (method, *fault)));
    }

    /// Answers each list with what the last one said, from now on.
    pub fn freeze_lists(&self) {
        self.state.lock().lists_are_stale = true;
    }

    /// Says from now on that an object that is looked up alone was written in the year 2100, as if all others were old.
    pub fn postpone_dates(&self) {
        self.state.lock().dates_are_late = true;
    }

    /// Hides `If-None-Match` from the server from now on, as if it did not know it.
    pub fn ignore_conditions(&self) {
        self.state.lock().conditions_are_ignored = true;
    }

    /// Takes the requests so far.
    #[must_use]
    pub fn take_seen(&self) -> Vec<SeenRequest> {
        std::mem::take(&mut self.state.lock().seen)
    }

    /// The faults that have not happened yet.
    #[must_use]
    pub fn pending_faults(&self) -> usize {
        self.state.lock().faults.len()
    }

    /// Forgets the faults that have not happened yet.
    pub fn heal(&self) {
        self.state.lock().faults.clear();
    }

    fn take_fault(&self, method: &str) -> Option<HttpFault> {
        let faults = &mut self.state.lock().faults;
        let at = faults.iter().position(|(of, _)| *of == method)?;
        faults.remove(at).map(|(_, fault)| fault)
    }

    async fn serve(&self, mut client: TcpStream, server_port: u16) -> std::io::Result<()> {
        let mut request = read_request(&mut client).await?;
        if self.state.lock().conditions_are_ignored {
            let condition = find(&request.to_ascii_lowercase(), b"\r\nif-none-match:");
            if let Some(name) = request.get_mut(condition + 2..condition + 15) {
                name.copy_from_slice(b"X-Hidden-Line");
            }
        }
        let line = String::from_utf8_lossy(&request[..find(&request, b"\r\n")]).into_owned();
        let mut words = line.split(' ').map(str::to_owned);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let fault = self.take_fault(&method);
        let own = match fault {
            Some(HttpFault::Status(status)) => Some(format!("HTTP/1.1 {status} Fault\r\nContent-Length: 0\r\n")),
            Some(HttpFault::SlowDown(seconds)) => {
                Some(format!("HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nRetry-After: {seconds}\r\n"))
            }
            _ => None,
        };
        if let Some(own) = own {
            self.record(method, target, 0);
            return client.write_all(format!("{own}Connection: close\r\n\r\n").as_bytes()).await;
        }
        if fault == Some(HttpFault::Silence) {
            self.record(method, target, 0);
            // Ends when the client has given up.
            return client.read(&mut [0; 1]).await.map(drop);
        }
        let mut answer = self.forward(&request, &target, server_port).await?;
        let body = (find(&answer, b"\r\n\r\n") + 4).min(answer.len());
        if method == "HEAD" && self.state.lock().dates_are_late {
            answer = replace_date(&answer);
        }
        match fault {
            Some(HttpFault::LoseAnswer) => answer.clear(),
            Some(HttpFault::HalfBody) => answer.truncate(body + (answer.len() - body) / 2),
            Some(HttpFault::WrongContent) if answer.len() > body => {
                let middle = body + (answer.len() - body) / 2;
                answer[middle] ^= 1;
            }
            _ => {}
        }
        self.record(method, target, answer.len().saturating_sub(body));
        client.write_all(&answer).await?;
        client.shutdown().await
    }

    fn record(&self, method: String, target: String, answer_bytes: usize) {
        self.state.lock().seen.push(SeenRequest { method, target, answer_bytes });
    }

    /// Returns the answer of the server, or a stale one.
    async fn forward(&self, request: &[u8], target: &str, port: u16) -> std::io::Result<Vec<u8>> {
        let is_list = target.contains("list-type=2");
        if is_list && self.state.lock().lists_are_stale {
            let stale = self.state.lock().lists.get(target).cloned();
            if let Some(stale) = stale {
                return Ok(stale);
            }
        }
        let mut server = TcpStream::connect(("127.0.0.1", port)).await?;
        let line = find(request, b"\r\n") + 2;
        server.write_all(&request[..line]).await?;
        server.write_all(b"Connection: close\r\n").await?;
        server.write_all(&request[line..]).await?;
        let mut answer = Vec::new();
        server.read_to_end(&mut answer).await?;
        if is_list {
            self.state.lock().lists.insert(target.to_owned(), answer.clone());
        }
        Ok(answer)
    }
}

/// Returns where `what` begins, or the end.
fn find(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).position(|window| window == what).unwrap_or(bytes.len())
}

fn replace_date(answer: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(answer).into_owned();
    let lines = text.split("\r\n").map(|line| {
        let is_date = line.to_ascii_lowercase().starts_with("last-modified:");
        if is_date { "Last-Modified: Fri, 01 Jan 2100 00:00:00 GMT" } else { line }
    });
    lines.collect::<Vec<_>>().join("\r\n").into_bytes()
}

/// Reads a request with a body of a known length.
async fn read_request(client: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let (mut request, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    let mut wanted = None;
    while wanted.is_none_or(|wanted| request.len() < wanted) {
        let count = client.read(&mut buffer).await?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        request.extend_from_slice(&buffer[..count]);
        if wanted.is_none() {
            let head = find(&request, b"\r\n\r\n");
            if head < request.len() {
                let text = String::from_utf8_lossy(&request[..head]).to_ascii_lowercase();
                let said = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
                wanted = Some(head + 4 + said.unwrap_or(0_usize));
            }
        }
    }
    Ok(request)
}

/// How long a client of these tests waits for an answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_millis(700);
