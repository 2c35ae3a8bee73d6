//! A connection to the daemon of another machine, over ssh.

use chorus_proto::Client;
use chorus_proto::shell_word::shell_word;
use chorus_remote::{Prompts, RemoteCommand, Ssh};

use crate::app::App;
use crate::error::Error;
use crate::host_select;

/// The first line of the other end. Text before it, for example of a login script, is skipped.
pub(super) const GREETING: &str = "chorusctl sync --serve";

/// The daemon of another machine.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) client: Client,
    host: String,
}

impl Remote {
    /// Connects to `host`.
    ///
    /// # Errors
    /// ssh fails, or Chorus is not there.
    pub(super) fn connect(app: &App, host: &str, rsh: &str, remote_command: &str) -> Result<Self, Error> {
        let ssh = Ssh::to_machine(host, rsh, app.paths()?).map_err(|error| host_select::error_of(&error))?;
        let command = RemoteCommand {
            host,
            program: remote_command,
            line: format!("{} sync --serve", shell_word(remote_command)),
            greeting: GREETING,
            not_found_hint: "install Chorus there, or name it: --remote-command PATH".to_owned(),
            too_old: "Chorus there is too old for sync",
        };
        let line = ssh.connect(&command, Prompts::Allow, None).map_err(|error| host_select::error_of(&error))?;
        Ok(Self { client: Client::over(line), host: host.to_owned() })
    }

    /// Says what to do if the connection to this machine was lost.
    pub(super) fn explain(&self, error: Error) -> Error {
        match error.is_connection_lost() {
            true => Error::failed(format!("the connection to {} was lost", self.host))
                .with_hint("run the command again to copy the rest"),
            false => error,
        }
    }
}
