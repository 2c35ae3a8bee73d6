//! Chooses the cryptography of every TLS connection: rustls with ring. Certificates are checked against those of the
//! machine, by the HTTP and WebSocket clients themselves.

use rustls::crypto::{CryptoProvider, ring};

/// Makes ring the cryptography of the process. Call it before a client is built; further calls do nothing.
pub fn install_provider() {
    if CryptoProvider::get_default().is_none() {
        // Fails only if another thread was faster.
        let _ = ring::default_provider().install_default();
    }
}
