//! A small application of its own: every frame and every request as the test says.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use chorus_tests::DEADLINE;
use chorus_tests::discord::{FakeDiscord, TOKEN};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use serenity::model::event::GatewayEvent;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tokio_websockets::{ClientBuilder, MaybeTlsStream, Message, WebSocketStream};

/// Guilds, guild messages, message content.
pub const INTENTS: u64 = 1 | 1 << 9 | 1 << 15;

/// A connection to the gateway, and requests beside it.
pub struct Client {
    runtime: Runtime,
    socket: WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>,
    url: String,
    pub seq: u64,
    pub session: String,
}

impl Client {
    /// Connected, and HELLO is there.
    pub fn hello(discord: &FakeDiscord) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let url = format!("{}/?v=10&encoding=json", discord.gateway_url());
        let builder = ClientBuilder::new().uri(&url).expect("its address");
        let (socket, _) = runtime.block_on(builder.connect()).expect("a connection");
        let mut client = Self { runtime, socket, url: discord.url(), seq: 0, session: String::new() };
        assert_eq!(client.next().expect("HELLO")["op"], 10);
        client
    }

    /// The same, and READY is there.
    pub fn identified(discord: &FakeDiscord) -> Self {
        let mut client = Self::hello(discord);
        client.identify(TOKEN, INTENTS);
        let ready = client.until("READY");
        client.session = ready["session_id"].as_str().expect("a session").to_owned();
        client
    }

    pub fn identify(&mut self, token: &str, intents: u64) {
        let properties = json!({"os": "linux", "browser": "test", "device": "test"});
        self.send(&json!({"op": 2, "d": {"token": token, "intents": intents, "properties": properties}}));
    }

    pub fn resume(&mut self, session: &str, seq: u64) {
        self.send(&json!({"op": 6, "d": {"token": TOKEN, "session_id": session, "seq": seq}}));
    }

    pub fn send(&mut self, frame: &Value) {
        let message = Message::text(frame.to_string());
        // It may be closed already, which what comes next shows.
        _ = self.runtime.block_on(self.socket.send(message));
    }

    /// The next frame; the code that it was closed with instead, or 0 where it broke.
    pub fn next(&mut self) -> Result<Value, u16> {
        let next =
            self.runtime.block_on(async { timeout(DEADLINE, self.socket.next()).await.expect("a frame in time") });
        let Some(Ok(message)) = next else { return Err(0) };
        if let Some((code, _)) = message.as_close() {
            return Err(code.into());
        }
        let text = message.as_text().expect("a text");
        // What serenity cannot read, the daemon could not.
        let read = serde_json::from_str::<GatewayEvent>(text).unwrap_or_else(|e| panic!("{e}: {text}"));
        let unknown = format!("{read:?}").contains("UnknownEvent");
        assert!(!unknown, "no event that serenity knows: {text}");
        let frame: Value = serde_json::from_str(text).expect("JSON");
        if let Some(seq) = frame["s"].as_u64() {
            assert_eq!(seq, self.seq + 1, "numbers without a gap");
            self.seq = seq;
        }
        Ok(frame)
    }

    /// The data of the next dispatch of this kind.
    pub fn until(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.next().unwrap_or_else(|code| panic!("closed with {code} before {kind}"));
            if frame["t"] == kind {
                return frame["d"].clone();
            }
        }
    }

    /// The next frame with this operation.
    pub fn op(&mut self, op: u64) -> Value {
        loop {
            let frame = self.next().unwrap_or_else(|code| panic!("closed with {code} before op {op}"));
            if frame["op"] == op {
                return frame;
            }
        }
    }

    /// The code that it is closed with.
    pub fn closed(&mut self) -> u16 {
        loop {
            if let Err(code) = self.next() {
                return code;
            }
        }
    }

    /// A request with the token; its status and body.
    pub fn rest(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.request(method, path, &[("authorization", &format!("Bot {TOKEN}"))], "application/json", body.as_bytes())
            .expect("an answer")
    }

    /// A request; `None` where the connection broke.
    pub fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        kind: &str,
        body: &[u8],
    ) -> Option<(u16, Value)> {
        let mut stream = TcpStream::connect(self.url.trim_start_matches("http://")).expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("a time-out");
        let mut head = format!("{method} /api/v10{path} HTTP/1.1\r\nhost: discord\r\nconnection: close\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!(
            "user-agent: DiscordBot (test, 1)\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat()).expect("a request");
        let mut answer = Vec::new();
        _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some((status, serde_json::from_str(body).unwrap_or(Value::String(body.to_owned()))))
    }

    /// A good message, with these fields beside or instead.
    pub fn body(fields: Value) -> Value {
        let mut body = json!({
            "content": "hello", "nonce": "n", "enforce_nonce": true, "allowed_mentions": {"parse": []},
        });
        for (name, value) in fields.as_object().expect("fields") {
            body[name] = value.clone();
        }
        body
    }
}
