//! Connects to the gateway through a proxy. The gateway library supports none, so it connects to a listener on
//! loopback, and the tunnel connects as the REST client does: through the proxy, with the name of Discord's server
//! verified.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::sync::Mutex;
use reqwest::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, redirect};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use uuid::Uuid;

use super::connection::root_cause;
use crate::url_checks;

/// Time for the responses of proxy and gateway. Less than the library waits.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Size of a request to open a WebSocket.
const MAX_REQUEST_BYTES: usize = 16 << 10;

/// A listener that forwards to the gateway. Dropping it ends the connection.
#[derive(Debug)]
pub(super) struct Tunnel {
    /// The URL that the library connects to.
    pub url: String,
    last_error: Arc<Mutex<Option<String>>>,
    task: AbortHandle,
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns whether the environment names a proxy for `url`; `NO_PROXY` is checked when the connection is opened.
pub(super) fn is_proxy_set(url: &str, env: impl Fn(&str) -> bool) -> bool {
    let own = if url.starts_with("ws:") { ["HTTP_PROXY", "http_proxy"] } else { ["HTTPS_PROXY", "https_proxy"] };
    !url_checks::is_loopback(url) && own.iter().chain(&["ALL_PROXY", "all_proxy"]).any(|name| env(name))
}

/// Like [`is_proxy_set`], for the daemon's own environment.
pub(super) fn is_proxy_set_in_env(url: &str) -> bool {
    is_proxy_set(url, |name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

impl Tunnel {
    /// Listens on loopback and forwards to the gateway at `url`.
    pub(super) async fn open(url: &str) -> Result<Self, String> {
        let client = Client::builder()
            .tls_backend_preconfigured(chorus_tls::client_config())
            .http1_only()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT);
        let client = client.build().map_err(|e| e.to_string())?;
        let target = url.replacen("ws", "http", 1);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(|e| e.to_string())?;
        let port = listener.local_addr().map_err(|e| e.to_string())?.port();
        // Other programs on this machine do not know the path.
        let secret = format!("/{}", Uuid::new_v4().simple());
        let why = Arc::<Mutex<Option<String>>>::default();
        let tunnel = (client, target, secret.clone(), why.clone());
        let task = chorus_runtime::spawn(async move { accept_connections(&listener, tunnel).await }).abort_handle();
        Ok(Self { url: format!("ws://127.0.0.1:{port}{secret}"), last_error: why, task })
    }

    /// Why the last connection could not be opened.
    pub(super) fn last_error(&self) -> Option<String> {
        self.last_error.lock().clone()
    }
}

/// The client, the URL that it forwards to, the path that is expected, and the last error.
type TunnelTarget = (Client, String, String, Arc<Mutex<Option<String>>>);

async fn accept_connections(listener: &TcpListener, way: TunnelTarget) {
    let mut serving = JoinSet::new();
    // Each in a task of its own, so that a client that sends nothing blocks no other.
    while let Ok((mut stream, _)) = listener.accept().await {
        while serving.try_join_next().is_some() {}
        let (client, target, secret, why) = way.clone();
        serving.spawn(async move {
            // Stored before the stream ends.
            if let Err(problem) = forward(&mut stream, &client, (&target, &secret)).await {
                *why.lock() = Some(problem);
            }
        });
    }
}

/// Forwards one WebSocket, from its request to its end.
async fn forward(near: &mut TcpStream, client: &Client, (target, secret): (&str, &str)) -> Result<(), String> {
    let request =
        timeout(CONNECT_TIMEOUT, read_request(near)).await.map_err(|_| "no request was received".to_owned())?;
    let request = request.map_err(|e| e.to_string())?;
    let (path, headers) = parse_request(&request).ok_or("not a WebSocket request")?;
    let path = path.strip_prefix(secret).ok_or("unauthorized request")?;
    let answer = timeout(CONNECT_TIMEOUT, client.get(format!("{target}{path}")).headers(headers).send()).await;
    let answer = answer.map_err(|_| "the proxy does not respond".to_owned())?;
    let answer = answer.map_err(|e| root_cause(&e.without_url()))?;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(format!("the gateway or the proxy returned {}", answer.status()));
    }
    near.write_all(&switching_response(&answer)).await.map_err(|e| e.to_string())?;
    let mut far = answer.upgrade().await.map_err(|e| e.to_string())?;
    copy_bidirectional(near, &mut far).await.map(drop).map_err(|e| e.to_string())
}

/// Reads a request up to the empty line.
async fn read_request(near: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(1024);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == MAX_REQUEST_BYTES {
            return Err(io::Error::other("the request is too long"));
        }
        head.push(near.read_u8().await?);
    }
    Ok(head)
}

/// Parses the path and headers of a request, except for `Host`.
fn parse_request(request: &[u8]) -> Option<(&str, HeaderMap)> {
    let mut lines = std::str::from_utf8(request).ok()?.split("\r\n");
    let path = lines.next()?.strip_prefix("GET ")?.strip_suffix(" HTTP/1.1")?;
    let mut headers = HeaderMap::new();
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':')?;
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        if name != HOST {
            headers.append(name, HeaderValue::from_str(value.trim()).ok()?);
        }
    }
    Some((path, headers))
}

/// Returns the response of the gateway as bytes.
fn switching_response(answer: &Response) -> Vec<u8> {
    let mut head = b"HTTP/1.1 101 Switching Protocols\r\n".to_vec();
    for (name, value) in answer.headers() {
        head.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    head.extend(b"\r\n");
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_used_where_one_is_named_for_the_address() {
        let wanted = |url: &str, named: &'static str| is_proxy_set(url, |name| name == named);
        let discord = "wss://gateway.discord.gg";
        assert!(wanted(discord, "HTTPS_PROXY") && wanted(discord, "https_proxy") && wanted(discord, "ALL_PROXY"));
        assert!(!wanted(discord, "HTTP_PROXY") && !wanted(discord, "NO_PROXY"));
        assert!(wanted("ws://gateway.test", "HTTP_PROXY") && !wanted("ws://gateway.test", "HTTPS_PROXY"));
        assert!(!wanted("ws://127.0.0.1:1", "HTTP_PROXY") && !wanted("wss://localhost", "HTTPS_PROXY"));
    }

    #[test]
    fn a_request_is_taken_apart_and_the_name_of_the_server_left_out() {
        let request = b"GET /secret/?v=10 HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nA: b:c\r\n\r\n";
        let (path, headers) = parse_request(request).unwrap();
        assert_eq!(path, "/secret/?v=10");
        assert_eq!(
            (headers.len(), &headers["upgrade"], &headers["a"]),
            (2, &"websocket".parse().unwrap(), &"b:c".parse().unwrap())
        );
        assert!(parse_request(b"POST / HTTP/1.1\r\n\r\n").is_none());
    }
}
