//! Checks of the settings of a node's connections.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chorus_proto::pluralize::pluralize;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, RootCertStore};

use crate::certificates::{NODE_URI, date, describe, node_names};
use crate::pem_files::{FileProblem, read_authorities, read_chain, read_key};
use crate::settings::{ClusterSettings, address_problem, server_name};

/// Time before the end of a certificate from which on it is reported.
const RENEW_BEFORE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckState {
    Ok,
    /// It works, but not for long or not as intended.
    Warning,
    /// Nodes cannot connect.
    Failed,
}

/// One fact about a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingCheck {
    /// Key in the table `[cluster]`.
    pub setting: &'static str,
    pub state: CheckState,
    /// A sentence.
    pub text: String,
    /// The thing to do about it.
    pub hint: Option<String>,
}

impl SettingCheck {
    fn ok(setting: &'static str, text: impl Into<String>) -> Self {
        Self { setting, state: CheckState::Ok, text: text.into(), hint: None }
    }

    fn failed(setting: &'static str, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { setting, state: CheckState::Failed, text: text.into(), hint: Some(hint.into()) }
    }

    fn file(setting: &'static str, problem: FileProblem) -> Self {
        Self::failed(setting, problem.text, problem.hint)
    }
}

/// The contents of the three files, which fit each other.
pub(crate) struct Files {
    pub(crate) roots: Arc<RootCertStore>,
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// Checks the settings of a node at a time: reads the files, and blocks. Opens no port and no connection.
#[must_use]
pub fn check_settings(settings: &ClusterSettings, node: &str, now: SystemTime) -> Vec<SettingCheck> {
    read_and_check(settings, node, now).0
}

/// Does the same, and returns the files if nothing has failed.
pub(crate) fn read_and_check(
    settings: &ClusterSettings,
    node: &str,
    now: SystemTime,
) -> (Vec<SettingCheck>, Option<Files>) {
    let mut checks = vec![check_listen(&settings.listen)];
    let is_usable = address_problem(&settings.advertise).is_none();
    let host = server_name(&settings.advertise).filter(|_| is_usable).map(|(name, ..)| name);
    checks.push(check_advertise(&settings.advertise));
    let roots = read_authorities(&settings.ca).map_err(|problem| checks.push(SettingCheck::file("ca", problem))).ok();
    let chain = read_chain(&settings.cert).map_err(|problem| checks.push(SettingCheck::file("cert", problem))).ok();
    let key = read_key(&settings.key).map_err(|problem| checks.push(SettingCheck::file("key", problem))).ok();
    if let Some(roots) = &roots {
        checks.push(SettingCheck::ok("ca", pluralize(roots.len() as u64, "certificate")));
    }
    if let (Some(chain), Some(key)) = (&chain, &key) {
        checks.push(check_key(chain, key));
    }
    let roots = roots.map(Arc::new);
    if let (Some(roots), Some(chain)) = (&roots, &chain) {
        check_certificate(&mut checks, roots, chain, node, host.as_ref(), now);
    }
    let has_failed = checks.iter().any(|check| check.state == CheckState::Failed);
    let files = match (roots, chain, key) {
        (Some(roots), Some(chain), Some(key)) if !has_failed => Some(Files { roots, chain, key }),
        _ => None,
    };
    (checks, files)
}

fn check_listen(listen: &str) -> SettingCheck {
    // A name would need a lookup, which may block for long.
    match listen.parse::<SocketAddr>() {
        Ok(address) if address.to_socket_addrs().is_ok() => SettingCheck::ok("listen", listen),
        _ => {
            let text = format!("{listen:?} is not an IP address and a port");
            SettingCheck::failed("listen", text, "for example \"0.0.0.0:7700\"")
        }
    }
}

fn check_advertise(address: &str) -> SettingCheck {
    let Some(problem) = address_problem(address) else { return SettingCheck::ok("advertise", address) };
    let hint = "the host and the port at which other nodes reach this one, for example \"a.example.org:7700\"";
    SettingCheck::failed("advertise", format!("{address:?} is not a host and a port to connect to: {problem}"), hint)
}

fn check_key(chain: &[CertificateDer<'static>], key: &PrivateKeyDer<'static>) -> SettingCheck {
    let key = CertifiedKey::from_der(chain.to_vec(), key.clone_key(), &ring::default_provider());
    match key {
        Ok(_) => SettingCheck::ok("key", "fits the certificate"),
        Err(rustls::Error::InconsistentKeys(_)) => {
            let hint = "name the certificate and the key that were created together";
            SettingCheck::failed("key", "the key is not that of the certificate", hint)
        }
        Err(rustls::Error::InvalidCertificate(error)) => {
            let text = format!("the certificate cannot be used: {}", describe(&error));
            SettingCheck::failed("cert", text, "create the certificate again")
        }
        Err(error) => {
            let hint = "use a key of type ECDSA P-256 or P-384, Ed25519, or RSA with at least 2048 bits";
            SettingCheck::failed("key", format!("the key cannot be used: {error}"), hint)
        }
    }
}

fn check_certificate(
    checks: &mut Vec<SettingCheck>,
    roots: &Arc<RootCertStore>,
    chain: &[CertificateDer<'static>],
    node: &str,
    host: Option<&ServerName<'static>>,
    now: SystemTime,
) {
    let Some((leaf, between)) = chain.split_first() else { return };
    let now = unix_time(now);
    let before = checks.len();
    if let Err(error) = verify(roots, leaf, between, host, now) {
        checks.push(failed_certificate(&error, node, host));
    }
    if !node_names(leaf).iter().any(|name| name == node) {
        let text = format!("the certificate does not name this node: subjectAltName has no URI {NODE_URI}{node}");
        let hint = format!(
            "create it with chorusctl cluster cert {node}=HOST (elsewhere: subjectAltName = URI:{NODE_URI}{node})"
        );
        checks.push(SettingCheck::failed("cert", text, hint));
    }
    if checks.len() > before {
        return;
    }
    let later = UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs()) + RENEW_BEFORE);
    checks.push(match verify(roots, leaf, between, host, later) {
        Err(CertificateError::ExpiredContext { not_after, .. }) => SettingCheck {
            setting: "cert",
            state: CheckState::Warning,
            text: format!("the certificate expires on {}", date(not_after)),
            hint: Some("renew it; the daemon reads the new files without a restart".to_owned()),
        },
        _ => SettingCheck::ok("cert", format!("names {NODE_URI}{node}")),
    });
}

/// Checks a certificate as both sides of a connection do.
fn verify(
    roots: &Arc<RootCertStore>,
    leaf: &CertificateDer<'_>,
    between: &[CertificateDer<'_>],
    host: Option<&ServerName<'static>>,
    now: UnixTime,
) -> Result<(), CertificateError> {
    let provider = Arc::new(ring::default_provider());
    let certificate_error = |error: rustls::Error| match error {
        rustls::Error::InvalidCertificate(error) => error,
        _ => CertificateError::BadEncoding,
    };
    let client = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone()).build();
    let client = client.map_err(|_| CertificateError::UnknownIssuer)?;
    client.verify_client_cert(leaf, between, now).map_err(certificate_error)?;
    let Some(host) = host else { return Ok(()) };
    let server = WebPkiServerVerifier::builder_with_provider(roots.clone(), provider).build();
    let server = server.map_err(|_| CertificateError::UnknownIssuer)?;
    server.verify_server_cert(leaf, between, host, &[], now).map_err(certificate_error)?;
    Ok(())
}

fn failed_certificate(error: &CertificateError, node: &str, host: Option<&ServerName<'static>>) -> SettingCheck {
    let hint = match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "renew it; the daemon reads the new files without a restart".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "check the clock of this machine".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            let kind = if matches!(host, Some(ServerName::IpAddress(_))) { "IP" } else { "DNS" };
            let host = host.map(ServerName::to_str).unwrap_or_default();
            format!(
                "change `advertise`, or create it with chorusctl cluster cert {node}={host} (elsewhere: subjectAltName = {kind}:{host})"
            )
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "set `ca` to the authority that signed it, and put certificates between them behind it in `cert`".to_owned()
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            format!(
                "create it with chorusctl cluster cert {node}=HOST (elsewhere: extendedKeyUsage = serverAuth, clientAuth)"
            )
        }
        _ => "create the certificate again".to_owned(),
    };
    SettingCheck::failed("cert", format!("the certificate cannot be used: {}", describe(error)), hint)
}

fn unix_time(now: SystemTime) -> UnixTime {
    UnixTime::since_unix_epoch(now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}
