//! Options of the sockets between nodes.

use std::io;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::TcpStream;

/// Time without traffic after which the kernel asks whether the other side is there, and between two questions.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);

/// Sets them. `stall_limit` is the time after which a connection ends if what was sent is not acknowledged, or if the
/// other side takes nothing: Linux counts a receiver that does not read as one that is gone. It is also the time to
/// notice a node that fell silent, because it takes precedence over the number of questions.
///
/// # Errors
/// Those of the system.
pub(crate) fn set(stream: &TcpStream, stall_limit: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    let stall_limit = u32::try_from(stall_limit.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(stream, stall_limit)?;
    Ok(())
}
