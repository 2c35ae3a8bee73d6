//! Failed attempts to connect, in words for whoever runs the daemon. No word of them comes from the password.

use std::error::Error as _;
use std::io;

use chorus_base::error::Error;
use chorus_proto::ErrorKind;
use rustls::CertificateError;
use tokio_postgres::Config;
use tokio_postgres::config::Host;
use tokio_postgres::error::{DbError, SqlState};

use crate::ssl_params::SslMode;

/// Oldest version that is used, as the server tells it: 14.0.
pub(crate) const MIN_SERVER_VERSION: i32 = 140_000;

/// An attempt to connect: what its errors name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt<'a> {
    pub(crate) config: &'a Config,
    pub(crate) mode: SslMode,
}

impl Attempt<'_> {
    /// The hosts with their ports, as an error shows them.
    fn server(&self) -> String {
        let ports = self.config.get_ports();
        let port = |place: usize| ports.get(place).or_else(|| ports.first()).copied().unwrap_or(5432);
        let mut servers: Vec<_> = self
            .config
            .get_hosts()
            .iter()
            .enumerate()
            .map(|(place, host)| match host {
                Host::Tcp(name) if name.contains(':') => format!("[{name}]:{}", port(place)),
                Host::Tcp(name) => format!("{name}:{}", port(place)),
                Host::Unix(path) => format!("{}/.s.PGSQL.{}", path.display(), port(place)),
            })
            .collect();
        if servers.is_empty() {
            let addresses = self.config.get_hostaddrs().iter().enumerate();
            servers = addresses.map(|(place, ip)| std::net::SocketAddr::new(*ip, port(place)).to_string()).collect();
        }
        format!("PostgreSQL at {}", servers.join(", "))
    }

    fn user(&self) -> &str {
        self.config.get_user().unwrap_or("that runs chorusd")
    }

    fn error(&self, what: &str, hint: &str) -> Error {
        Error::new(ErrorKind::StorageUnavailable, format!("{} {what}", self.server())).hint(hint)
    }

    /// The error of a server that does not answer in time.
    pub(crate) fn timed_out(&self) -> Error {
        self.error(
            "does not answer",
            "check the host of the URL, the network and the firewall; through a pooler, its pool size",
        )
    }

    /// The error of a server of an old version, such as 130004.
    pub(crate) fn too_old(&self, version: i32) -> Error {
        let what = format!("is too old: version {}.{}", version / 10_000, version % 10_000);
        let hint = format!("use PostgreSQL {} or newer", MIN_SERVER_VERSION / 10_000);
        Error { kind: ErrorKind::Unsupported, ..self.error(&what, &hint) }
    }

    /// Explains why the driver could not connect.
    pub(crate) fn explain(&self, failure: &tokio_postgres::Error) -> Error {
        if let Some(known) = failure.as_db_error() {
            return self.explain_refusal(known);
        }
        let Some(source) = failure.source() else {
            let what = format!("ended the connection: {failure}");
            return self.error(&what, "check that the port of the URL is that of PostgreSQL, and see its log");
        };
        if let Some(io_failure) = source.downcast_ref::<io::Error>() {
            // The driver has no other name for what failed after the connection stood.
            let is_connected = failure.to_string().starts_with("error communicating");
            return match io_failure.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
                Some(failure) => self.explain_tls(failure),
                None => self.explain_io(io_failure, is_connected),
            };
        }
        let text = source.to_string();
        match &*text {
            "password missing" => {
                let what = format!("asks for the password of the user {:?}", self.user());
                self.error(&what, "add it to the URL: postgresql://USER:PASSWORD@HOST/DATABASE")
            }
            "server does not support TLS" => self.error(
                &format!("does not offer TLS, which sslmode={} requires", self.mode.name()),
                "set ssl = on in postgresql.conf; if the network is trusted, add sslmode=disable to the URL",
            ),
            "server did not use channel binding" => self.error(
                "did not bind the password to its certificate, which channel_binding=require demands",
                "use TLS and the password method scram-sha-256, or remove channel_binding from the URL",
            ),
            _ => self.error(
                &format!("cannot be used: {failure}: {text}"),
                "check that the port of the URL is that of PostgreSQL, and see its log",
            ),
        }
    }

    fn explain_io(&self, failure: &io::Error, is_connected: bool) -> Error {
        match failure.kind() {
            io::ErrorKind::ConnectionRefused => self.error(
                "refuses connections: nothing listens there",
                "check that PostgreSQL is running, and the host and port of the URL",
            ),
            io::ErrorKind::NotFound => self.error(
                "cannot be reached: that socket does not exist",
                "check that PostgreSQL is running, and the directory in the URL",
            ),
            io::ErrorKind::TimedOut => self.timed_out(),
            // The driver asks the server whether it allows writes.
            io::ErrorKind::PermissionDenied if failure.get_ref().is_some() => self.error(
                "is a standby or read-only: it accepts no writes",
                "use the address of the primary server, or list all servers in the URL, separated by commas",
            ),
            io::ErrorKind::PermissionDenied => {
                self.error("has a socket that this user may not open", "check the permissions of its directory")
            }
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => self.error(
                "ended the connection during the login",
                "check that the port of the URL is that of PostgreSQL, and see its log",
            ),
            _ if is_connected => self.error(
                &format!("does not answer as PostgreSQL does: {failure}"),
                "check that the port of the URL is that of PostgreSQL",
            ),
            _ => self.error(&format!("cannot be reached: {failure}"), "check the host of the URL and the network"),
        }
    }

    /// Explains an error that the server sent, or a pooler in front of it.
    fn explain_refusal(&self, known: &DbError) -> Error {
        let (code, message, user) = (known.code(), known.message(), self.user());
        let database = self.config.get_dbname().unwrap_or(user);
        if *code == SqlState::INVALID_PASSWORD
            || message.contains("password authentication failed")
            || message.contains("SASL authentication failed")
        {
            let what = format!("refused the password of the user {user:?}");
            return self.error(&what, "check user and password in the URL; the server's log says more");
        }
        if message.contains("pg_hba.conf") {
            let hint = if message.contains("no encryption") && self.mode != SslMode::VerifyFull {
                "the server may demand TLS: add sslmode=verify-full to the URL, or change pg_hba.conf"
            } else {
                "add a line for this user, database and host to pg_hba.conf"
            };
            return self.error(&format!("does not let the user {user:?} connect: {message}"), hint);
        }
        let is_missing = message.contains("no such database")
            || (message.contains("database \"") && message.contains("does not exist"));
        if *code == SqlState::INVALID_CATALOG_NAME || is_missing {
            let what = format!("has no database {database:?}");
            let hint = format!("create it: CREATE DATABASE {database} ENCODING 'UTF8' TEMPLATE template0");
            return self.error(&what, &hint);
        }
        if *code == SqlState::TOO_MANY_CONNECTIONS || message.contains("no more connections allowed") {
            return self.error(
                &format!("has no free connection: {message}"),
                "raise max_connections, or connect through pgbouncer in transaction mode",
            );
        }
        if *code == SqlState::CANNOT_CONNECT_NOW {
            return self.error(&format!("does not accept connections now: {message}"), "try again in a moment");
        }
        if message.contains("unrecognized configuration parameter") {
            let hint = format!("use PostgreSQL {} or newer", MIN_SERVER_VERSION / 10_000);
            return Error { kind: ErrorKind::Unsupported, ..self.error(&format!("is too old: {message}"), &hint) };
        }
        if message.contains("unsupported startup parameter") {
            return self.error(
                &format!("is reached through a pooler that refuses a part of the URL: {message}"),
                "remove `options` from the URL, or add the parameter to ignore_startup_parameters of pgbouncer",
            );
        }
        self.error(&format!("refused the connection: {message}"), "see the log of the database")
    }

    /// Explains a failed handshake.
    fn explain_tls(&self, failure: &rustls::Error) -> Error {
        let mode = self.mode.name();
        let rustls::Error::InvalidCertificate(failure) = failure else {
            return self
                .error(&format!("and chorusd could not agree on TLS: {failure}"), "see the log of the database");
        };
        match failure {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => self.error(
                &format!("has a certificate that has expired, which sslmode={mode} refuses"),
                "renew the certificate of the server; check the clocks",
            ),
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => self.error(
                &format!("has a certificate that is not valid yet, which sslmode={mode} refuses"),
                "check the clocks of this machine and of the server",
            ),
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => self.error(
                "has a certificate for another host, which sslmode=verify-full refuses",
                "use the name that is in the certificate's subjectAltName, or sslmode=verify-ca if any host of that authority will do",
            ),
            // A bad signature: an authority of the same name signed it.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => self.error(
                &format!("has a certificate of an authority that is not trusted, which sslmode={mode} refuses"),
                "set sslrootcert in the URL to the file of the server's authority",
            ),
            // The only text for a certificate that may sign others and stands for a server.
            failure if failure.to_string().contains("CaUsedAsEndEntity") => self.error(
                &format!("has the certificate of an authority as its own, which sslmode={mode} refuses"),
                "give the server a certificate with basicConstraints=CA:FALSE",
            ),
            failure => self.error(
                &format!("has a certificate that sslmode={mode} refuses: {failure}"),
                "replace the certificate of the server, or set sslrootcert in the URL",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_an_old_version_is_named_with_what_is_needed() {
        let config = "host=db.example.org port=5433 password=geheim".parse().expect("a configuration");
        let failure = Attempt { config: &config, mode: SslMode::VerifyFull }.too_old(130_004);
        assert_eq!(failure.to_string(), "PostgreSQL at db.example.org:5433 is too old: version 13.4");
        assert_eq!(
            (failure.kind, failure.hint.as_deref()),
            (ErrorKind::Unsupported, Some("use PostgreSQL 14 or newer"))
        );
    }
}
