//! A host: its name on the command line, and what config.toml says about it.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use chorus_proto::paths::InstancePaths;
use chorus_proto::shell_word::shell_word;

use crate::config_table::{self, HostTable};
use crate::control_path;
use crate::error::RemoteError;
use crate::ssh::{Prompts, RemoteCommand, Ssh};

/// Exit status of an invalid command line.
const USAGE: u8 = 2;

/// The first line of the other end.
const GREETING: &str = "chorusctl daemon dial-stdio";

/// Another machine whose daemon is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// The name by which the user knows it.
    pub name: String,
    ssh: Ssh,
    command: String,
    home: Option<String>,
    socket: Option<String>,
    no_autostart: bool,
    /// The time in which a connection is made; `None`: the usual one.
    timeout: Option<Duration>,
}

impl Host {
    /// Finds the host in the configuration of this machine, or takes `name` for a destination of ssh.
    ///
    /// # Errors
    /// The name or the configuration cannot be used.
    pub fn find(name: &str, places: &InstancePaths) -> Result<Self, RemoteError> {
        let table = config_table::find(&places.config, name)?.unwrap_or_default();
        let HostTable { ssh, command, home, socket, rsh } = table;
        let destination = ssh.unwrap_or_else(|| name.to_owned());
        if !is_destination(&destination) || name.is_empty() {
            return Err(RemoteError::new(
                USAGE,
                format!("{destination:?} is not the name of a machine"),
                "as for ssh: --host USER@MACHINE, or a name from [hosts.NAME] of config.toml",
            ));
        }
        for (key, path) in [("home", &home), ("socket", &socket)] {
            if path.as_ref().is_some_and(|path| !path.starts_with('/')) {
                return Err(RemoteError::new(
                    USAGE,
                    format!("{}: `hosts.{name}.{key}` must be an absolute path", places.config.display()),
                    "write the path as it is on that machine, from / on",
                ));
            }
        }
        let directory = control_path::directory(places);
        Ok(Self {
            name: name.to_owned(),
            ssh: Ssh::new(destination, rsh, directory),
            command: command.unwrap_or_else(|| "chorusctl".to_owned()),
            home,
            socket,
            no_autostart: false,
            timeout: None,
        })
    }

    /// Returns the same host, on which no daemon is started.
    #[must_use]
    pub fn without_autostart(&self) -> Self {
        Self { no_autostart: true, ..self.clone() }
    }

    /// Returns the same host, to which a connection is made in this time or not at all.
    #[must_use]
    pub fn with_timeout(&self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self.clone() }
    }

    /// Connects to the daemon there.
    ///
    /// # Errors
    /// A [`RemoteError`]: ssh fails, or Chorus is not there or cannot be used.
    pub fn connect(&self, prompts: Prompts) -> io::Result<OwnedFd> {
        Ok(self.ssh.connect(&self.remote_command(), prompts, self.timeout)?)
    }

    /// Returns the command that a person types to run `command` of chorusctl there.
    #[must_use]
    pub fn shell_line(&self, command: &str) -> String {
        let destination = shell_word(self.ssh.destination()).into_owned();
        format!("ssh {destination} {} {command}", shell_word(&self.command))
    }

    fn remote_command(&self) -> RemoteCommand<'_> {
        let mut line = match &self.home {
            Some(home) => format!("env CHORUS_HOME={} ", shell_word(home)),
            None => String::new(),
        };
        line.push_str(&shell_word(&self.command));
        if let Some(socket) = &self.socket {
            line.push_str(&format!(" --socket {}", shell_word(socket)));
        }
        if self.no_autostart {
            line.push_str(" --no-autostart");
        }
        line.push_str(" --json daemon dial-stdio");
        RemoteCommand {
            host: &self.name,
            program: &self.command,
            line,
            greeting: GREETING,
            not_found_hint: format!(
                "install Chorus there, or name it in config.toml: [hosts.{}] with command = \"/PATH/chorusctl\"",
                quote_key(&self.name)
            ),
            too_old: "Chorus there is too old for --host",
        }
    }
}

/// Returns true if ssh takes the text for a machine, and not for an option.
fn is_destination(text: &str) -> bool {
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || "\"'`$\\;&|<>(){}*?!#".contains(c);
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('@') && !text.chars().any(is_odd)
}

/// Quotes a name as in a TOML table header, if necessary.
fn quote_key(name: &str) -> String {
    let is_bare = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if is_bare { name.to_owned() } else { format!("{name:?}") }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn places(dir: &Path) -> InstancePaths {
        InstancePaths {
            home: dir.into(),
            socket: dir.join("run/chorusd.sock"),
            config: dir.join("config.toml"),
            socket_is_explicit: false,
        }
    }

    fn line(name: &str, config: &str) -> Result<String, RemoteError> {
        let dir = tempfile::tempdir().map_err(|error| RemoteError::new(1, error.to_string(), ""))?;
        std::fs::write(dir.path().join("config.toml"), config).map_err(|e| RemoteError::new(1, e.to_string(), ""))?;
        let host = Host::find(name, &places(dir.path()))?;
        Ok(format!("{} {}", host.ssh.destination(), host.remote_command().line))
    }

    #[test]
    fn a_host_is_a_destination_or_a_table() {
        let known = "[hosts.desk]\nssh = \"mara@10.0.0.7\"\ncommand = \"/opt/my chorus/chorusctl\"\nhome = \"/srv/it's\"\nsocket = \"/run/c.sock\"\n";
        for (name, config, expected) in [
            ("mara@box", "", "mara@box chorusctl --json daemon dial-stdio"),
            ("ssh://mara@box:2222", known, "ssh://mara@box:2222 chorusctl --json daemon dial-stdio"),
            (
                "desk",
                known,
                "mara@10.0.0.7 env CHORUS_HOME='/srv/it'\\''s' '/opt/my chorus/chorusctl' --socket /run/c.sock --json daemon dial-stdio",
            ),
            ("desk", "[hosts.desk]\n", "desk chorusctl --json daemon dial-stdio"),
        ] {
            assert_eq!(line(name, config).as_deref(), Ok(expected), "{name}");
        }
    }

    #[test]
    fn options_and_unusable_tables_are_refused() {
        for (name, config, why) in [
            ("-oProxyCommand=id", "", "is not the name of a machine"),
            ("", "", "is not the name of a machine"),
            ("a b", "", "is not the name of a machine"),
            ("a;id", "", "is not the name of a machine"),
            ("mara@", "", "is not the name of a machine"),
            ("desk", "[hosts.desk]\nhome = \"rel\"\n", "`hosts.desk.home` must be an absolute path"),
            ("desk", "[hosts.desk]\nssh = \"-lroot\"\n", "is not the name of a machine"),
            ("desk", "[hosts.desk]\nshh = \"mara@desk\"\n", "`hosts.desk`: unknown field `shh`"),
            ("desk", "[hosts.desk\n", "config.toml: "),
        ] {
            let failure = line(name, config).expect_err(name);
            assert!(failure.message.contains(why) && failure.status == USAGE, "{failure:?}");
        }
    }
}
