//! The certificates of this node, read again when their files change.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use chorus_base::error::{Error, Result};
use chorus_base::sync::Mutex;
use chorus_proto::ErrorKind;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig};

use crate::pem_files::FilesStamp;
use crate::settings::ClusterSettings;
use crate::settings_checks::{CheckState, Files, read_and_check};

/// Protocol that both sides name in the TLS handshake: a certificate of the same authority for another service is of no
/// use here.
pub(crate) const ALPN: &[u8] = b"chorus-peer";

/// Time between two looks at the files.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The certificates with which this node connects and listens. A renewal needs no restart: the files are compared with
/// what was read, at most once a second, before a handshake. New files that do not fit each other leave the earlier ones in use.
pub struct ClusterCredentials {
    settings: ClusterSettings,
    node: String,
    state: Mutex<State>,
}

struct State {
    current: Arc<TlsConfigs>,
    stamp: FilesStamp,
    looked_at: Instant,
}

/// Configurations of TLS from the files, for both directions.
pub(crate) struct TlsConfigs {
    pub(crate) server: Arc<ServerConfig>,
    pub(crate) client: Arc<ClientConfig>,
    /// Grows with each renewal.
    pub(crate) generation: u64,
}

impl ClusterCredentials {
    /// Reads the files of a node: blocks.
    ///
    /// # Errors
    /// `invalid_config` with what is wrong, as [`crate::check_settings`] says it.
    pub fn load(settings: &ClusterSettings, node: &str) -> Result<Self> {
        let stamp = FilesStamp::read(settings);
        let current = Arc::new(read(settings, node, 0)?);
        let state = State { current, stamp, looked_at: Instant::now() };
        Ok(Self { settings: settings.clone(), node: node.to_owned(), state: Mutex::new(state) })
    }

    /// The settings that it was loaded from.
    #[must_use]
    pub fn settings(&self) -> &ClusterSettings {
        &self.settings
    }

    /// The name of this node.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Returns what the files have now.
    pub(crate) async fn current(self: &Arc<Self>) -> Arc<TlsConfigs> {
        {
            let mut state = self.state.lock();
            if state.looked_at.elapsed() < LOOK_INTERVAL {
                return state.current.clone();
            }
            state.looked_at = Instant::now();
        }
        let credentials = self.clone();
        let _ = chorus_runtime::spawn_blocking(move || credentials.look()).await;
        self.state.lock().current.clone()
    }

    /// How often the files were read again and taken into use, without a look at them.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.state.lock().current.generation
    }

    /// Reads the files if they have changed: blocks.
    fn look(&self) {
        let stamp = FilesStamp::read(&self.settings);
        let generation = {
            let state = self.state.lock();
            if state.stamp == stamp {
                return;
            }
            state.current.generation + 1
        };
        let renewed = read(&self.settings, &self.node, generation);
        let mut state = self.state.lock();
        state.stamp = stamp;
        match renewed {
            Ok(renewed) => {
                tracing::info!("the certificate of this node was read again");
                state.current = Arc::new(renewed);
            }
            // The files of a renewal may be replaced one after the other: the next change is read again.
            Err(failure) => tracing::warn!(%failure, "the new certificate is not used, the earlier one stays in use"),
        }
    }
}

impl fmt::Debug for ClusterCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterCredentials").field("node", &self.node).finish_non_exhaustive()
    }
}

fn read(settings: &ClusterSettings, node: &str, generation: u64) -> Result<TlsConfigs> {
    let (checks, files) = read_and_check(settings, node, SystemTime::now());
    match (files, checks.into_iter().find(|check| check.state == CheckState::Failed)) {
        (Some(files), _) => configs(files, generation).map_err(|e| invalid(&format!("the certificate: {e}"))),
        (None, Some(check)) => {
            let failure = invalid(&format!("cannot use `{}` of [cluster]: {}", check.setting, check.text));
            Err(Error { hint: check.hint, ..failure })
        }
        (None, None) => Err(Error::internal("a certificate failed no check and is not usable")),
    }
}

fn invalid(what: &str) -> Error {
    Error::new(ErrorKind::InvalidConfig, what)
}

/// TLS 1.3 only, without resumption: each connection checks the certificates of both sides.
fn configs(files: Files, generation: u64) -> Result<TlsConfigs, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(files.roots.clone(), provider.clone()).build();
    let verifier = verifier.map_err(|e| rustls::Error::General(e.to_string()))?;
    let server = ServerConfig::builder_with_provider(provider.clone()).with_protocol_versions(&[&TLS13])?;
    let server = server.with_client_cert_verifier(verifier);
    let mut server = server.with_single_cert(files.chain.clone(), files.key.clone_key())?;
    server.alpn_protocols = vec![ALPN.to_vec()];
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;
    let client = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13])?;
    let client = client.with_root_certificates(files.roots);
    let mut client = client.with_client_auth_cert(files.chain, files.key)?;
    client.alpn_protocols = vec![ALPN.to_vec()];
    client.resumption = Resumption::disabled();
    Ok(TlsConfigs { server: Arc::new(server), client: Arc::new(client), generation })
}
