//! Connections to the database.

use std::fmt;
use std::future::poll_fn;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use deadpool_postgres::{Connect, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime};
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::{AsyncMessage, Client, Config, Connection};

use crate::connect_errors::{Attempt, MIN_SERVER_VERSION};
use crate::errors::unavailable;
use crate::route::{DIRECT_QUERY, KnownRoute, Route, refused_options, startup_options};
use crate::ssl_params::{SslMode, SslParams, take_ssl_params};
use crate::tls::TlsConnector;

/// Time after which an attempt to connect to one address is given up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time after which an attempt to connect and log in is given up, whatever it waits for.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Time after which the kernel ends a connection on which what was sent is not acknowledged. Longer than a statement waits for a
/// lock: the server may read nothing more in that time.
const STALL_LIMIT: Duration = Duration::from_secs(15);

/// Time without traffic after which the kernel asks whether the server is there, and between two questions.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);

/// Limit of connections that read.
const MAX_READERS: usize = 4;

/// Limit of the connections of a node: those that read, the writer, the heartbeat, and one that waits for news of Discord.
pub(crate) const MAX_CONNECTIONS: u32 = MAX_READERS as u32 + 3;

/// Called with the payload of each notification that a connection receives.
pub(crate) type OnNotification = Box<dyn Fn(&str) + Send + Sync>;

/// Is told the channel and the payload of a notification.
pub(crate) type Told = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// The address of the database with its password, which no message and no log shows.
#[derive(Clone)]
pub struct DatabaseUrl {
    config: Config,
    mode: SslMode,
    ssl: SslParams,
    route: KnownRoute,
}

impl DatabaseUrl {
    /// Parses `postgresql://USER:PASSWORD@HOST:PORT/DATABASE` or `key=value` pairs, as libpq does. `sslmode` is one of
    /// `disable`, `prefer`, `require`, `verify-ca` and `verify-full`. Without it, a Unix socket and an address of this
    /// machine are `prefer`, others `verify-full`.
    ///
    /// # Errors
    /// Fails if it is neither, or names no host. The error does not repeat the text.
    pub fn parse(text: &str) -> Result<Self> {
        let invalid = |what: String| {
            Error::new(ErrorKind::InvalidConfig, what)
                .hint("for example postgresql://chorus:PASSWORD@db.example.org/chorus")
        };
        let (rest, ssl) = take_ssl_params(text.trim()).map_err(invalid)?;
        let mut config = Config::from_str(rest.trim_end_matches(['?', '&']))
            .map_err(|_| invalid("the URL of PostgreSQL cannot be parsed".to_owned()))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(invalid("the URL of PostgreSQL has no host".to_owned()));
        }
        let mode = ssl.mode.unwrap_or_else(|| SslMode::default_of(&config));
        config.ssl_mode(match mode {
            SslMode::Disable => tokio_postgres::config::SslMode::Disable,
            SslMode::Prefer => tokio_postgres::config::SslMode::Prefer,
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => tokio_postgres::config::SslMode::Require,
        });
        // Of several servers, the one that accepts writes: what a standby shows may be old.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.application_name("chorusd").connect_timeout(CONNECT_TIMEOUT);
        // Else a write over a cable that was cut waits for many minutes, while heartbeats go on over new connections.
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(STALL_LIMIT);
        }
        if config.get_keepalives_interval().is_none() {
            config.keepalives_idle(KEEPALIVE_IDLE).keepalives_interval(KEEPALIVE_INTERVAL);
        }
        Ok(Self { config, mode, ssl, route: KnownRoute::default() })
    }

    /// Connects once. The connection ends when the client is dropped.
    ///
    /// # Errors
    /// Fails if the database cannot be reached, is too old, accepts no writes, or refuses the user.
    pub async fn connect(&self) -> Result<Client> {
        self.connect_and_listen(Box::new(|_| ())).await
    }

    /// Does the same. Whatever the connection listens to is passed on.
    ///
    /// # Errors
    /// As [`DatabaseUrl::connect`].
    pub(crate) async fn connect_and_listen(&self, on_notification: OnNotification) -> Result<Client> {
        let attempt = Attempt { config: &self.config, mode: self.mode };
        let tls = self.tls().await?;
        let told: Told = Arc::new(move |_, payload| on_notification(payload));
        let dialed =
            tokio::time::timeout(LOGIN_TIMEOUT, self.dial(&tls, Some(told))).await.map_err(|_| attempt.timed_out())?;
        let (client, _) = dialed.map_err(|failure| attempt.explain(&failure))?;
        Ok(client)
    }

    /// How the connections that were made so far reach the server.
    pub(crate) fn route(&self) -> Route {
        self.route.get()
    }

    /// Refuses a server that is too old.
    ///
    /// # Errors
    /// Fails if it is, or cannot be asked.
    pub async fn check_version(&self, client: &Client) -> Result<()> {
        let sql = "SELECT current_setting('server_version_num')::int";
        let row = client.query_typed_one(sql, &[]).await.map_err(unavailable)?;
        let version = row.get(0);
        if version < MIN_SERVER_VERSION {
            return Err(Attempt { config: &self.config, mode: self.mode }.too_old(version));
        }
        Ok(())
    }

    async fn tls(&self) -> Result<TlsConnector> {
        let (mode, ssl) = (self.mode, self.ssl.clone());
        chorus_runtime::run_blocking(move || TlsConnector::new(mode, &ssl)).await
    }

    /// Connects, and finds out whether a pooler is on the way.
    async fn dial(
        &self,
        tls: &TlsConnector,
        told: Option<Told>,
    ) -> Result<(Client, JoinHandle<()>), tokio_postgres::Error> {
        let mut direct = self.config.clone();
        direct.options(startup_options(self.config.get_options()));
        let config = if self.route() == Route::Direct { &direct } else { &self.config };
        let connected = match config.connect(tls.clone()).await {
            Err(failure) if refused_options(&failure) => {
                self.route.set_pooled();
                self.config.connect(tls.clone()).await
            }
            connected => connected,
        };
        let (client, connection) = connected?;
        let task = chorus_runtime::spawn(async move {
            let ended = match told {
                None => connection.await,
                Some(told) => tell_notifications(connection, told).await,
            };
            if let Err(failure) = ended {
                tracing::debug!("a connection to PostgreSQL ended: {failure}");
            }
        });
        if self.route() == Route::Direct {
            let row = client.query_typed_one(DIRECT_QUERY, &[]).await?;
            if row.get::<_, Option<bool>>(0) != Some(true) {
                self.route.set_pooled();
            }
        }
        Ok((client, task))
    }

    /// Creates the pool of connections that read. Connects when they are needed.
    pub(crate) async fn reader_pool(&self) -> Result<Readers> {
        let connect = ReaderConnect { url: self.clone(), tls: self.tls().await? };
        let manager_config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_connect(self.config.clone(), connect, manager_config);
        let pool = Pool::builder(manager).max_size(MAX_READERS).runtime(Runtime::Tokio1);
        let pool = pool.create_timeout(Some(LOGIN_TIMEOUT)).build().map_err(|e| Error::internal(e.to_string()))?;
        Ok(Readers { pool, url: self.clone() })
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseUrl").finish_non_exhaustive()
    }
}

/// Drives a connection to its end, and passes on what it is notified of.
async fn tell_notifications<S, T>(mut connection: Connection<S, T>, told: Told) -> Result<(), tokio_postgres::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
        if let AsyncMessage::Notification(notification) = message? {
            told(notification.channel(), notification.payload());
        }
    }
    Ok(())
}

/// Connections that read.
#[derive(Debug, Clone)]
pub(crate) struct Readers {
    pool: Pool,
    url: DatabaseUrl,
}

impl Readers {
    /// Returns a connection, which goes back when it is dropped.
    pub(crate) async fn get(&self) -> Result<Object> {
        let attempt = Attempt { config: &self.url.config, mode: self.url.mode };
        self.pool.get().await.map_err(|failure| match failure {
            PoolError::Backend(failure) => attempt.explain(&failure),
            PoolError::Timeout(_) => attempt.timed_out(),
            other => unavailable(other),
        })
    }

    /// Opens another connection, which listens as `sql` says until it ends. `told` gets the channel and the payload of each
    /// notification. Returns false without listening if a pooler is on the way.
    pub(crate) async fn listen(&self, sql: &str, told: Told) -> Result<bool> {
        let attempt = Attempt { config: &self.url.config, mode: self.url.mode };
        let tls = self.url.tls().await?;
        let dialed = tokio::time::timeout(LOGIN_TIMEOUT, self.url.dial(&tls, Some(told))).await;
        let (client, task) = dialed.map_err(|_| attempt.timed_out())?.map_err(|failure| attempt.explain(&failure))?;
        if self.route() == Route::Pooled {
            return Ok(false);
        }
        client.batch_execute(sql).await.map_err(unavailable)?;
        // It ends with the connection.
        let _ = task.await;
        drop(client);
        Ok(true)
    }

    /// How the connections reach the server.
    pub(crate) fn route(&self) -> Route {
        self.url.route()
    }
}

/// Connects for the pool.
struct ReaderConnect {
    url: DatabaseUrl,
    tls: TlsConnector,
}

impl Connect for ReaderConnect {
    fn connect(&self, _: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), tokio_postgres::Error>> {
        Box::pin(self.url.dial(&self.tls, None))
    }
}
