//! The daemon that a program talks with: that of this machine, or of another one.

use std::io;
use std::sync::Arc;

use chorus_proto::Client;
use chorus_proto::paths::InstancePaths;

use crate::host::Host;
use crate::ssh::Prompts;

/// Address of a daemon. Cheap to clone.
#[derive(Debug, Clone)]
pub enum DaemonAddress {
    /// The daemon of this machine.
    Local(Arc<InstancePaths>),
    /// The daemon of another machine.
    Remote(Arc<Host>),
}

impl DaemonAddress {
    /// Connects without asking for anything. Starts no daemon on this machine; on another one `chorusctl` starts it, unless the host
    /// says otherwise.
    ///
    /// # Errors
    /// That of [`Client::connect_to`], or a [`crate::RemoteError`].
    pub fn connect(&self) -> io::Result<Client> {
        match self {
            Self::Local(places) => Client::connect_to(places),
            Self::Remote(host) => Ok(Client::over(host.connect(Prompts::Refuse)?)),
        }
    }

    /// Returns the other machine, if it is one.
    #[must_use]
    pub fn host(&self) -> Option<&Arc<Host>> {
        match self {
            Self::Local(_) => None,
            Self::Remote(host) => Some(host),
        }
    }
}

impl From<InstancePaths> for DaemonAddress {
    fn from(places: InstancePaths) -> Self {
        Self::Local(Arc::new(places))
    }
}
