//! A blocking client: no runtime, one request at a time.

use std::io;
use std::path::Path;
use std::time::Duration;

use interprocess::local_socket::traits::Stream as _;
use interprocess::local_socket::{GenericFilePath, Stream, ToFsName as _};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::error::RpcError;
use crate::frame::{self, MAX_FRAME};
use crate::methods::Method;
use crate::rpc::{Incoming, Progress, RequestOut, VERSION};

/// Why a call has no result.
#[derive(Debug)]
pub enum CallError {
    /// The daemon answered with an error.
    Rpc(RpcError),
    /// The connection failed; whether the daemon carried the request out is not known.
    Io(io::Error),
    /// The answer does not fit the method.
    Malformed(serde_json::Error),
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rpc(e) => f.write_str(&e.message),
            Self::Io(e) => write!(f, "connection to the daemon failed: {e}"),
            Self::Malformed(e) => write!(f, "the daemon's answer cannot be read: {e}"),
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
    body: Vec<u8>,
}

impl Client {
    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] or [`io::ErrorKind::ConnectionRefused`] where no daemon listens.
    pub fn connect(path: &Path) -> io::Result<Self> {
        let stream = Stream::connect(path.to_fs_name::<GenericFilePath>()?)?;
        Ok(Self { stream, next_id: 1, body: Vec::new() })
    }

    /// Longest wait for bytes of an answer; `None` waits for ever. A wait that runs out is
    /// [`io::ErrorKind::WouldBlock`] or [`io::ErrorKind::TimedOut`].
    ///
    /// # Errors
    /// What the system says.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.stream.set_recv_timeout(timeout)?;
        self.stream.set_send_timeout(timeout)
    }

    /// Waits for the next notification: its method and its `params`.
    ///
    /// # Errors
    /// [`CallError::Io`] with [`io::ErrorKind::UnexpectedEof`] when the daemon goes away.
    pub fn next_notification(&mut self) -> Result<(String, Box<RawValue>), CallError> {
        loop {
            if !frame::read(&mut &self.stream, &mut self.body, MAX_FRAME)? {
                return Err(CallError::Io(io::ErrorKind::UnexpectedEof.into()));
            }
            let incoming: Incoming<'_> = serde_json::from_slice(&self.body)?;
            if let (Some(method), Some(params)) = (incoming.method, incoming.params) {
                return Ok((method.into_owned(), params.to_owned()));
            }
        }
    }

    /// Calls `M` and returns its result.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn call<M: Method>(&mut self, params: &M::Params) -> Result<M::Result, CallError> {
        let raw = self.call_raw(M::NAME, params, &mut |_| ())?;
        Ok(serde_json::from_str(raw.get())?)
    }

    /// Calls `method` and returns its result as it came; `on_progress` hears how far long work has come.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn call_raw<P: Serialize + ?Sized>(
        &mut self,
        method: &str,
        params: &P,
        on_progress: &mut dyn FnMut(Progress),
    ) -> Result<Box<RawValue>, CallError> {
        let id = self.next_id;
        self.next_id += 1;
        let request = serde_json::to_vec(&RequestOut { jsonrpc: VERSION, id, method, params })?;
        // A daemon that takes no more connections says so and closes, perhaps before anything was written here.
        let unsent = match frame::write(&mut &self.stream, &request, MAX_FRAME) {
            Ok(()) => None,
            Err(e) if matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => Some(e),
            Err(e) => return Err(e.into()),
        };
        loop {
            match (frame::read(&mut &self.stream, &mut self.body, MAX_FRAME), unsent.is_some()) {
                (Ok(true), _) => {}
                (_, true) => return Err(unsent.unwrap_or_else(|| io::ErrorKind::BrokenPipe.into()).into()),
                (Ok(false), false) => return Err(CallError::Io(io::ErrorKind::UnexpectedEof.into())),
                (Err(e), false) => return Err(e.into()),
            }
            let incoming: Incoming<'_> = serde_json::from_slice(&self.body)?;
            if incoming.method.as_deref() == Some("progress") {
                if let Some(Ok(progress)) = incoming.params.map(|p| serde_json::from_str(p.get())) {
                    on_progress(progress);
                }
                continue;
            }
            // An error without an id concerns the connection, so it is ours.
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
