//! A session of the gateway, and the connection that it has at a time.

use std::collections::VecDeque;
use std::time::Instant;

use serde_json::{Value, json};

use crate::discord::state::State;

pub const GUILDS: u64 = 1;
pub const GUILD_MESSAGES: u64 = 1 << 9;
pub const DIRECT_MESSAGES: u64 = 1 << 12;
pub const MESSAGE_CONTENT: u64 = 1 << 15;

/// What was told since IDENTIFY; a connection may go, and another takes it up.
#[derive(Debug)]
pub struct Session {
    pub seq: u64,
    pub intents: u64,
    /// Every dispatch with its number, as text.
    pub log: Vec<(u64, String)>,
    /// The connection that has it.
    pub connection: Option<u64>,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Close(u16, &'static str),
    /// Without a word.
    Reset,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    pub session: Option<String>,
    /// The last dispatch that was sent.
    pub sent: u64,
    /// The session that it has was told of: READY or RESUMED is on its way.
    pub told: bool,
    /// Frames that are no dispatches.
    pub frames: VecDeque<Value>,
    pub end: Option<End>,
    /// Says nothing any more.
    pub silent: bool,
    /// When frames came, within the last minute.
    pub heard: VecDeque<Instant>,
    pub beat_at: Instant,
}

impl Connection {
    pub fn new() -> Self {
        Self {
            session: None,
            sent: 0,
            told: false,
            frames: VecDeque::new(),
            end: None,
            silent: false,
            heard: VecDeque::new(),
            beat_at: Instant::now(),
        }
    }

    pub fn tell(&mut self, op: u64, data: Value) {
        self.frames.push_back(json!({"op": op, "d": data, "s": null, "t": null}));
    }

    pub fn close(&mut self, code: u16, why: &'static str) {
        self.end.get_or_insert(End::Close(code, why));
    }
}

impl State {
    /// Texts that a connection is to be sent now, and whether it ends.
    pub fn due(&mut self, id: u64) -> (Vec<String>, Option<End>) {
        let Some(connection) = self.connections.get_mut(&id) else { return (Vec::new(), Some(End::Reset)) };
        if connection.silent {
            return (Vec::new(), connection.end);
        }
        let mut texts: Vec<String> = connection.frames.drain(..).map(|frame| frame.to_string()).collect();
        let session = connection.session.as_ref().and_then(|session| self.sessions.get(session));
        if let Some(session) = session {
            let begin = session.log.partition_point(|(seq, _)| *seq <= connection.sent);
            texts.extend(session.log[begin..].iter().map(|(_, text)| text.clone()));
            (connection.sent, connection.told) = (session.seq, true);
        }
        (texts, connection.end)
    }

    /// A connection is over; `kept`: its session may be taken up again.
    pub fn disconnected(&mut self, id: u64, kept: bool) {
        let Some(session) = self.connections.remove(&id).and_then(|connection| connection.session) else { return };
        if !kept {
            self.sessions.remove(&session);
        } else if let Some(session) = self.sessions.get_mut(&session).filter(|session| session.connection == Some(id)) {
            session.connection = None;
        }
    }

    /// The application listens now. What it is sent from here on comes after READY or RESUMED.
    pub fn is_connected(&self) -> bool {
        let mut held = self.sessions.values().filter_map(|session| self.connections.get(&session.connection?));
        held.any(|connection| connection.told)
    }
}
