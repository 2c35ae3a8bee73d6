//! A TCP proxy in front of the server, which puts faults into the connections of one node.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::wait::pause;

/// Forwards everything.
const OPEN: u8 = 0;
/// Forwards nothing, and closes nothing: a cut cable.
const SILENT: u8 = 1;
/// Closes each new connection.
const REFUSING: u8 = 2;
/// Reads nothing more.
const STALLED: u8 = 3;
/// Forwards requests only, and closes nothing.
const SILENT_ANSWERS: u8 = 4;
/// Forwards answers only, and closes nothing.
const SILENT_REQUESTS: u8 = 5;

/// A proxy on a port of its own.
#[derive(Debug)]
pub struct FaultProxy {
    port: u16,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    mode: AtomicU8,
    /// Bytes of answers, and of requests, until all connections are cut; negative: never.
    answer_bytes: AtomicI64,
    request_bytes: AtomicI64,
    /// Milliseconds by which everything is delayed.
    delay: AtomicU64,
    /// Changes when all connections are to end.
    cuts: watch::Sender<u64>,
}

impl FaultProxy {
    /// Starts a proxy in front of the port.
    pub async fn start(server_port: u16) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(State {
            mode: AtomicU8::new(OPEN),
            answer_bytes: AtomicI64::new(-1),
            request_bytes: AtomicI64::new(-1),
            delay: AtomicU64::new(0),
            cuts: watch::Sender::new(0),
        });
        let shared = state.clone();
        chorus_runtime::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if shared.mode.load(Ordering::SeqCst) == REFUSING {
                    continue;
                }
                if let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)).await {
                    let (from_client, to_client) = client.into_split();
                    let (from_server, to_server) = server.into_split();
                    chorus_runtime::spawn(forward(shared.clone(), from_client, to_server, false));
                    chorus_runtime::spawn(forward(shared.clone(), from_server, to_client, true));
                }
            }
        });
        Ok(Self { port, state })
    }

    /// The port on 127.0.0.1 that it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts all connections now. New ones are accepted.
    pub fn cut(&self) {
        self.state.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Cuts all connections once `bytes` more of answers were forwarded.
    pub fn cut_after_answer_bytes(&self, bytes: i64) {
        self.state.answer_bytes.store(bytes, Ordering::SeqCst);
    }

    /// Cuts all connections once `bytes` more of requests were forwarded.
    pub fn cut_after_request_bytes(&self, bytes: i64) {
        self.state.request_bytes.store(bytes, Ordering::SeqCst);
    }

    /// Forwards everything so much later from now on.
    pub fn delay(&self, time: Duration) {
        self.state.delay.store(u64::try_from(time.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// Forwards nothing from now on, and says nothing about it.
    pub fn fall_silent(&self) {
        self.state.mode.store(SILENT, Ordering::SeqCst);
    }

    /// Forwards no answers from now on, and says nothing about it.
    pub fn lose_answers(&self) {
        self.state.mode.store(SILENT_ANSWERS, Ordering::SeqCst);
    }

    /// Forwards no requests from now on, and says nothing about it.
    pub fn lose_requests(&self) {
        self.state.mode.store(SILENT_REQUESTS, Ordering::SeqCst);
    }

    /// Reads nothing from now on, so that those who send have to wait.
    pub fn stall(&self) {
        self.state.mode.store(STALLED, Ordering::SeqCst);
    }

    /// Accepts no new connections. Those that exist stay.
    pub fn refuse_new(&self) {
        self.state.mode.store(REFUSING, Ordering::SeqCst);
    }

    /// Cuts all connections and accepts no new ones.
    pub fn refuse(&self) {
        self.state.mode.store(REFUSING, Ordering::SeqCst);
        self.cut();
    }

    /// Cuts what is left from the time of faults, and forwards everything from now on.
    pub fn heal(&self) {
        self.state.answer_bytes.store(-1, Ordering::SeqCst);
        self.state.request_bytes.store(-1, Ordering::SeqCst);
        self.state.delay.store(0, Ordering::SeqCst);
        self.cut();
        self.state.mode.store(OPEN, Ordering::SeqCst);
    }
}

impl State {
    /// Counts bytes of one direction. `Some` if the connections are to be cut: the number of these to forward before.
    fn cut_at(&self, bytes: usize, answers: bool) -> Option<usize> {
        let left = if answers { &self.answer_bytes } else { &self.request_bytes };
        if left.load(Ordering::SeqCst) < 0 {
            return None;
        }
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let before = left.fetch_sub(bytes, Ordering::SeqCst);
        if before >= bytes {
            return None;
        }
        left.store(-1, Ordering::SeqCst);
        Some(usize::try_from(before).unwrap_or_default())
    }
}

async fn forward(state: Arc<State>, mut from: OwnedReadHalf, mut to: OwnedWriteHalf, answers: bool) {
    let mut cuts = state.cuts.subscribe();
    let mut buffer = vec![0; 16 * 1024];
    loop {
        if state.mode.load(Ordering::SeqCst) == STALLED {
            let _ = cuts.changed().await;
            return;
        }
        let read = tokio::select! {
            _ = cuts.changed() => return,
            read = from.read(&mut buffer) => read,
        };
        let Ok(count @ 1..) = read else { return };
        let cut = state.cut_at(count, answers);
        let lost = if answers { SILENT_ANSWERS } else { SILENT_REQUESTS };
        if [SILENT, lost].contains(&state.mode.load(Ordering::SeqCst)) {
            continue;
        }
        let delay = state.delay.load(Ordering::SeqCst);
        if delay > 0 {
            pause(Duration::from_millis(delay)).await;
        }
        let Some(bytes) = buffer.get(..cut.unwrap_or(count)) else { return };
        let written = tokio::select! {
            _ = cuts.changed() => return,
            written = to.write_all(bytes) => written,
        };
        if cut.is_some() {
            state.cuts.send_modify(|cuts| *cuts += 1);
        }
        if cut.is_some() || written.is_err() {
            return;
        }
    }
}
