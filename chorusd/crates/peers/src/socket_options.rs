//! Options of the sockets between nodes.

use std::io;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::TcpStream;

/// Time without traffic after which the kernel asks whether the other side is there, and between two questions.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);

/// Time after which a connection ends if what was sent is not acknowledged, or if the other side takes nothing: the
/// kernel counts a receiver that does not read as one that is gone. Also the time to notice a node that fell silent,
/// because it takes precedence over the number of questions. A client that does not read is given the same time.
const STALL_LIMIT_MS: u32 = 30_000;

/// Sets them.
///
/// # Errors
/// Those of the system.
pub(crate) fn set(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_user_timeout(stream, STALL_LIMIT_MS)?;
    Ok(())
}
