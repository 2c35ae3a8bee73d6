//! `[hosts.NAME]`: machines whose daemons `chorusctl --host NAME` uses. The daemon checks them only; `chorus-remote` reads them.

use super::provider::NamedTableKey;
use super::raw_value::RawConfigValue;

/// The configuration of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostConfig {
    pub ssh: Option<String>,
    pub command: Option<String>,
    pub home: Option<String>,
    pub socket: Option<String>,
    pub rsh: Option<String>,
}

impl HostConfig {
    /// Lists the keys that are set.
    pub(crate) fn to_entries(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let Self { ssh, command, home, socket, rsh } = self;
        let keys = [("ssh", ssh), ("command", command), ("home", home), ("socket", socket), ("rsh", rsh)];
        keys.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?)))
    }
}

/// The keys of `[hosts.NAME]`.
pub(crate) const HOST_KEYS: &[NamedTableKey<HostConfig>] = &[
    ("ssh", "Destination for ssh, as `USER@MACHINE` or `ssh://USER@MACHINE:PORT`. Unset: NAME.", |host, value| {
        let destination = text(value)?;
        if destination.starts_with('-') || destination.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err("must be the name of a machine, as for ssh".into());
        }
        host.ssh = Some(destination);
        Ok(())
    }),
    ("command", "`chorusctl` there, if it is not in `PATH`: `/home/mara/.local/bin/chorusctl`.", |host, value| {
        host.command = Some(text(value)?);
        Ok(())
    }),
    ("home", "`CHORUS_HOME` there, as an absolute path. Unset: that of its environment.", |host, value| {
        host.home = Some(absolute(value)?);
        Ok(())
    }),
    ("socket", "The daemon's socket there, as an absolute path. Unset: the usual one.", |host, value| {
        host.socket = Some(absolute(value)?);
        Ok(())
    }),
    ("rsh", "Command to use instead of `ssh`, in the words of a shell: `\"ssh -i ~/.ssh/chorus\"`.", |host, value| {
        host.rsh = Some(text(value)?);
        Ok(())
    }),
];

fn text(value: &RawConfigValue) -> Result<String, String> {
    let text = value.text()?;
    if text.trim().is_empty() { Err("must not be empty".into()) } else { Ok(text) }
}

fn absolute(value: &RawConfigValue) -> Result<String, String> {
    let path = text(value)?;
    if path.starts_with('/') { Ok(path) } else { Err("must be an absolute path".into()) }
}
