//! How the daemon is reached: at its socket, or over ssh, where connections that are idle are used again.

use std::io;

use chorus_base::sync::Mutex;
use chorus_proto::client_async::AsyncClient;
use chorus_remote::{DaemonAddress, Prompts};

/// The limit on idle connections.
const MAX_IDLE: usize = 4;

/// The way to the daemon.
#[derive(Debug)]
pub(crate) struct DaemonLink {
    address: DaemonAddress,
    /// Connections over ssh that wait for a request. A new one starts two programs at the other end.
    idle: Mutex<Vec<AsyncClient>>,
}

impl DaemonLink {
    pub(crate) fn new(address: DaemonAddress) -> Self {
        Self { address, idle: Mutex::default() }
    }

    pub(crate) fn is_remote(&self) -> bool {
        self.address.host().is_some()
    }

    /// Makes a connection. A daemon of another machine is not started.
    pub(crate) async fn connect(&self) -> io::Result<AsyncClient> {
        match &self.address {
            DaemonAddress::Local(places) => AsyncClient::connect_to(places).await,
            DaemonAddress::Remote(host) => {
                let host = host.without_autostart();
                let dial = chorus_runtime::spawn_blocking(move || host.connect(Prompts::Refuse));
                AsyncClient::over(dial.await.map_err(io::Error::other)??)
            }
        }
    }

    /// Returns a connection that was used before.
    pub(crate) fn take_idle(&self) -> Option<AsyncClient> {
        self.idle.lock().pop()
    }

    /// Keeps a connection for a later request.
    pub(crate) fn give_back(&self, client: AsyncClient) {
        let mut idle = self.idle.lock();
        if self.is_remote() && idle.len() < MAX_IDLE {
            idle.push(client);
        }
    }
}
