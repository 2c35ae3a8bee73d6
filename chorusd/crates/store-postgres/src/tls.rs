//! TLS to the database, by the one stack of the workspace.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use futures_util::future::BoxFuture;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::client::TlsStream as RustlsStream;

use crate::channel_binding::server_end_point;
use crate::ssl_params::{SslMode, SslParams};

/// Makes TLS connections, each checked as the mode demands.
#[derive(Clone)]
pub(crate) struct TlsConnector {
    config: Arc<ClientConfig>,
}

impl TlsConnector {
    /// Reads the trusted certificates that the mode needs: blocks.
    ///
    /// # Errors
    /// Fails if the file of `sslrootcert` cannot be read or has no certificate.
    pub(crate) fn new(mode: SslMode, params: &SslParams) -> Result<Self> {
        chorus_tls::install_provider();
        let names_are_checked = mode == SslMode::VerifyFull;
        let verifier: Arc<dyn ServerCertVerifier> = match (mode, &params.root_cert) {
            (SslMode::Disable | SslMode::Prefer, _) | (SslMode::Require, None) => Arc::new(Verifier { chain: None }),
            (SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull, file) => {
                let roots = match file {
                    Some(file) => Arc::new(read_roots(file)?),
                    None => chorus_tls::machine_roots(),
                };
                let provider = Arc::new(ring::default_provider());
                let chain = WebPkiServerVerifier::builder_with_provider(roots, provider).build().map_err(|e| {
                    Error::new(ErrorKind::InvalidConfig, format!("no certificate is trusted for PostgreSQL: {e}"))
                        .hint("set sslrootcert in the URL to the file of the server's authority")
                })?;
                if names_are_checked { chain } else { Arc::new(Verifier { chain: Some(chain) }) }
            }
        };
        let config = ClientConfig::builder().dangerous().with_custom_certificate_verifier(verifier);
        Ok(Self { config: Arc::new(config.with_no_client_auth()) })
    }
}

fn read_roots(file: &Path) -> Result<RootCertStore> {
    let failed = |what: String| {
        Error::new(ErrorKind::InvalidConfig, format!("cannot use sslrootcert {}: {what}", file.display()))
            .hint("it must be a file with certificates in PEM")
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|e| failed(e.to_string()))? {
        roots.add(certificate.map_err(|e| failed(e.to_string()))?).map_err(|e| failed(e.to_string()))?;
    }
    if roots.is_empty() { Err(failed("no certificate is in it".to_owned())) } else { Ok(roots) }
}

/// Checks less than rustls does: the authority but not the name, or nothing.
#[derive(Debug)]
struct Verifier {
    /// Checks the authority; `None` for the modes that check nothing.
    chain: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // The name is checked last: all else was right.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = ring::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = ring::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for TlsConnector {
    type Stream = TlsSocket<S>;
    type TlsConnect = TlsHandshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<TlsHandshake> {
        Ok(TlsHandshake { config: self.config.clone(), host: host.to_owned() })
    }
}

/// A connection to one host that is to be made.
pub(crate) struct TlsHandshake {
    config: Arc<ClientConfig>,
    host: String,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for TlsHandshake {
    type Stream = TlsSocket<S>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TlsSocket<S>>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let name = ServerName::try_from(self.host).map_err(io::Error::other)?;
            tokio_rustls::TlsConnector::from(self.config).connect(name, stream).await.map(TlsSocket)
        })
    }
}

/// An encrypted connection.
pub(crate) struct TlsSocket<S>(RustlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for TlsSocket<S> {
    fn channel_binding(&self) -> ChannelBinding {
        let certificates = self.0.get_ref().1.peer_certificates();
        match certificates.and_then(|all| server_end_point(all.first()?)) {
            Some(hash) => ChannelBinding::tls_server_end_point(hash),
            None => ChannelBinding::none(),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsSocket<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsSocket<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
