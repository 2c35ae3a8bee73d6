//! Attempts to connect that failed, and connections that were refused, in words.

use std::io;

use rustls::Error as TlsError;

use crate::certificates::{describe, describe_alert};
use crate::node::PeerAddress;

/// An attempt to connect to a node that failed. No request left this node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConnectError {
    pub kind: ConnectErrorKind,
    /// The node with its address, and the reason.
    pub message: String,
    /// The reason alone.
    pub reason: String,
    pub hint: Option<String>,
}

/// Reason why a node cannot be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectErrorKind {
    /// Nobody answers there. Another attempt may succeed.
    Unreachable,
    /// One side does not trust the certificate of the other.
    NotTrusted,
    /// Another node answers there.
    WrongNode,
    /// The node refuses: it has too many connections, or another version.
    Refused,
    /// The connection may not be made: the requests come from a peer, or the node is this one.
    Forbidden,
}

/// Hint for a certificate that one side does not trust.
const ONE_AUTHORITY: &str =
    "all nodes need the same ca.pem and certificates of it: chorusctl cluster cert NODE=HOST --dir chorus-certs";

impl ConnectError {
    pub(crate) fn new(kind: ConnectErrorKind, target: &PeerAddress, what: impl std::fmt::Display) -> Self {
        let reason = what.to_string();
        Self { kind, message: format!("{target}: {reason}"), reason, hint: None }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The error of a node that does not answer in time.
    pub(crate) fn timed_out(target: &PeerAddress) -> Self {
        Self::new(ConnectErrorKind::Unreachable, target, "it does not answer")
            .hint("check that the node is running, its `advertise`, the network and the firewall")
    }

    /// The error of a host that has no address.
    pub(crate) fn unknown_host(target: &PeerAddress, host: &str) -> Self {
        Self::new(ConnectErrorKind::Unreachable, target, format!("the host {host} has no address"))
            .hint("check `advertise` of that node, and that this machine can look the host up")
    }

    /// The error of a host that cannot be looked up. The resolver has no other sign than its text for a name that nobody has.
    pub(crate) fn lookup_failed(target: &PeerAddress, host: &str, failure: &io::Error) -> Self {
        const UNKNOWN: [&str; 4] = ["not known", "No address", "nodename nor servname", "Name does not resolve"];
        let text = failure.to_string();
        if UNKNOWN.iter().any(|unknown| text.contains(unknown)) {
            return Self::unknown_host(target, host);
        }
        let why = text.strip_prefix("failed to lookup address information: ").unwrap_or(&text);
        Self::new(ConnectErrorKind::Unreachable, target, format!("the host {host} cannot be looked up: {why}"))
            .hint("check the name server of this machine")
    }

    /// The error of a failed socket, or of TLS.
    pub(crate) fn from_io(target: &PeerAddress, failure: &io::Error) -> Self {
        if let Some(tls) = tls_error(failure) {
            return Self::from_tls(target, tls);
        }
        let what = match failure.kind() {
            io::ErrorKind::ConnectionRefused => "nothing listens there".to_owned(),
            io::ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
            _ => failure.to_string(),
        };
        Self::new(ConnectErrorKind::Unreachable, target, what)
            .hint("check that the node is running, and its `advertise`; its log says why it refuses a connection")
    }

    fn from_tls(target: &PeerAddress, failure: &TlsError) -> Self {
        match failure {
            TlsError::InvalidCertificate(error) => {
                let what = format!("its certificate is refused: {}", describe(error));
                Self::new(ConnectErrorKind::NotTrusted, target, what).hint(ONE_AUTHORITY)
            }
            TlsError::AlertReceived(alert) => {
                Self::new(ConnectErrorKind::NotTrusted, target, describe_alert(*alert)).hint(ONE_AUTHORITY)
            }
            TlsError::InvalidMessage(_) => Self::new(ConnectErrorKind::WrongNode, target, "it does not speak TLS")
                .hint("check `advertise` of that node"),
            other => Self::new(ConnectErrorKind::NotTrusted, target, other),
        }
    }
}

/// The reason for which TLS failed, if it did.
pub(crate) fn tls_error(failure: &io::Error) -> Option<&TlsError> {
    failure.get_ref().and_then(|inner| inner.downcast_ref())
}

/// The reason why a connection that another node, or somebody else, has made is refused. `None` if it only ended.
pub(crate) fn refusal_reason(failure: &io::Error) -> Option<String> {
    let reason = match tls_error(failure)? {
        TlsError::InvalidCertificate(error) => format!("its certificate is refused: {}", describe(error)),
        TlsError::NoCertificatesPresented => "it has no certificate".to_owned(),
        TlsError::InvalidMessage(_) => "it does not speak TLS".to_owned(),
        TlsError::PeerIncompatible(_) => "it does not speak TLS 1.3".to_owned(),
        TlsError::AlertReceived(_) => "it does not accept the certificate of this node".to_owned(),
        TlsError::NoApplicationProtocol => "it speaks another protocol over TLS".to_owned(),
        other => other.to_string(),
    };
    Some(reason)
}
