//! Restricts the hosts of a push: without `network` in the profile, only public internet addresses are allowed, not
//! this machine and its networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use tokio::time::timeout;

use super::GitResult;
use crate::tools::ToolContext;

/// Time limit for resolving a host name.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);

/// A git setting that pins the host to the addresses that were checked, if the protocol has one.
pub(super) type ResolvePin = Option<String>;

/// Checks that a push may connect to the host of `url`, an `https` or `git` URL.
pub(super) async fn check_host(scheme: &str, url: &str, ctx: &ToolContext) -> GitResult<ResolvePin> {
    if ctx.allows_network() {
        return Ok(None);
    }
    let Some((host, port)) = parse_host(scheme, url) else {
        return Err("the host in the address cannot be checked; use a host name or a dotted IPv4 address".into());
    };
    let found = tokio::select! {
        found = timeout(RESOLVE_TIMEOUT, tokio::net::lookup_host((host, port))) => found,
        () = ctx.cancel.cancelled() => return Err("the turn was cancelled".into()),
    };
    let found = found.map_err(|_| format!("resolving {host} timed out"))?;
    let found = found.map_err(|e| format!("cannot resolve {host}: {e}"))?;
    let found: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    if let Some(near) = found.iter().find(|address| !is_public(**address)) {
        return Err(format!(
            "{host} is {near}, a local or private address; this agent's profile has no network, so git_push \
             only reaches public hosts; a profile with `network = true` may reach it"
        ));
    }
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    Ok((scheme == "https").then(|| format!("http.curloptResolve={host}:{port}:{}", found.join(","))))
}

/// Parses the host and port of a URL; `None` unless git and curl are certain to read it in the same way.
fn parse_host<'a>(scheme: &str, url: &'a str) -> Option<(&'a str, u16)> {
    let rest = url.strip_prefix(scheme)?.strip_prefix("://")?;
    let (authority, _) = rest.split_once('/')?;
    if authority.contains(['?', '#', '\\']) {
        return None;
    }
    let place = match authority.rsplit_once('@') {
        // git decodes the part before the `@` and takes it for a part of the host.
        Some(_) if scheme != "https" => return None,
        Some((user, place)) => Some(place).filter(|_| !user.contains('@'))?,
        None => authority,
    };
    let (host, port) = match place.split_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (place, if scheme == "https" { 443 } else { 9418 }),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    (!host.is_empty() && host.chars().all(plain)).then_some((host, port))
}

/// Returns true if an address is a public internet address.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => is_public_v4(four),
        IpAddr::V6(six) => is_public_v6(six),
    }
}

fn is_public_v4(four: Ipv4Addr) -> bool {
    let [a, b, c, _] = four.octets();
    let special = match (a, b, c) {
        // "This network", and carrier-grade NAT.
        (0, ..) | (100, 64..128, _) => true,
        // Protocol assignments, benchmarking, and the reserved range.
        (192, 0, 0) | (198, 18..20, _) | (240.., ..) => true,
        _ => false,
    };
    let near = four.is_loopback() || four.is_private() || four.is_link_local() || four.is_multicast();
    !special && !near && !four.is_documentation()
}

fn is_public_v6(six: Ipv6Addr) -> bool {
    // IPv4-mapped addresses, NAT64 and 6to4.
    let four = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match six.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            is_public_v4(four(high, low))
        }
        // Teredo and documentation.
        [0x2001, 0 | 0x0db8, ..] => false,
        // 2000::/3, the only range of global addresses that is allocated so far.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_read_in_one_way_or_not_at_all() {
        for (scheme, url, read) in [
            ("https", "https://example.org/a", Some(("example.org", 443))),
            ("https", "https://me:secret@example.org:8443/a@b", Some(("example.org", 8443))),
            ("git", "git://127.0.0.1:9999/a", Some(("127.0.0.1", 9999))),
            ("git", "git://example.org/a", Some(("example.org", 9418))),
            ("git", "git://me@example.org/a", None),
            ("git", "git://127.0.0.1%2fx.example.org/a", None),
            ("https", "https://127.0.0.1%2f@example.org/a", Some(("example.org", 443))),
            ("https", "https://example.org\\@127.0.0.1/a", None),
            ("https", "https://[::1]/a", None),
            ("https", "https://a:b/c", None),
            ("https", "https://a:/c", None),
            ("https", "https://:443/c", None),
            ("https", "https://127.0.0.1?.example.org/c", None),
            ("https", "https://example.org#@127.0.0.1/c", None),
            ("https", "https://a@b@127.0.0.1/c", None),
        ] {
            assert_eq!(parse_host(scheme, url), read, "{url}");
        }
    }

    #[test]
    fn only_addresses_of_the_internet_are_public() {
        for public in ["1.1.1.1", "172.15.0.1", "100.128.0.1", "192.0.1.1", "2606:4700::1111", "64:ff9b::101:101"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for near in [
            "127.0.0.1",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "192.0.0.8",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:db8::1",
        ] {
            assert!(!is_public(near.parse().unwrap()), "{near}");
        }
    }
}
