//! Serves one client: reads frames, runs the requests in them, and writes the replies. A client that stalls delays only
//! itself.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use chorus_base::sync::Mutex;
use chorus_engine::ops::Ops;
use chorus_engine::ops::events::subscribe::{Subscription, SubscriptionItem};
use chorus_proto::error::CODE_INVALID_REQUEST;
use chorus_proto::event::Lagged;
use chorus_proto::frame_codec::FrameCodec;
use chorus_proto::{ErrorData, ErrorKind, RpcError};
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::codec::Decoder as _;
use tokio_util::sync::CancellationToken;

use super::dispatch::{ClientHandle, ToClient, dispatch};
use super::elsewhere::Elsewhere;
use super::frame_budget::FrameBudget;
use super::frame_limits::{IncomingFrame, PermitOutcome, busy_error};
use super::reply::{self, Frame};
use super::writer::{ClientWriter, register_socket};

/// The limit on requests of one connection that run concurrently; further ones wait in the socket.
const MAX_RUNNING: usize = 64;

/// The limit on bytes per read.
const MAX_READ_BYTES: usize = 64 << 10;

/// Serves one client until it closes, breaks the framing, or `stop` is cancelled. `room` is the byte budget that all
/// connections share; `elsewhere` says what becomes of requests for agents that other nodes have.
pub(super) fn serve(
    socket: io::Result<OwnedFd>,
    ops: Arc<Ops>,
    (connection, elsewhere): (u64, Elsewhere),
    room: FrameBudget,
    stop: CancellationToken,
) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let socket = match socket.and_then(|socket| register_socket(Arc::new(socket), Interest::READABLE)) {
            Ok(socket) => socket,
            Err(e) => return tracing::warn!(connection, "cannot serve a connection: {e}"),
        };
        let line = Arc::new(ClientWriter::new(socket.get_ref().clone()));
        let (to_client, for_client) = mpsc::channel(16);
        let reading_ended = CancellationToken::new();
        let caller = ClientHandle {
            connection,
            writer: line.clone(),
            elsewhere: elsewhere.of_client(&to_client, &reading_ended),
            to_client,
            last_change: Arc::new(Mutex::new(Some(Instant::now()))),
            reading_ended,
        };
        let mut connection = Connection {
            codec: FrameCodec::new(ops.config.max_frame),
            incoming_frame: IncomingFrame::new(room, ops.config.frame_timeout),
            received: BytesMut::new(),
            running: FuturesUnordered::new(),
            for_client,
            subscription: None,
            writer: line,
            ops: ops.clone(),
            caller,
        };
        if let Err(e) = connection.run(&socket, stop).await {
            tracing::debug!(connection = connection.caller.connection, "connection ended: {e}");
        }
    })
}

struct Connection {
    codec: FrameCodec,
    received: BytesMut,
    /// Declared after the buffer, so that the budget is released only when the received bytes are freed.
    incoming_frame: IncomingFrame,
    running: FuturesUnordered<BoxFuture<'static, Option<Frame>>>,
    for_client: mpsc::Receiver<Box<ToClient>>,
    /// Boxed, because most connections have none and each would hold its size.
    subscription: Option<Box<Subscription>>,
    writer: Arc<ClientWriter>,
    ops: Arc<Ops>,
    caller: ClientHandle,
}

/// The event that a connection waited for.
enum ConnectionEvent {
    Reply(Option<Frame>),
    FramesQueued,
    ToClient(ToClient),
    Event(Option<SubscriptionItem>),
    BudgetOutcome(PermitOutcome),
    Evicted,
    Read(io::Result<usize>),
    Stop,
}

/// In `Drop`, so that it also happens when a handler panics: the client sees the end of the connection.
impl Drop for Connection {
    fn drop(&mut self) {
        self.writer.close();
        self.ops.transfers.close_connection(self.caller.connection);
        self.ops.backups.close_connection(self.caller.connection);
    }
}

impl Connection {
    async fn run(&mut self, socket: &AsyncFd<Arc<OwnedFd>>, stop: CancellationToken) -> io::Result<()> {
        let mut open = true;
        loop {
            while open && self.running.len() < MAX_RUNNING {
                match self.codec.decode(&mut self.received) {
                    Ok(Some(body)) => {
                        self.incoming_frame.finish();
                        let mut request = dispatch(self.ops.clone(), self.caller.clone(), body).boxed();
                        // Replies that are ready immediately are written without another turn of the loop.
                        match request.as_mut().now_or_never() {
                            Some(Some(frame)) => {
                                if self.writer.enqueue_for_flush(frame) {
                                    self.writer.flush().await?;
                                }
                            }
                            Some(None) => {}
                            None => self.running.push(request),
                        }
                    }
                    Ok(None) => break,
                    Err(e) => {
                        self.writer.write(reply::error_frame(None, &too_long_error(&e))).await?;
                        // The bytes that follow are not aligned to frames any more.
                        open = self.stop_reading();
                    }
                }
            }
            self.incoming_frame.run_write(self.writer.flush()).await?;
            if !open && self.running.is_empty() {
                return self.write_waiting().await;
            }
            let partial = !self.received.is_empty();
            // A frame that cannot be read yet must not hold budget meanwhile.
            if open && self.running.len() < MAX_RUNNING {
                self.incoming_frame.request_permit(&self.received, self.ops.config.max_frame);
                self.incoming_frame.reserve_buffer(&mut self.received);
            }
            let waits = self.incoming_frame.is_waiting();
            let may_read = open && !waits && self.running.len() < MAX_RUNNING;
            let limit = partial.then_some(self.incoming_frame.time_left());
            let (began, evicted) = (Instant::now(), self.incoming_frame.evicted());
            let next = tokio::select! {
                biased;
                Some(answer) = self.running.next() => ConnectionEvent::Reply(answer),
                () = self.writer.wait_until_queued() => ConnectionEvent::FramesQueued,
                Some(item) = self.for_client.recv() => ConnectionEvent::ToClient(*item),
                heard = next_event(&mut self.subscription, &self.ops), if open => ConnectionEvent::Event(heard),
                given = self.incoming_frame.wait_for_permit(), if open && waits => ConnectionEvent::BudgetOutcome(given),
                () = evicted, if open => ConnectionEvent::Evicted,
                read = read_within(socket, &mut self.received, limit), if may_read => ConnectionEvent::Read(read),
                () = stop.cancelled(), if open => ConnectionEvent::Stop,
            };
            // Only the time in which the client could have sent something counts.
            if partial && may_read {
                self.incoming_frame.count_wait(began.elapsed());
            }
            match next {
                ConnectionEvent::Reply(reply) => self.write_replies(reply).await?,
                ConnectionEvent::ToClient(ToClient::Notification(frame)) => {
                    self.incoming_frame.run_write(self.writer.write(frame)).await?
                }
                ConnectionEvent::FramesQueued => self.incoming_frame.run_write(self.writer.flush()).await?,
                ConnectionEvent::ToClient(ToClient::Events(subscription)) => {
                    self.subscription = Some(Box::new(subscription))
                }
                ConnectionEvent::Event(Some(heard)) => {
                    self.incoming_frame.run_write(self.writer.write(event_frame(&heard))).await?
                }
                ConnectionEvent::Event(None) => self.subscription = None,
                ConnectionEvent::BudgetOutcome(given) => {
                    if let Err(busy) = self.incoming_frame.accept_permit(given) {
                        open = self.stop_reading();
                        self.writer.write(reply::error_frame(None, &busy)).await?;
                    }
                }
                ConnectionEvent::Evicted => {
                    open = self.stop_reading();
                    let busy = busy_error("a long frame arrived too slowly while other connections were waiting");
                    self.writer.write(reply::error_frame(None, &busy)).await?;
                }
                ConnectionEvent::Read(read) => match read? {
                    0 if partial => return Err(io::ErrorKind::UnexpectedEof.into()),
                    0 => open = self.stop_reading(),
                    bytes => self.incoming_frame.count_received(bytes),
                },
                ConnectionEvent::Stop => open = self.stop_reading(),
            }
        }
    }

    /// Writes what was handed to the connection and not written yet.
    async fn write_waiting(&mut self) -> io::Result<()> {
        while let Ok(item) = self.for_client.try_recv() {
            if let ToClient::Notification(frame) = *item {
                self.incoming_frame.run_write(self.writer.write(frame)).await?;
            }
        }
        Ok(())
    }

    /// Writes a reply, if it is one, and with it those that are ready now: one commit may answer many requests.
    async fn write_replies(&mut self, first: Option<Frame>) -> io::Result<()> {
        let mut next = Some(first);
        while let Some(reply) = next {
            let must_flush = reply.is_some_and(|frame| self.writer.enqueue_for_flush(frame));
            next = if must_flush { None } else { self.running.next().now_or_never().flatten() };
        }
        self.incoming_frame.run_write(self.writer.flush()).await
    }

    /// Drops the received part of the next frame. Running requests are still answered, then the connection ends.
    /// Returns false: the connection is not open any more.
    fn stop_reading(&mut self) -> bool {
        self.received = BytesMut::new();
        self.incoming_frame.finish();
        self.caller.reading_ended.cancel();
        false
    }
}

/// Waits for the next event; never returns without a subscription.
async fn next_event(subscription: &mut Option<Box<Subscription>>, ops: &Ops) -> Option<SubscriptionItem> {
    match subscription {
        Some(subscription) => subscription.next(&ops.store.journal).await,
        None => std::future::pending().await,
    }
}

fn event_frame(heard: &SubscriptionItem) -> Frame {
    match heard {
        SubscriptionItem::Event(event) => reply::notification_frame("event", event.as_ref()),
        SubscriptionItem::Lagged(missed) => reply::notification_frame("lagged", Lagged { missed: *missed }),
    }
}

/// Reads more bytes; within a frame, at most for `limit`.
async fn read_within(
    socket: &AsyncFd<Arc<OwnedFd>>,
    into: &mut BytesMut,
    limit: Option<Duration>,
) -> io::Result<usize> {
    match limit {
        None => read_some(socket, into).await,
        Some(limit) => timeout(limit, read_some(socket, into))
            .await
            .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "incomplete frame"))),
    }
}

async fn read_some(socket: &AsyncFd<Arc<OwnedFd>>, into: &mut BytesMut) -> io::Result<usize> {
    if into.is_empty() {
        // Free the buffer: an idle connection needs no memory.
        *into = BytesMut::new();
    }
    // Yields now and then, so that a client that always sends more does not monopolise the thread.
    tokio::task::coop::consume_budget().await;
    loop {
        let mut ready = socket.readable().await?;
        if into.capacity() == into.len() {
            into.reserve(4096);
        }
        let (held, room) = (into.len(), (into.capacity() - into.len()).min(MAX_READ_BYTES));
        into.resize(held + room, 0);
        let read = rustix::io::read(socket.get_ref(), &mut into[held..]);
        into.truncate(held + read.unwrap_or(0));
        match read {
            Ok(read) => {
                // A short read means that the socket is empty now.
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

fn too_long_error(error: &io::Error) -> RpcError {
    RpcError {
        code: CODE_INVALID_REQUEST,
        message: error.to_string(),
        data: Some(ErrorData {
            kind: ErrorKind::FrameTooLong,
            hint: Some("send less in one frame, or raise max_frame; use session.import for long transcripts".into()),
        }),
    }
}
