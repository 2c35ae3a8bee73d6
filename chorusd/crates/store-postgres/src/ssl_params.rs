//! The parameters `sslmode` and `sslrootcert` of a URL, which the driver does not know in full.

use std::ops::Range;
use std::path::PathBuf;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// How a connection is encrypted and what is checked of the server, as libpq means it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SslMode {
    /// No TLS.
    Disable,
    /// TLS if the server offers it. Nothing is checked: whoever sits on the way can read and change everything.
    Prefer,
    /// TLS, or no connection. Nothing is checked, unless `sslrootcert` is given: then as `verify-ca`.
    Require,
    /// TLS with a certificate of a trusted authority, whatever host it names.
    VerifyCa,
    /// TLS with a certificate of a trusted authority that names the host of the URL.
    VerifyFull,
}

impl SslMode {
    const ALL: [Self; 5] = [Self::Disable, Self::Prefer, Self::Require, Self::VerifyCa, Self::VerifyFull];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }

    /// The mode of a URL that names none: `prefer` on this machine, else `verify-full`.
    pub(crate) fn default_of(config: &Config) -> Self {
        let is_local = |host: &Host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback()),
        };
        let addresses = config.get_hostaddrs();
        let all_local = addresses.iter().all(std::net::IpAddr::is_loopback)
            && (!addresses.is_empty() || config.get_hosts().iter().all(is_local));
        if all_local { Self::Prefer } else { Self::VerifyFull }
    }
}

/// The settings of TLS in a URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SslParams {
    pub(crate) mode: Option<SslMode>,
    /// File with trusted authorities in PEM; `None` or `system`: those of the machine.
    pub(crate) root_cert: Option<PathBuf>,
}

/// Takes the parameters out of `text`. Returns the rest, which the driver understands.
///
/// # Errors
/// A sentence without any part of the text but the value of the parameter.
pub(crate) fn take_ssl_params(text: &str) -> Result<(String, SslParams), String> {
    let found = if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        find_in_url(text)
    } else {
        find_in_pairs(text)
    };
    let mut params = SslParams::default();
    let mut rest = text.to_owned();
    for (span, key, value) in found.into_iter().rev() {
        match &*key {
            "sslmode" => {
                let mode = SslMode::ALL.into_iter().find(|mode| mode.name() == value).ok_or_else(|| {
                    let known = SslMode::ALL.map(SslMode::name).join(", ");
                    format!("the URL of PostgreSQL has an unknown sslmode; use one of {known}")
                })?;
                params.mode = params.mode.or(Some(mode));
            }
            "sslrootcert" if value != "system" => params.root_cert = params.root_cert.or(Some(value.into())),
            "sslrootcert" => {}
            _ => continue,
        }
        rest.replace_range(span, "");
    }
    Ok((rest, params))
}

type Found = Vec<(Range<usize>, String, String)>;

/// The parameters behind `?`. A user and a password may have a `?` in them, so the host comes first.
fn find_in_url(text: &str) -> Found {
    let host = text.find('@').map_or(0, |at| at + 1);
    let Some(query) = text.get(host..).and_then(|rest| rest.find('?')).map(|at| host + at + 1) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut start = query;
    for pair in text.get(query..).unwrap_or_default().split('&') {
        let end = (start + pair.len() + 1).min(text.len());
        if let Some((key, value)) = pair.split_once('=') {
            found.push((start..end, decode_percent(key), decode_percent(value)));
        }
        start = end;
    }
    found
}

/// `key=value` pairs. A value may be in single quotes; `\` escapes.
fn find_in_pairs(text: &str) -> Found {
    let mut found = Vec::new();
    let mut chars = text.char_indices().peekable();
    loop {
        while chars.next_if(|(_, c)| c.is_whitespace()).is_some() {}
        let Some(&(start, _)) = chars.peek() else { return found };
        let mut key = String::new();
        while let Some((_, c)) = chars.next_if(|(_, c)| *c != '=') {
            key.push(c);
        }
        chars.next();
        while chars.next_if(|(_, c)| c.is_whitespace()).is_some() {}
        let quoted = chars.next_if(|(_, c)| *c == '\'').is_some();
        let mut value = String::new();
        while let Some((_, c)) = chars.next_if(|(_, c)| if quoted { *c != '\'' } else { !c.is_whitespace() }) {
            value.extend(if c == '\\' { chars.next().map(|(_, escaped)| escaped) } else { Some(c) });
        }
        if quoted {
            chars.next();
        }
        let end = chars.peek().map_or(text.len(), |(at, _)| *at);
        found.push((start..end, key.trim().to_owned(), value));
    }
}

/// Replaces `%41` with `A`.
fn decode_percent(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()).filter(|_| first == b'%') {
            Some(decoded) => {
                bytes.push(decoded);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> (String, Option<SslMode>, Option<String>) {
        let (rest, params) = take_ssl_params(text).expect("parameters");
        (rest, params.mode, params.root_cert.map(|path| path.to_string_lossy().into_owned()))
    }

    #[test]
    fn parameters_are_taken_out_of_urls_and_pairs() {
        let ca = Some(SslMode::VerifyCa);
        let cases = [
            ("postgresql://u:p@h/d", "postgresql://u:p@h/d", None, None),
            ("postgresql://u:p@h/d?sslmode=verify-ca", "postgresql://u:p@h/d?", ca, None),
            ("postgresql://h?sslmode=verify-ca&port=1", "postgresql://h?port=1", ca, None),
            ("postgres://h/d?port=1&sslrootcert=%2Fa%20b&x=2", "postgres://h/d?port=1&x=2", None, Some("/a b")),
            ("postgresql://u:a?sslmode=x@h/d?sslmode=verify-ca", "postgresql://u:a?sslmode=x@h/d?", ca, None),
            ("host=h sslmode=verify-ca user=u", "host=h  user=u", ca, None),
            ("host=h sslrootcert = '/a \\'b' user=u", "host=h  user=u", None, Some("/a 'b")),
            ("password='a sslmode=no' sslrootcert=system", "password='a sslmode=no' ", None, None),
        ];
        for (text, rest, mode, root) in cases {
            assert_eq!(taken(text), (rest.to_owned(), mode, root.map(str::to_owned)), "{text}");
        }
        let refused = take_ssl_params("host=h password=geheim sslmode=allow").expect_err("an unknown mode");
        assert!(refused.contains("verify-full") && !refused.contains("geheim"), "{refused}");
    }

    #[test]
    fn servers_elsewhere_are_verified_by_default() {
        let local = ["host=/run/postgresql", "host=localhost", "host=127.0.0.1,::1", "host=db hostaddr=127.0.0.1"];
        let far = ["host=db.example.org", "host=10.0.0.1", "host=localhost,db", "host=localhost hostaddr=10.0.0.1"];
        let mode = |text: &str| SslMode::default_of(&text.parse().expect("a configuration"));
        for text in local {
            assert_eq!(mode(text), SslMode::Prefer, "{text}");
        }
        for text in far {
            assert_eq!(mode(text), SslMode::VerifyFull, "{text}");
        }
    }
}
