//! A blocking client without a runtime; one request at a time.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use interprocess::local_socket::traits::Stream as _;
use interprocess::local_socket::{GenericFilePath, Stream, ToFsName as _};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::RpcError;
use crate::frame::{self, MAX_FRAME};
use crate::lock_file;
use crate::methods::Method;
use crate::paths::InstancePaths;
use crate::peer_check::{self, ForeignServer};
use crate::rpc::{IncomingMessage, OutgoingRequest, Progress, VERSION};

/// Error of a call.
#[derive(Debug)]
pub enum CallError {
    /// The daemon answered with an error.
    Rpc(RpcError),
    /// The connection failed. It is unknown whether the daemon carried out the request.
    Io(io::Error),
    /// The answer does not have the method's type.
    Malformed(serde_json::Error),
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rpc(e) => f.write_str(&e.message),
            Self::Io(e) => write!(f, "connection to the daemon failed: {e}"),
            Self::Malformed(e) => write!(f, "invalid reply from the daemon: {e}"),
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Rpc(_) => None,
            Self::Io(e) => Some(e),
            Self::Malformed(e) => Some(e),
        }
    }
}

impl From<io::Error> for CallError {
    fn from(e: io::Error) -> Self {
        Self::Io(e)
    }
}

impl From<serde_json::Error> for CallError {
    fn from(e: serde_json::Error) -> Self {
        Self::Malformed(e)
    }
}

/// A connection to `chorusd`.
#[derive(Debug)]
pub struct Client {
    stream: Stream,
    next_id: u64,
    deadline: Option<Instant>,
    body: Vec<u8>,
}

impl Client {
    /// Connects to the socket at `path`. Sends nothing to a server of another user, unless that user is root.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] or [`io::ErrorKind::ConnectionRefused`] if no daemon listens,
    /// [`crate::peer_check::ForeignServer`] if another user's program does.
    pub fn connect(path: &Path) -> io::Result<Self> {
        peer_check::check_directory(path)?;
        let stream = Stream::connect(path.to_fs_name::<GenericFilePath>()?)?;
        peer_check::check_peer(&stream, path)?;
        Ok(Self { stream, next_id: 1, deadline: None, body: Vec::new() })
    }

    /// Connects to the daemon of `places`: at its socket or, if nobody listens there, at the socket that the lock file
    /// of its home names.
    pub fn connect_to(places: &InstancePaths) -> io::Result<Self> {
        let nobody = match Self::connect(&places.socket) {
            Err(error) if is_not_listening(&error) => error,
            connected => return connected,
        };
        match lock_file::socket_elsewhere(places).map(|socket| Self::connect(&socket)) {
            None => Err(nobody),
            // The daemon of the lock file is stopping or has stopped.
            Some(Err(error)) if is_not_listening(&error) => Err(nobody),
            Some(connected) => connected,
        }
    }

    /// Uses a connection to a daemon that was made in another way, for example over ssh.
    #[must_use]
    pub fn over(connection: OwnedFd) -> Self {
        let stream = Stream::UdSocket(connection.into());
        Self { stream, next_id: 1, deadline: None, body: Vec::new() }
    }

    /// Returns the connection itself, on which nothing is waited for.
    #[must_use]
    pub fn into_connection(self) -> OwnedFd {
        let Stream::UdSocket(stream) = self.stream;
        stream.into()
    }

    /// Sets the longest wait for bytes of an answer; `None` waits forever. A wait that times out returns
    /// [`io::ErrorKind::WouldBlock`] or [`io::ErrorKind::TimedOut`].
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.stream.set_recv_timeout(timeout)?;
        self.stream.set_send_timeout(timeout)
    }

    /// Sets when each answer must be complete, even if other messages keep arriving before it; `None` for no limit. A
    /// call that takes longer returns [`io::ErrorKind::WouldBlock`] or [`io::ErrorKind::TimedOut`].
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Waits for the next notification and returns its method and `params`.
    ///
    /// # Errors
    /// [`CallError::Io`] with [`io::ErrorKind::UnexpectedEof`] if the daemon closes the connection.
    pub fn next_notification(&mut self) -> Result<(String, Box<RawValue>), CallError> {
        loop {
            if !self.read_frame()? {
                return Err(CallError::Io(io::ErrorKind::UnexpectedEof.into()));
            }
            let incoming: IncomingMessage<'_> = serde_json::from_slice(&self.body)?;
            if let (Some(method), Some(params)) = (incoming.method, incoming.params) {
                return Ok((method.into_owned(), params.to_owned()));
            }
        }
    }

    /// Calls `M` and returns its result.
    pub fn call<M: Method>(&mut self, params: &M::Params) -> Result<M::Result, CallError> {
        let raw = self.call_raw(M::NAME, params, &mut |_| ())?;
        Ok(serde_json::from_str(raw.get())?)
    }

    /// Calls `method` and returns its result as unparsed JSON. `on_progress` receives its progress.
    pub fn call_raw<P: Serialize + ?Sized>(
        &mut self,
        method: &str,
        params: &P,
        on_progress: &mut dyn FnMut(Progress),
    ) -> Result<Box<RawValue>, CallError> {
        self.call_streaming(method, params, &mut |params: &RawValue| {
            if let Ok(progress) = serde_json::from_str(params.get()) {
                on_progress(progress);
            }
            Ok(())
        })
    }

    /// Calls `method` and returns its result as unparsed JSON. `on_progress` receives the `params` of each `progress`
    /// notification of this request. If it returns an error the wait ends, but the daemon continues to carry out the
    /// request.
    pub fn call_streaming<P: Serialize + ?Sized, E: From<CallError>>(
        &mut self,
        method: &str,
        params: &P,
        on_progress: &mut dyn FnMut(&RawValue) -> Result<(), E>,
    ) -> Result<Box<RawValue>, E> {
        let id = self.next_id;
        let unsent = self.send_request(method, params)?;
        loop {
            self.read_answer(unsent)?;
            let incoming: IncomingMessage<'_> = serde_json::from_slice(&self.body).map_err(CallError::from)?;
            if incoming.method.as_deref() == Some("progress") {
                if let Some(params) = incoming.params.filter(|params| is_progress_of(id, params)) {
                    on_progress(params)?;
                }
                continue;
            }
            // An error without an id concerns the connection, so it belongs to this request, too.
            if let Some(error) = incoming.error {
                if incoming.id.is_none_or(|answered| answered == id) {
                    return Err(CallError::Rpc(error).into());
                }
            } else if incoming.id == Some(id) {
                let result = incoming.result.map_or("null", RawValue::get);
                return Ok(RawValue::from_string(result.to_owned()).map_err(CallError::from)?);
            }
        }
    }

    /// Sends a request. A daemon that accepts no more connections sends an error and closes, perhaps before the request
    /// was written. So a failed write is returned as `Some`: there may be an answer to read.
    fn send_request<P: Serialize + ?Sized>(
        &mut self,
        method: &str,
        params: &P,
    ) -> Result<Option<io::ErrorKind>, CallError> {
        let id = self.next_id;
        self.next_id += 1;
        let request = serde_json::to_vec(&OutgoingRequest { jsonrpc: VERSION, id, method, params })?;
        match frame::write(&mut &self.stream, &request, MAX_FRAME) {
            Ok(()) => Ok(None),
            Err(e) if matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                Ok(Some(e.kind()))
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Reads the next frame. `unsent` is the error to return if there is none.
    fn read_answer(&mut self, unsent: Option<io::ErrorKind>) -> Result<(), CallError> {
        match (self.read_frame(), unsent) {
            (Ok(true), _) => Ok(()),
            (_, Some(why)) => Err(io::Error::from(why).into()),
            (Ok(false), None) => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            (Err(e), None) => Err(e.into()),
        }
    }

    fn read_frame(&mut self) -> io::Result<bool> {
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.stream.set_recv_timeout(Some(left))?;
        }
        frame::read(&mut &self.stream, &mut self.body, MAX_FRAME)
    }
}

/// Returns true if `error` says that nobody listens at a path, or that the path belongs to another user.
pub(crate) fn is_not_listening(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | ConnectionRefused | NotADirectory | PermissionDenied)
        && !ForeignServer::is_cause_of(error)
}

/// Returns true if the `params` of a notification name the request `id`.
fn is_progress_of(id: u64, params: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct RequestId {
        id: u64,
    }
    serde_json::from_str::<RequestId>(params.get()).is_ok_and(|of| of.id == id)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::methods::daemon::{Hello, HelloParams};

    #[test]
    fn a_refusal_is_heard_though_the_connection_is_closed() -> io::Result<()> {
        let path = std::env::temp_dir().join(format!("chorus-proto-{}.sock", uuid::Uuid::new_v4()));
        let listener = std::os::unix::net::UnixListener::bind(&path)?;
        let mut client = Client::connect(&path)?;
        let (mut refused, _) = listener.accept()?;
        let busy = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"full","data":{"kind":"busy"}}}"#;
        frame::write(&mut refused, busy, MAX_FRAME)?;
        drop(refused);
        let kind = |answer: Result<_, CallError>| match answer {
            Err(CallError::Rpc(e)) => Some(e.kind()),
            _ => None,
        };
        assert_eq!(kind(client.call::<Hello>(&HelloParams::default())), Some(ErrorKind::Busy));
        assert!(matches!(client.call::<Hello>(&HelloParams::default()), Err(CallError::Io(_))));
        std::fs::remove_file(&path)
    }
}
