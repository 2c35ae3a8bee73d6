//! How a bucket is reached. The key is read from the environment or from a file, and never printed.

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use chorus_base::Secret;
use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use url::{Host, Url};

use crate::key::Prefix;

/// Variables with the key, unless a file has it.
const KEY_ID_VARIABLE: &str = "CHORUS_S3_KEY_ID";
const SECRET_VARIABLE: &str = "CHORUS_S3_SECRET";

/// A key of a bucket.
#[derive(Debug, Clone)]
pub struct S3Key {
    pub id: String,
    pub secret: Secret,
}

/// How a bucket is reached.
#[derive(Debug, Clone)]
pub struct S3Settings {
    /// URL of a server that speaks S3; `None` is Amazon's.
    pub endpoint: Option<Url>,
    pub region: String,
    pub bucket: String,
    pub prefix: Prefix,
    /// True if the bucket is in the path of the URL, false if it is in the host.
    pub path_style: bool,
    pub key: S3Key,
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidConfig, message)
}

impl S3Key {
    /// Reads the key from a file of two lines `key_id = …` and `secret = …`, which only its owner may read, or else from
    /// the variables `CHORUS_S3_KEY_ID` and `CHORUS_S3_SECRET`. Blocks.
    ///
    /// # Errors
    /// `invalid_config`; the text never has a part of the key.
    pub fn load(file: Option<&Path>, variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let found = match file {
            Some(path) => Self::read(path)?,
            None => variable(KEY_ID_VARIABLE).zip(variable(SECRET_VARIABLE)),
        };
        let (id, secret) = found.filter(|(id, secret)| !id.is_empty() && !secret.is_empty()).ok_or_else(|| {
            let hint = format!(
                "set {KEY_ID_VARIABLE} and {SECRET_VARIABLE}, or name a file with `key_id = …` and `secret = …`"
            );
            invalid("no key for the bucket".into()).hint(hint)
        })?;
        Ok(Self { id, secret: Secret::new(secret) })
    }

    fn read(path: &Path) -> Result<Option<(String, String)>> {
        let failed = |e: std::io::Error| invalid(format!("cannot read {}: {e}", path.display()));
        let mode = path.metadata().map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            let hint = format!("chmod 600 {}", path.display());
            return Err(invalid(format!("others may read {}", path.display())).hint(hint));
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let value = |name: &str| {
            let mut pairs = text.lines().filter_map(|line| line.split_once('='));
            pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
        };
        Ok(value("key_id").zip(value("secret")))
    }
}

impl S3Settings {
    /// Checks the endpoint. `plain_host` is a host that may be reached over `http`, in addition to those of this machine.
    ///
    /// # Errors
    /// `invalid_config`.
    pub fn check_endpoint(text: &str, plain_host: Option<&str>) -> Result<Url> {
        let url: Url = text.parse().map_err(|e| invalid(format!("`{text}` is not a URL: {e}")))?;
        let host = url.host_str().unwrap_or_default();
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid(format!("the endpoint at {host} has a user name or a password"))
                .hint("set the key by its variables or its file"));
        }
        match url.scheme() {
            "https" => Ok(url),
            "http" if is_loopback(&url) || plain_host == Some(host) => Ok(url),
            "http" => Err(invalid(format!("the endpoint at {host} has no TLS"))
                .hint(format!("use https, or allow plain HTTP for the host {host} by its name"))),
            other => Err(invalid(format!("an endpoint cannot start with `{other}:`")).hint("use https")),
        }
    }
}

/// True for addresses of this machine and for `localhost`.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions, write};

    use super::*;

    #[test]
    fn plain_http_is_for_this_machine_or_a_named_host() {
        let check = |text, plain| S3Settings::check_endpoint(text, plain).is_ok();
        for good in ["https://s3.example.org", "http://127.0.0.1:9000", "http://[::1]:1", "http://localhost:5000"] {
            assert!(check(good, None), "{good}");
        }
        assert!(check("http://minio.lan:9000", Some("minio.lan")));
        for (bad, plain) in [
            ("http://minio.lan:9000", None),
            ("http://minio.lan:9000", Some("other.lan")),
            ("http://localhost.example.org", None),
            ("http://127.0.0.1.example.org", None),
            ("https://user:secret@s3.example.org", None),
            ("ftp://127.0.0.1", None),
            ("s3", None),
        ] {
            assert!(!check(bad, plain), "{bad}");
        }
    }

    #[test]
    fn the_key_is_read_from_a_private_file_or_the_environment_and_never_shown() {
        let variable = |name: &str| Some(format!("{name}-value"));
        let key = S3Key::load(None, variable).unwrap();
        assert_eq!(key.secret.expose(), "CHORUS_S3_SECRET-value");
        assert!(S3Key::load(None, |_| None).is_err());
        let file = tempfile::NamedTempFile::new().unwrap();
        write(file.path(), "key_id = me\nsecret = a=b/c+\n").unwrap();
        let key = S3Key::load(Some(file.path()), |_| None).unwrap();
        assert_eq!((&*key.id, key.secret.expose()), ("me", "a=b/c+"));
        assert!(!format!("{key:?}").contains("a=b"));
        set_permissions(file.path(), Permissions::from_mode(0o640)).unwrap();
        let refused = S3Key::load(Some(file.path()), |_| None).unwrap_err();
        assert!(!format!("{refused:?}").contains("a=b"), "{refused:?}");
    }
}
