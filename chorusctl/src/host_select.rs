//! Selects the machine whose daemon is used: `--host`, else `$CHORUS_HOST`, else this one.

use std::sync::Arc;

use chorus_proto::{CallError, Client};
use chorus_remote::{DaemonAddress, Host, Prompts, RemoteError};

use crate::app::App;
use crate::error::Error;

/// Returns the name of the host.
fn named_host(app: &App) -> Option<String> {
    if let Some(name) = &app.global.host {
        return Some(name.clone());
    }
    // A socket on the command line is one of this machine.
    if app.global.socket.is_some() {
        return None;
    }
    std::env::var("CHORUS_HOST").ok().filter(|name| !name.is_empty())
}

/// Finds the host that a run concerns; `None` for this machine.
///
/// # Errors
/// The name or the configuration cannot be used.
pub(crate) fn find(app: &App) -> Result<Option<Arc<Host>>, Error> {
    let Some(name) = named_host(app) else { return Ok(None) };
    if app.global.socket.is_some() {
        return Err(Error::usage("--socket is for this machine, --host for another one")
            .with_hint("name a socket there in config.toml: [hosts.NAME] with socket = \"/PATH\""));
    }
    let host = Host::find(&name, app.paths()?).map_err(|error| error_of(&error))?.with_timeout(app.global.timeout);
    Ok(Some(Arc::new(if app.global.no_autostart { host.without_autostart() } else { host })))
}

/// Returns true if variables that name an agent or a conversation are meant for the daemon that is used. Those of a shell on this
/// machine are not meant for one that only the command line names.
#[must_use]
pub(crate) fn has_own_variables(app: &App) -> bool {
    app.global.host.is_none()
}

/// Connects to the daemon of a host. The user may be asked for a password.
pub(crate) fn connect(host: &Host, app: &App, prompts: Prompts) -> Result<Client, CallError> {
    let client = Client::over(host.connect(prompts)?);
    if app.global.timeout.is_some() {
        client.set_timeout(app.global.timeout)?;
    }
    Ok(client)
}

/// The error of a command if its host cannot be reached.
pub(crate) fn error_of(error: &RemoteError) -> Error {
    Error::new(error.status, error.message.clone()).with_hint(error.hint.clone())
}

impl App {
    /// Returns the host whose daemon is used; `None` for this machine.
    ///
    /// # Errors
    /// The name or the configuration cannot be used.
    pub fn host(&self) -> Result<Option<Arc<Host>>, Error> {
        if let Some(host) = self.found_host.get() {
            return Ok(host.clone());
        }
        let found = find(self)?;
        Ok(self.found_host.get_or_init(|| found).clone())
    }

    /// Returns true if the daemon of another machine is used.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self.host(), Ok(Some(_)))
    }

    /// Uses the daemon of this machine, whatever the environment says.
    pub fn ignore_host_variable(&mut self) {
        self.found_host = std::cell::OnceCell::from(None);
    }

    /// Starts no daemon, wherever it is.
    pub fn forbid_autostart(&mut self) {
        self.global.no_autostart = true;
        if let Ok(Some(host)) = self.host() {
            self.found_host = std::cell::OnceCell::from(Some(Arc::new(host.without_autostart())));
        }
    }

    /// Returns the address of the daemon.
    ///
    /// # Errors
    /// No home directory is known, or the host cannot be used.
    pub fn address(&self) -> Result<DaemonAddress, Error> {
        Ok(match self.host()? {
            Some(host) => DaemonAddress::Remote(host),
            None => self.paths()?.clone().into(),
        })
    }

    /// Refuses a command that concerns the installation of the machine it runs on, if another one is selected. `command` is what one
    /// types after `chorusctl`.
    ///
    /// # Errors
    /// Another machine is selected.
    pub fn refuse_host(&self, command: &str) -> Result<(), Error> {
        if self.host()?.is_none() {
            return Ok(());
        }
        let option = if self.global.host.is_some() { "--host" } else { "CHORUS_HOST" };
        // What is typed there is said as for all hints.
        Err(Error::usage(format!("`{command}` works on its own machine only, not with {option}"))
            .with_hint(format!("run it there: chorusctl {command}")))
    }

    /// Has a command that sets up this machine ignore CHORUS_HOST.
    ///
    /// # Errors
    /// The command line has --host.
    pub fn use_this_machine(&mut self, command: &str) -> Result<(), Error> {
        if self.global.host.is_some() {
            return self.refuse_host(command);
        }
        self.ignore_host_variable();
        Ok(())
    }

    /// Refuses a path that would be completed on this machine, if another one is selected.
    ///
    /// # Errors
    /// The path is relative, and the daemon is on another machine.
    pub fn check_remote_path(&self, path: &str) -> Result<(), Error> {
        let is_relative = !path.starts_with('/') && (path.contains('/') || matches!(path, "." | ".."));
        match self.host()? {
            Some(host) if is_relative => {
                Err(Error::usage(format!("{path} would be a directory of this machine, not of {}", host.name))
                    .with_hint(format!("write the whole path that it has on {}", host.name)))
            }
            _ => Ok(()),
        }
    }
}
