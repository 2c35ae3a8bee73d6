//! A connection to the daemon of another machine, over ssh.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use chorus_proto::error::exit;
use chorus_proto::{Client, shell_word::shell_word};

use crate::error::{Error, os_error_text};

/// The first line of the other end. Text before it, for example of a login script, is skipped.
pub(super) const GREETING: &[u8] = b"chorusctl sync --serve\n";

/// The limit on text before the greeting, in bytes.
const MAX_NOISE: usize = 64 * 1024;

/// Exit status of a shell that does not find a command.
const NOT_FOUND: u8 = 127;
/// Exit status of ssh if the connection fails.
const SSH_FAILED: u8 = 255;

/// A running ssh with `chorusctl sync --serve` at its other end. Dropping it ends ssh.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) client: Client,
    ssh: Child,
    host: String,
}

impl Remote {
    /// Connects to `host`.
    ///
    /// # Errors
    /// ssh fails, which says why itself, or Chorus is not there.
    pub(super) fn connect(host: &str, rsh: &str, remote_command: &str) -> Result<Self, Error> {
        if host.starts_with('-') {
            return Err(Error::usage(format!("{host} is not the name of a machine")));
        }
        let failed = |error: std::io::Error| Error::failed(format!("failed to start ssh: {}", os_error_text(&error)));
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let input = OwnedFd::from(theirs.try_clone().map_err(failed)?);
        let mut ssh = Command::new("sh")
            // The words of `rsh` are those of a shell, as for git and rsync.
            .args(["-c", &format!("exec {rsh} \"$@\""), "ssh", "-T", host])
            .arg(format!("{} sync --serve", shell_word(remote_command)))
            .stdin(Stdio::from(input))
            .stdout(Stdio::from(OwnedFd::from(theirs)))
            .spawn()
            .map_err(failed)?;
        if !skip_to_greeting(&ours) {
            drop(ours);
            let status = ssh.wait().ok().and_then(|status| u8::try_from(status.code()?).ok());
            return Err(explain_exit(host, remote_command, status));
        }
        Ok(Self { client: Client::over(ours.into()), ssh, host: host.to_owned() })
    }

    /// Adds to an error on which machine it may have happened.
    pub(super) fn explain(&mut self, error: Error) -> Error {
        match self.ssh.try_wait() {
            Ok(Some(_)) => Error::failed(format!("the connection to {} was lost", self.host))
                .with_hint("run the command again to copy the rest"),
            _ => error,
        }
    }

    /// Ends the connection.
    pub(super) fn close(self) {
        let Self { client, mut ssh, .. } = self;
        drop(client);
        let _ = ssh.wait();
    }
}

/// Reads up to the end of the greeting. Returns false if it does not come.
fn skip_to_greeting(mut stream: &UnixStream) -> bool {
    let mut seen = Vec::new();
    let mut byte = [0];
    // Byte by byte: what follows is for the client.
    while seen.len() < MAX_NOISE && matches!(stream.read(&mut byte), Ok(1)) {
        seen.push(byte[0]);
        if seen.ends_with(GREETING) {
            return true;
        }
    }
    false
}

fn explain_exit(host: &str, remote_command: &str, status: Option<u8>) -> Error {
    match status {
        Some(NOT_FOUND) => Error::new(exit::NOT_FOUND, format!("{remote_command} is not in PATH on {host}"))
            .with_hint("install Chorus there, or name it: --remote-command PATH"),
        Some(SSH_FAILED) => Error::failed(format!("failed to connect to {host}"))
            .with_hint(format!("check that this works: ssh {host}")),
        Some(exit::USAGE) => {
            Error::failed(format!("Chorus on {host} cannot sync")).with_hint("it is too old: update it there")
        }
        _ => Error::failed(format!("chorusctl failed on {host}"))
            .with_hint(format!("try there: ssh {host} chorusctl status")),
    }
}
