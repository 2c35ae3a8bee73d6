//! One client: reads frames, runs what they ask, writes the answers. A client that stalls harms only itself.

use std::io;
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
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::codec::Decoder as _;
use tokio_util::sync::CancellationToken;

use super::dispatch::{Caller, dispatch};
use super::reply::{self, Frame};
use crate::ops::Ops;
use crate::ops::events::subscribe::{Heard, Subscription};

/// Requests of one connection that run at once; further ones wait in the socket.
const MAX_RUNNING: usize = 64;

/// A client that takes nothing for so long is let go.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Serves one client until it closes, breaks the framing, or `stop` is set.
pub async fn serve(mut stream: Stream, ops: Arc<Ops>, connection: u64, stop: CancellationToken) {
    let (notify, notifications) = mpsc::channel(16);
    let (subscribe, subscriptions) = mpsc::channel(4);
    let caller = Caller { connection, notify, subscribe };
    let mut connection = Connection {
        codec: FrameCodec::new(ops.config.max_frame),
        frame_timeout: ops.config.frame_timeout,
        incoming: BytesMut::new(),
        running: FuturesUnordered::new(),
        notifications,
        subscriptions,
        subscription: None,
        ops: ops.clone(),
        caller,
    };
    if let Err(e) = connection.run(&mut stream, stop).await {
        tracing::debug!(connection = connection.caller.connection, "connection ended: {e}");
    }
    ops.uploads.close(connection.caller.connection);
}

struct Connection {
    codec: FrameCodec,
    frame_timeout: Duration,
    incoming: BytesMut,
    running: FuturesUnordered<BoxFuture<'static, Option<Frame>>>,
    notifications: mpsc::Receiver<Frame>,
    subscriptions: mpsc::Receiver<Subscription>,
    subscription: Option<Subscription>,
    ops: Arc<Ops>,
    caller: Caller,
}

impl Connection {
    async fn run(&mut self, stream: &mut Stream, stop: CancellationToken) -> io::Result<()> {
        let mut open = true;
        loop {
            while open && self.running.len() < MAX_RUNNING {
                match self.codec.decode(&mut self.incoming) {
                    Ok(Some(body)) => {
                        let mut request = dispatch(self.ops.clone(), self.caller.clone(), body).boxed();
                        // What is answered at once is written at once.
                        match request.as_mut().now_or_never() {
                            Some(Some(frame)) => write(stream, &frame).await?,
                            Some(None) => {}
                            None => self.running.push(request),
                        }
                    }
                    Ok(None) => break,
                    Err(e) => {
                        write(stream, &reply::error(None, &too_long(&e))).await?;
                        // The bytes after it are no frames. What runs is answered, then the connection ends.
                        open = false;
                    }
                }
            }
            if !open && self.running.is_empty() {
                // What the client still sends is taken, so that closing does not tear the last answer away.
                let _ = stream.shutdown().await;
                return Ok(());
            }
            let partial = !self.incoming.is_empty();
            let may_read = open && self.running.len() < MAX_RUNNING;
            tokio::select! {
                biased;
                Some(answer) = self.running.next() => {
                    if let Some(frame) = answer {
                        write(stream, &frame).await?;
                    }
                }
                Some(frame) = self.notifications.recv() => write(stream, &frame).await?,
                Some(subscription) = self.subscriptions.recv() => self.subscription = Some(subscription),
                heard = hear(&mut self.subscription, &self.ops), if open => match heard {
                    Some(heard) => write(stream, &heard_frame(&heard)).await?,
                    None => self.subscription = None,
                },
                read = read(stream, &mut self.incoming, partial.then_some(self.frame_timeout)), if may_read => {
                    match read? {
                        0 if partial => return Err(io::ErrorKind::UnexpectedEof.into()),
                        0 => open = false,
                        _ => {}
                    }
                }
                () = stop.cancelled(), if open => open = false,
            }
        }
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

/// Reads more; inside a frame, only so long.
async fn read(stream: &mut Stream, into: &mut BytesMut, limit: Option<Duration>) -> io::Result<usize> {
    if into.capacity() == into.len() {
        into.reserve(4096);
    }
    match limit {
        None => stream.read_buf(into).await,
        Some(limit) => timeout(limit, stream.read_buf(into))
            .await
            .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "a frame was begun and not finished"))),
    }
}

async fn write(stream: &mut Stream, frame: &[u8]) -> io::Result<()> {
    timeout(WRITE_TIMEOUT, stream.write_all(frame)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
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
