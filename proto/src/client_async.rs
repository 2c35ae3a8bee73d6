//! An asynchronous client for tokio; one request at a time, cheap to open many of.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use bytes::BytesMut;
use interprocess::local_socket::tokio::Stream;
use interprocess::local_socket::traits::tokio::Stream as _;
use interprocess::local_socket::{GenericFilePath, ToFsName as _};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_util::codec::{Decoder as _, Encoder as _};

use crate::client::{CallError, is_not_listening};
use crate::frame_codec::FrameCodec;
use crate::lock_file;
use crate::methods::Method;
use crate::paths::InstancePaths;
use crate::peer_check;
use crate::rpc::{IncomingMessage, OutgoingRequest, VERSION};

/// A connection to `chorusd`.
#[derive(Debug)]
pub struct AsyncClient {
    stream: Stream,
    codec: FrameCodec,
    incoming: BytesMut,
    next_id: u64,
}

impl AsyncClient {
    /// Connects to the socket at `path`. Sends nothing to a server of another user, unless that user is root.
    ///
    /// # Errors
    /// The same as [`crate::Client::connect`].
    pub async fn connect(path: &Path) -> io::Result<Self> {
        peer_check::check_directory(path)?;
        let stream = Stream::connect(path.to_fs_name::<GenericFilePath>()?).await?;
        peer_check::check_peer(&stream, path)?;
        Ok(Self { stream, codec: FrameCodec::default(), incoming: BytesMut::new(), next_id: 1 })
    }

    /// Connects to the daemon of `places`: at its socket or, if nobody listens there, at the socket that the lock file
    /// of its home names.
    ///
    /// # Errors
    /// The same as [`crate::Client::connect`].
    pub async fn connect_to(places: &InstancePaths) -> io::Result<Self> {
        let nobody = match Self::connect(&places.socket).await {
            Err(error) if is_not_listening(&error) => error,
            connected => return connected,
        };
        let Some(socket) = lock_file::socket_elsewhere(places) else { return Err(nobody) };
        match Self::connect(&socket).await {
            Err(error) if is_not_listening(&error) => Err(nobody),
            connected => connected,
        }
    }

    /// Uses a connection to a daemon that was made in another way, for example over ssh.
    ///
    /// # Errors
    /// The runtime refuses it.
    pub fn over(connection: OwnedFd) -> io::Result<Self> {
        let connection = UnixStream::from(connection);
        connection.set_nonblocking(true)?;
        let stream = Stream::UdSocket(OwnedFd::from(connection).try_into()?);
        Ok(Self { stream, codec: FrameCodec::default(), incoming: BytesMut::new(), next_id: 1 })
    }

    /// Calls `M` and returns its result.
    pub async fn call<M: Method>(&mut self, params: &M::Params) -> Result<M::Result, CallError> {
        let raw = self.call_raw(M::NAME, params).await?;
        Ok(serde_json::from_str(raw.get())?)
    }

    /// Calls `method` and returns its result as unparsed JSON.
    pub async fn call_raw<P: Serialize + ?Sized>(
        &mut self,
        method: &str,
        params: &P,
    ) -> Result<Box<RawValue>, CallError> {
        let id = self.send_request(method, params).await?;
        loop {
            let body = self.next_frame().await?;
            let incoming: IncomingMessage<'_> = serde_json::from_slice(&body)?;
            if let Some(error) = incoming.error {
                if incoming.id.is_none_or(|answered| answered == id) {
                    return Err(CallError::Rpc(error));
                }
            } else if incoming.id == Some(id) {
                let result = incoming.result.map_or("null", RawValue::get);
                return Ok(RawValue::from_string(result.to_owned())?);
            }
        }
    }

    /// Sends a request and returns its id, without waiting for the answer. What comes before it is read with
    /// [`Self::next_notification`].
    ///
    /// # Errors
    /// The connection failed.
    pub async fn send_request<P: Serialize + ?Sized>(&mut self, method: &str, params: &P) -> Result<u64, CallError> {
        let id = self.next_id;
        self.next_id += 1;
        let request = serde_json::to_vec(&OutgoingRequest { jsonrpc: VERSION, id, method, params })?;
        let mut frame = BytesMut::new();
        self.codec.encode(&request, &mut frame)?;
        self.stream.write_all(&frame).await?;
        Ok(id)
    }

    /// Waits for the next notification and returns its method and `params`; `None` if the answer to a request comes instead.
    /// The future may be dropped and called again: nothing is lost.
    ///
    /// # Errors
    /// The connection failed, or the answer is an error.
    pub async fn next_notification(&mut self) -> Result<Option<(String, Box<RawValue>)>, CallError> {
        loop {
            let body = self.next_frame().await?;
            let incoming: IncomingMessage<'_> = serde_json::from_slice(&body)?;
            if let Some(error) = incoming.error {
                return Err(CallError::Rpc(error));
            }
            if incoming.id.is_some() {
                return Ok(None);
            }
            if let (Some(method), Some(params)) = (incoming.method, incoming.params) {
                return Ok(Some((method.into_owned(), params.to_owned())));
            }
        }
    }

    async fn next_frame(&mut self) -> io::Result<bytes::Bytes> {
        loop {
            if let Some(body) = self.codec.decode(&mut self.incoming)? {
                return Ok(body);
            }
            if self.stream.read_buf(&mut self.incoming).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
