//! Gateway sessions, and the connection that each has at a time.

use std::collections::VecDeque;
use std::time::Instant;

use serde_json::{Value, json};

use crate::discord::state::State;

pub const GUILDS: u64 = 1;
pub const GUILD_MESSAGES: u64 = 1 << 9;
pub const DIRECT_MESSAGES: u64 = 1 << 12;
pub const MESSAGE_CONTENT: u64 = 1 << 15;

/// The events since IDENTIFY. Its connection may end, and another one resume it.
#[derive(Debug)]
pub struct Session {
    pub seq: u64,
    pub intents: u64,
    /// The shard and the number of shards.
    pub shard: (u64, u64),
    /// Every dispatched event with its sequence number, as text.
    pub log: Vec<(u64, String)>,
    /// The connection that it has.
    pub connection: Option<u64>,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnd {
    Close(u16, &'static str),
    /// Without a close frame.
    Reset,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    pub session: Option<String>,
    /// The sequence number of the last event that was sent.
    pub sent: u64,
    /// READY or RESUMED was sent.
    pub is_ready_sent: bool,
    /// Frames that are not events.
    pub frames: VecDeque<Value>,
    pub end: Option<ConnectionEnd>,
    /// It sends nothing any more.
    pub is_silent: bool,
    /// When frames were received, within the last minute.
    pub received_at: VecDeque<Instant>,
    pub last_heartbeat: Instant,
}

impl Connection {
    pub fn new() -> Self {
        Self {
            session: None,
            sent: 0,
            is_ready_sent: false,
            frames: VecDeque::new(),
            end: None,
            is_silent: false,
            received_at: VecDeque::new(),
            last_heartbeat: Instant::now(),
        }
    }

    pub fn send_op(&mut self, op: u64, data: Value) {
        self.frames.push_back(json!({"op": op, "d": data, "s": null, "t": null}));
    }

    pub fn close(&mut self, code: u16, why: &'static str) {
        self.end.get_or_insert(ConnectionEnd::Close(code, why));
    }
}

impl State {
    /// Returns the texts that are to be sent on a connection now, and whether it ends.
    pub fn take_outgoing(&mut self, id: u64) -> (Vec<String>, Option<ConnectionEnd>) {
        let Some(connection) = self.connections.get_mut(&id) else { return (Vec::new(), Some(ConnectionEnd::Reset)) };
        if connection.is_silent {
            return (Vec::new(), connection.end);
        }
        let mut texts: Vec<String> = connection.frames.drain(..).map(|frame| frame.to_string()).collect();
        let session = connection.session.as_ref().and_then(|session| self.sessions.get(session));
        if let Some(session) = session {
            let begin = session.log.partition_point(|(seq, _)| *seq <= connection.sent);
            texts.extend(session.log[begin..].iter().map(|(_, text)| text.clone()));
            (connection.sent, connection.is_ready_sent) = (session.seq, true);
        }
        (texts, connection.end)
    }

    /// Removes a connection that ended; `kept`: its session can be resumed.
    pub fn remove_connection(&mut self, id: u64, kept: bool) {
        let Some(session) = self.connections.remove(&id).and_then(|connection| connection.session) else { return };
        if !kept {
            self.sessions.remove(&session);
        } else if let Some(session) = self.sessions.get_mut(&session).filter(|session| session.connection == Some(id)) {
            session.connection = None;
        }
    }

    /// Returns whether the application is connected, that is, READY or RESUMED was sent.
    pub fn is_connected(&self) -> bool {
        let mut held = self.sessions.values().filter_map(|session| self.connections.get(&session.connection?));
        held.any(|connection| connection.is_ready_sent)
    }
}
