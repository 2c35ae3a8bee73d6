//! Bounds of time, number and size.

use std::time::Duration;

use chorus_proto::frame::MAX_FRAME;

/// Limit of bytes of a frame that is not part of a tunnel: hello, the opening of a tunnel.
pub(crate) const MAX_CONTROL_BYTES: usize = 16 << 10;

/// Time after which the end of a tunnel is no longer waited for.
pub(crate) const FINISH_LIMIT: Duration = Duration::from_secs(5);

/// Time in which the other side has to take something: that which a client of the local socket has, too.
const STALL_LIMIT: Duration = Duration::from_secs(30);

/// Bounds of what others may do to the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenerLimits {
    /// Bytes of a frame of a tunnel.
    pub max_frame: usize,
    /// Connections of peers; each carries one tunnel at a time.
    pub max_connections: usize,
    /// Connections that have not said hello yet. One more ends the oldest of them.
    pub max_handshakes: usize,
    /// Time in which a connection has to complete TLS and say hello.
    pub handshake_timeout: Duration,
    /// Time that a connection without a tunnel may be silent. Longer than `ping_interval` of the others.
    pub silence_limit: Duration,
    /// Time after which a connection ends whose other side takes nothing of what is sent.
    pub stall_limit: Duration,
}

impl Default for ListenerLimits {
    fn default() -> Self {
        Self {
            max_frame: MAX_FRAME,
            max_connections: 4096,
            max_handshakes: 256,
            handshake_timeout: Duration::from_secs(5),
            silence_limit: Duration::from_secs(30),
            stall_limit: STALL_LIMIT,
        }
    }
}

/// Bounds of the connections to other nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolLimits {
    /// Bytes of a frame of a tunnel.
    pub max_frame: usize,
    /// Connections without a tunnel that are kept for each node.
    pub max_idle: usize,
    /// Time that a connection is kept without a tunnel.
    pub idle_limit: Duration,
    /// Age from which a connection gets no further tunnel, so that certificates are checked again.
    pub max_age: Duration,
    /// Time in which a new connection has to be complete, with TLS and hello.
    pub connect_timeout: Duration,
    /// Time between two pings of a connection without a tunnel.
    pub ping_interval: Duration,
    /// Time in which a ping has to be answered.
    pub ping_timeout: Duration,
    /// Time after which a connection ends whose other side takes nothing of what is sent.
    pub stall_limit: Duration,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self {
            max_frame: MAX_FRAME,
            max_idle: 8,
            idle_limit: Duration::from_secs(60),
            max_age: Duration::from_secs(60 * 60),
            connect_timeout: Duration::from_secs(5),
            ping_interval: Duration::from_secs(5),
            ping_timeout: Duration::from_secs(2),
            stall_limit: STALL_LIMIT,
        }
    }
}
