//! Connections to the database.

use std::fmt;
use std::str::FromStr as _;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use tokio_postgres::{Client, Config, NoTls};

use crate::errors::unavailable;

/// Time after which an attempt to connect is given up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Limit of connections that read.
const MAX_READERS: usize = 4;

/// Settings of each connection. The database ends a transaction that stays open without a statement, which would keep an
/// agent's row locked, and notices a node that is gone.
const SETTINGS: &str = "-c idle_in_transaction_session_timeout=5s -c lock_timeout=10s -c tcp_user_timeout=10s \
    -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3 \
    -c default_transaction_isolation=read\\ committed";

/// The address of the database with its password, which no message and no log shows.
#[derive(Clone)]
pub struct DatabaseUrl {
    config: Config,
}

impl DatabaseUrl {
    /// Parses `postgresql://USER:PASSWORD@HOST:PORT/DATABASE` or `key=value` pairs, as libpq does.
    ///
    /// # Errors
    /// Fails if it is neither. The error does not repeat the text.
    pub fn parse(text: &str) -> Result<Self> {
        let mut config = Config::from_str(text.trim()).map_err(|_| {
            Error::new(ErrorKind::InvalidConfig, "the URL of PostgreSQL cannot be parsed")
                .hint("for example postgresql://chorus:PASSWORD@db.example.org/chorus")
        })?;
        let settings = match config.get_options() {
            Some(given) => format!("{SETTINGS} {given}"),
            None => SETTINGS.to_owned(),
        };
        config.options(settings).application_name("chorusd").connect_timeout(CONNECT_TIMEOUT);
        Ok(Self { config })
    }

    /// Connects once. The connection ends when the client is dropped.
    ///
    /// # Errors
    /// Fails if the database cannot be reached or refuses the user.
    pub async fn connect(&self) -> Result<Client> {
        let (client, connection) = self.config.connect(NoTls).await.map_err(unavailable)?;
        chorus_runtime::spawn(async move {
            if let Err(failure) = connection.await {
                tracing::debug!("a connection to PostgreSQL ended: {failure}");
            }
        });
        Ok(client)
    }

    /// Creates the pool of connections that read. Connects when they are needed.
    pub(crate) fn reader_pool(&self) -> Result<Pool> {
        let manager =
            Manager::from_config(self.config.clone(), NoTls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
        Pool::builder(manager).max_size(MAX_READERS).build().map_err(|e| Error::internal(e.to_string()))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseUrl").finish_non_exhaustive()
    }
}
