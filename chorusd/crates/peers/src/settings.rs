//! The settings of a node's connections, and how an address is written.

use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;

use rustls::pki_types::ServerName;

/// The table `[cluster]` of the configuration: where this node listens, and with which files it identifies itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSettings {
    /// Address and port to listen on, such as `0.0.0.0:7700` or `[::]:7700`.
    pub listen: String,
    /// Host and port at which other nodes reach this one, such as `a.example.org:7700`.
    pub advertise: String,
    /// PEM file with the certificates of the cluster's authorities.
    pub ca: PathBuf,
    /// PEM file with the certificate of this node, and those between it and the authority.
    pub cert: PathBuf,
    /// PEM file with the private key of the certificate.
    pub key: PathBuf,
}

/// Splits `host:port`; the host of an IPv6 address is in brackets, which are removed.
pub(crate) fn split_address(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').filter(|inner| inner.contains(':'))?,
        None if host.contains(':') => return None,
        None => host,
    };
    let port = port.parse().ok().filter(|port| *port != 0)?;
    (!host.is_empty()).then_some((host, port))
}

/// The name that the certificate at `host:port` must have: a host name or an IP address.
pub(crate) fn server_name(address: &str) -> Option<(ServerName<'static>, &str, u16)> {
    let (host, port) = split_address(address)?;
    Some((ServerName::try_from(host.to_owned()).ok()?, host, port))
}

/// Says why other nodes cannot connect to `host:port`; `None` if they can, as far as is known without a lookup.
pub(crate) fn address_problem(address: &str) -> Option<&'static str> {
    if let Some((name, ..)) = server_name(address) {
        let is_unspecified = matches!(name, ServerName::IpAddress(ip) if IpAddr::from(ip).is_unspecified());
        return is_unspecified.then_some("it stands for all addresses, which is for `listen`");
    }
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    let is_port = port.parse::<u16>().is_ok_and(|port| port != 0);
    Some(if address.contains("://") || address.contains('/') {
        "it is a URL"
    } else if host.starts_with('[') || address.parse::<Ipv6Addr>().is_ok() || host.parse::<Ipv6Addr>().is_ok() {
        "an IPv6 address has to be in brackets, and the port behind it"
    } else if port.is_empty() {
        "the port is missing"
    } else if !is_port {
        "a port is a number from 1 to 65535"
    } else if host.is_empty() {
        "the host is missing"
    } else {
        "a name of a host has letters, digits, \"-\" and \".\""
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        let good = [("a.example.org:7700", "a.example.org"), ("10.0.0.1:7700", "10.0.0.1"), ("[::1]:7700", "::1")];
        for (address, host) in good {
            assert_eq!(split_address(address), Some((host, 7700)));
            assert!(server_name(address).is_some(), "{address}");
        }
        for bad in ["", "a", "a:", ":7700", "a:0", "a:70000", "::1:7700", "[a]:7700", "[::1:7700", "a:b:7700"] {
            assert_eq!(split_address(bad), None, "{bad}");
        }
        assert!(server_name("a b:7700").is_none());
    }

    #[test]
    fn what_is_wrong_with_an_address_is_said() {
        for good in ["a.example.org:7700", "10.0.0.1:7700", "[::1]:7700"] {
            assert_eq!(address_problem(good), None, "{good}");
        }
        for (bad, what) in [
            ("", "the port is missing"),
            ("a", "the port is missing"),
            ("a:", "the port is missing"),
            ("[::1]", "in brackets"),
            ("[::1:7700", "in brackets"),
            ("a:0", "a port is a number"),
            ("a:b", "a port is a number"),
            ("a:70000", "a port is a number"),
            (":7700", "the host is missing"),
            ("::1:7700", "in brackets"),
            ("http://a:7700", "it is a URL"),
            ("a b:7700", "a name of a host has"),
            ("a..b:7700", "a name of a host has"),
            ("0.0.0.0:7700", "it stands for all addresses"),
            ("[::]:7700", "it stands for all addresses"),
        ] {
            assert!(
                address_problem(bad).is_some_and(|problem| problem.contains(what)),
                "{bad}: {:?}",
                address_problem(bad)
            );
        }
    }
}
