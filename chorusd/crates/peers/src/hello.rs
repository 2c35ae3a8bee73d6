//! Frames that belong to no tunnel: the two hellos, and what a connection without a tunnel carries. They are JSON of
//! at most 16 KiB.

use std::io;

use bytes::Bytes;
use chorus_base::requester::Requester;
use serde::{Deserialize, Serialize};

use crate::node::{LocalNode, PeerNode};

/// Version of what this crate sends. It changes if a node of the one could not understand a node of the other.
pub(crate) const PROTOCOL: u32 = 1;

/// The first frame in each direction.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    protocol: u32,
    node: String,
    boot: i64,
    version: String,
}

/// The part of a hello that every version has.
#[derive(Debug, Deserialize)]
struct HelloProtocol {
    protocol: u32,
}

/// The answer to a hello.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HelloReply {
    Accepted(Hello),
    Refused { protocol: u32, reason: String },
}

/// A frame for a connection without a tunnel.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Control {
    /// Opens a tunnel, on behalf of somebody.
    Open {
        requester: Requester,
    },
    /// Is answered with `Pong`.
    Ping,
    Pong,
}

/// A hello that is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HelloProblem {
    /// It is not a hello.
    Malformed,
    Protocol(u32),
}

impl Hello {
    pub(crate) fn of(node: &LocalNode) -> Self {
        Self { protocol: PROTOCOL, node: node.id.clone(), boot: node.boot, version: node.version.clone() }
    }

    /// Parses the first frame.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, HelloProblem> {
        let HelloProtocol { protocol } = serde_json::from_slice(body).map_err(|_| HelloProblem::Malformed)?;
        if protocol != PROTOCOL {
            return Err(HelloProblem::Protocol(protocol));
        }
        serde_json::from_slice(body).map_err(|_| HelloProblem::Malformed)
    }

    pub(crate) fn into_peer(self) -> PeerNode {
        PeerNode { id: self.node, boot: self.boot, version: self.version }
    }
}

impl HelloReply {
    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self::Refused { protocol: PROTOCOL, reason: reason.into() }
    }
}

/// Encodes a frame that belongs to no tunnel.
///
/// # Errors
/// `InvalidInput`, which needs a requester with very long names.
pub(crate) fn encode(value: &impl Serialize) -> io::Result<Bytes> {
    let body = serde_json::to_vec(value)?;
    if body.len() > crate::limits::MAX_CONTROL_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the requester is too long for a frame"));
    }
    Ok(body.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_this_protocol_are_fixed() {
        let node = LocalNode { id: "a".into(), boot: 3, version: "0.1.0".into() };
        let hello = serde_json::to_string(&Hello::of(&node)).unwrap();
        assert_eq!(hello, r#"{"protocol":1,"node":"a","boot":3,"version":"0.1.0"}"#);
        let accepted = serde_json::to_string(&HelloReply::Accepted(Hello::of(&node))).unwrap();
        assert_eq!(accepted, format!(r#"{{"accepted":{hello}}}"#));
        let refused = serde_json::to_string(&HelloReply::refused("why")).unwrap();
        assert_eq!(refused, r#"{"refused":{"protocol":1,"reason":"why"}}"#);
        let open = serde_json::to_string(&Control::Open { requester: Requester::Owner }).unwrap();
        assert_eq!(open, r#"{"open":{"requester":{"kind":"owner"}}}"#);
        assert_eq!(serde_json::to_string(&[Control::Ping, Control::Pong]).unwrap(), r#"["ping","pong"]"#);
    }

    #[test]
    fn a_newer_hello_is_recognized_whatever_else_it_has() {
        let newer = br#"{"protocol":2,"name":{"of":"a"}}"#;
        assert_eq!(Hello::parse(newer).unwrap_err(), HelloProblem::Protocol(2));
        for body in [&b""[..], b"{}", b"GET / HTTP/1.1", br#"{"protocol":"1"}"#, br#"{"protocol":1,"node":3}"#] {
            assert_eq!(Hello::parse(body).unwrap_err(), HelloProblem::Malformed);
        }
    }
}
