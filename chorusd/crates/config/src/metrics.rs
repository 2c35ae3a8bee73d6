//! The table `[metrics]`.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The place at which figures can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetricsListen {
    /// A loopback address with its port.
    Address(SocketAddr),
    /// The absolute path of a Unix socket.
    Socket(PathBuf),
}

impl fmt::Display for MetricsListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Socket(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Parses a place: `127.0.0.1:9464`, `[::1]:9464`, or `unix:` and an absolute path.
pub(crate) fn parse_listen(text: &str) -> Result<MetricsListen, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        let path = PathBuf::from(path);
        return if path.is_absolute() {
            Ok(MetricsListen::Socket(path))
        } else {
            Err("must have an absolute path after `unix:`".into())
        };
    }
    let address: SocketAddr =
        text.parse().map_err(|_| "must be an address with a port, such as 127.0.0.1:9464, or unix:/PATH".to_owned())?;
    if !address.ip().is_loopback() {
        return Err("must be a loopback address, such as 127.0.0.1: anybody who reaches it may read it".into());
    }
    if address.port() == 0 {
        return Err("must have a port that is not 0".into());
    }
    Ok(MetricsListen::Address(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_served() {
        assert_eq!(parse_listen("127.0.0.1:9464"), Ok(MetricsListen::Address(([127, 0, 0, 1], 9464).into())));
        assert!(matches!(parse_listen("[::1]:9464"), Ok(MetricsListen::Address(_))));
        assert_eq!(parse_listen("unix:/run/m.sock"), Ok(MetricsListen::Socket("/run/m.sock".into())));
        for wrong in
            ["0.0.0.0:9464", "[::]:9464", "192.168.1.2:1", "127.0.0.1", "127.0.0.1:0", "9464", "unix:m.sock", ""]
        {
            assert!(parse_listen(wrong).is_err(), "{wrong}");
        }
    }
}
