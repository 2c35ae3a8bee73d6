//! TLS of every connection: rustls with ring, and the certificates that the machine trusts.

#![warn(unreachable_pub)]

use std::sync::{Arc, LazyLock};

use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, RootCertStore};

static ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(load_roots);
static CONFIG: LazyLock<ClientConfig> = LazyLock::new(build_config);

/// Makes ring the cryptography of the process, for libraries that make their own configuration. Further calls do
/// nothing.
pub fn install_provider() {
    if CryptoProvider::get_default().is_none() {
        // Fails only if another thread was faster.
        let _ = ring::default_provider().install_default();
    }
}

/// Returns the configuration of a client. The first call reads the machine's certificates (`SSL_CERT_FILE` and
/// `SSL_CERT_DIR` replace them) and blocks. On a machine without any, no server is trusted, but servers without TLS can
/// still be reached.
#[must_use]
pub fn client_config() -> ClientConfig {
    CONFIG.clone()
}

/// Returns the certificates that the machine trusts. The first call reads them and blocks.
#[must_use]
pub fn machine_roots() -> Arc<RootCertStore> {
    ROOTS.clone()
}

fn load_roots() -> Arc<RootCertStore> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (_, unusable) = roots.add_parsable_certificates(found.certs);
    if roots.is_empty() || unusable > 0 {
        tracing::debug!(usable = roots.len(), unusable, errors = ?found.errors, "certificates of the machine");
    }
    Arc::new(roots)
}

fn build_config() -> ClientConfig {
    install_provider();
    ClientConfig::builder().with_root_certificates(machine_roots()).with_no_client_auth()
}
