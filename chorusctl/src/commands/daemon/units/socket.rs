//! The socket unit: systemd listens, and starts the daemon at the first connection.

use std::path::Path;

use super::{HEADER, quote};

/// File name of the socket unit; systemd starts the service of the same name.
pub(in super::super) const SOCKET_UNIT_NAME: &str = "chorusd.socket";

/// Renders the unit for the socket at `socket`. A path below `runtime_dir`, the value of `XDG_RUNTIME_DIR`, is written with `%t`.
///
/// # Errors
/// The path contains characters that a unit cannot hold.
pub(in super::super) fn render_socket(socket: &Path, runtime_dir: Option<&Path>) -> Result<String, String> {
    let below = runtime_dir.and_then(|dir| socket.strip_prefix(dir).ok());
    let path = match below {
        Some(rest) => format!("%t/{}", quote::value(quote::path_str(rest)?)?),
        None => quote::value(quote::path_str(socket)?)?,
    };
    Ok(format!(
        "\
{HEADER} To customize it, run:
# systemctl --user edit chorusd.socket

[Unit]
Description=Socket of Chorus, conversation store for AI agents

[Socket]
# Clients look for the daemon here.
ListenStream={path}
SocketMode=0600
DirectoryMode=0700

[Install]
WantedBy=sockets.target
"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_the_runtime_directory_is_relative_to_it() {
        let unit = |path, dir| render_socket(Path::new(path), Some(Path::new(dir))).unwrap_or_default();
        assert!(unit("/run/user/7/chorus/a%b.sock", "/run/user/7").contains("\nListenStream=%t/chorus/a%%b.sock\n"));
        assert!(unit("/srv/my chorus/d.sock", "/run/user/7").contains("\nListenStream=/srv/my chorus/d.sock\n"));
        assert!(render_socket(Path::new("/a\nb"), None).is_err());
    }
}
