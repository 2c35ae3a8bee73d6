//! One client: reads frames, runs what they ask, writes the answers. A client that stalls harms only itself.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use chorus_proto::codec::FrameCodec;
use chorus_proto::error::CODE_INVALID_REQUEST;
use chorus_proto::event::Lagged;
use chorus_proto::{ErrorData, ErrorKind, RpcError};
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use interprocess::local_socket::tokio::Stream;
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::codec::Decoder as _;
use tokio_util::sync::CancellationToken;

use super::dispatch::{Caller, dispatch};
use super::line::{Line, watch};
use super::reply::{self, Frame};
use super::room::Room;
use super::unfinished::{Given, Unfinished, busy};
use crate::ops::Ops;
use crate::ops::events::subscribe::{Heard, Subscription};

/// Requests of one connection that run at once; further ones wait in the socket.
const MAX_RUNNING: usize = 64;

/// The most that is read at once.
const READ: usize = 64 << 10;

/// Serves one client until it closes, breaks the framing, or `stop` is set. `room`: what all connections share.
pub async fn serve(stream: Stream, ops: Arc<Ops>, connection: u64, room: Room, stop: CancellationToken) {
    let socket = match socket(stream) {
        Ok(socket) => socket,
        Err(e) => return tracing::warn!(connection, "a connection cannot be served: {e}"),
    };
    let line = Arc::new(Line::new(socket.get_ref().clone()));
    let (notify, notifications) = mpsc::channel(16);
    let (subscribe, subscriptions) = mpsc::channel(4);
    let caller = Caller { connection, line: line.clone(), notify, subscribe };
    let mut connection = Connection {
        codec: FrameCodec::new(ops.config.max_frame),
        unfinished: Unfinished::new(room, ops.config.frame_timeout),
        incoming: BytesMut::new(),
        running: FuturesUnordered::new(),
        notifications,
        subscriptions,
        subscription: None,
        line,
        ops: ops.clone(),
        caller,
    };
    if let Err(e) = connection.run(&socket, stop).await {
        tracing::debug!(connection = connection.caller.connection, "connection ended: {e}");
    }
}

struct Connection {
    codec: FrameCodec,
    incoming: BytesMut,
    /// Dropped after what was received, whose room it holds.
    unfinished: Unfinished,
    running: FuturesUnordered<BoxFuture<'static, Option<Frame>>>,
    notifications: mpsc::Receiver<Frame>,
    subscriptions: mpsc::Receiver<Box<Subscription>>,
    subscription: Option<Subscription>,
    line: Arc<Line>,
    ops: Arc<Ops>,
    caller: Caller,
}

/// The event that a connection waited for.
enum Next {
    Answer(Option<Frame>),
    Stuck,
    Notify(Frame),
    Subscribe(Box<Subscription>),
    Heard(Option<Heard>),
    Room(Given),
    Evicted,
    Read(io::Result<usize>),
    Stop,
}

/// Also where a handler panics: the client hears the end.
impl Drop for Connection {
    fn drop(&mut self) {
        self.line.close();
        self.ops.transcripts.close(self.caller.connection);
        self.ops.agents_in.close(self.caller.connection);
        self.ops.agents_out.close(self.caller.connection);
        self.ops.backups.close(self.caller.connection);
    }
}

impl Connection {
    async fn run(&mut self, socket: &AsyncFd<Arc<OwnedFd>>, stop: CancellationToken) -> io::Result<()> {
        let mut open = true;
        loop {
            while open && self.running.len() < MAX_RUNNING {
                match self.codec.decode(&mut self.incoming) {
                    Ok(Some(body)) => {
                        self.unfinished.end();
                        let mut request = dispatch(self.ops.clone(), self.caller.clone(), body).boxed();
                        // What is answered at once is written at once.
                        match request.as_mut().now_or_never() {
                            Some(Some(frame)) => self.line.write(frame).await?,
                            Some(None) => {}
                            None => self.running.push(request),
                        }
                    }
                    Ok(None) => break,
                    Err(e) => {
                        self.line.write(reply::error(None, &too_long(&e))).await?;
                        // The bytes after it are no frames.
                        open = self.stop_reading();
                    }
                }
            }
            if !open && self.running.is_empty() {
                return Ok(());
            }
            let partial = !self.incoming.is_empty();
            // One that cannot be read yet must not hold room meanwhile.
            if open && self.running.len() < MAX_RUNNING {
                self.unfinished.announced(&self.incoming, self.ops.config.max_frame);
                self.unfinished.reserve(&mut self.incoming);
            }
            let waits = self.unfinished.waits();
            let may_read = open && !waits && self.running.len() < MAX_RUNNING;
            let limit = partial.then_some(self.unfinished.left());
            let (began, evicted) = (Instant::now(), self.unfinished.evicted());
            let next = tokio::select! {
                biased;
                Some(answer) = self.running.next() => Next::Answer(answer),
                () = self.line.stuck() => Next::Stuck,
                Some(frame) = self.notifications.recv() => Next::Notify(frame),
                Some(subscription) = self.subscriptions.recv() => Next::Subscribe(subscription),
                heard = hear(&mut self.subscription, &self.ops), if open => Next::Heard(heard),
                given = self.unfinished.room(), if open && waits => Next::Room(given),
                () = evicted, if open => Next::Evicted,
                read = read(socket, &mut self.incoming, limit), if may_read => Next::Read(read),
                () = stop.cancelled(), if open => Next::Stop,
            };
            // Only the time in which the client could have sent something counts.
            if partial && may_read {
                self.unfinished.waited(began.elapsed());
            }
            match next {
                Next::Answer(Some(frame)) | Next::Notify(frame) => {
                    self.unfinished.while_written(self.line.write(frame)).await?
                }
                Next::Answer(None) => {}
                Next::Stuck => self.unfinished.while_written(self.line.flush()).await?,
                Next::Subscribe(subscription) => self.subscription = Some(*subscription),
                Next::Heard(Some(heard)) => self.unfinished.while_written(self.line.write(heard_frame(&heard))).await?,
                Next::Heard(None) => self.subscription = None,
                Next::Room(given) => {
                    if let Err(busy) = self.unfinished.take(given) {
                        open = self.stop_reading();
                        self.line.write(reply::error(None, &busy)).await?;
                    }
                }
                Next::Evicted => {
                    open = self.stop_reading();
                    let busy = busy("a long frame came too slowly while others waited to send theirs");
                    self.line.write(reply::error(None, &busy)).await?;
                }
                Next::Read(read) => match read? {
                    0 if partial => return Err(io::ErrorKind::UnexpectedEof.into()),
                    0 => open = self.stop_reading(),
                    bytes => self.unfinished.came(bytes),
                },
                Next::Stop => open = self.stop_reading(),
            }
        }
    }

    /// Lets go of what was received of the next frame; what runs is answered, then the connection ends. Returns false: the
    /// connection is not open anymore.
    fn stop_reading(&mut self) -> bool {
        self.incoming = BytesMut::new();
        self.unfinished.end();
        false
    }
}

/// Waits for the next event; for ever where nothing is listened to.
async fn hear(subscription: &mut Option<Subscription>, ops: &Ops) -> Option<Heard> {
    match subscription {
        Some(subscription) => subscription.next(ops).await,
        None => std::future::pending().await,
    }
}

fn heard_frame(heard: &Heard) -> Frame {
    match heard {
        Heard::Event(event) => reply::notification("event", event.as_ref()),
        Heard::Lagged(missed) => reply::notification("lagged", Lagged { missed: *missed }),
    }
}

/// The socket of `stream`, watched for what comes in and nothing else.
fn socket(stream: Stream) -> io::Result<AsyncFd<Arc<OwnedFd>>> {
    let Stream::UdSocket(stream) = stream;
    watch(Arc::new(OwnedFd::try_from(stream)?), Interest::READABLE)
}

/// Reads more; inside a frame, only so long.
async fn read(socket: &AsyncFd<Arc<OwnedFd>>, into: &mut BytesMut, limit: Option<Duration>) -> io::Result<usize> {
    match limit {
        None => read_some(socket, into).await,
        Some(limit) => timeout(limit, read_some(socket, into))
            .await
            .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "a frame was begun and not finished"))),
    }
}

async fn read_some(socket: &AsyncFd<Arc<OwnedFd>>, into: &mut BytesMut) -> io::Result<usize> {
    if into.is_empty() {
        // A connection that waits for its client needs no memory for what may come.
        *into = BytesMut::new();
    }
    // A client that always has more to say must not keep the thread to itself.
    tokio::task::coop::consume_budget().await;
    loop {
        let mut ready = socket.readable().await?;
        if into.capacity() == into.len() {
            into.reserve(4096);
        }
        let (held, room) = (into.len(), (into.capacity() - into.len()).min(READ));
        into.resize(held + room, 0);
        let read = rustix::io::read(socket.get_ref(), &mut into[held..]);
        into.truncate(held + read.unwrap_or(0));
        match read {
            Ok(read) => {
                // There was less than asked for: there is no more now.
                if read > 0 && read < room {
                    ready.clear_ready();
                }
                return Ok(read);
            }
            Err(Errno::AGAIN) => ready.clear_ready(),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

fn too_long(error: &io::Error) -> RpcError {
    RpcError {
        code: CODE_INVALID_REQUEST,
        message: error.to_string(),
        data: Some(ErrorData {
            kind: ErrorKind::FrameTooLong,
            hint: Some("send less in one frame, or raise max_frame; long transcripts come in by session.import".into()),
        }),
    }
}
