//! Checks of the URLs of Discord's API and gateway.

use std::net::IpAddr;

use reqwest::Url;

/// Returns whether the host of `url` is this machine. Such addresses are connected to without a proxy.
pub(crate) fn is_loopback(url: &str) -> bool {
    let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

/// Normalizes a gateway URL for connecting: drops the query and the slash at the end. Returns `None` if it is no
/// gateway URL, or if it is unencrypted while `like`, the URL that led to it, is encrypted: the token is sent there.
pub(crate) fn normalize_gateway_url(url: &str, like: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let plain = url.scheme() == "ws" && !["wss", "https"].iter().any(|scheme| like.starts_with(&format!("{scheme}:")));
    if !(url.scheme() == "wss" || plain) || !url.has_host() || !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    let mut url = url;
    url.set_query(None);
    url.set_fragment(None);
    Some(url.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gateways_are_connected_to_and_none_in_the_open() {
        let ok = |url, like| normalize_gateway_url(url, like);
        assert_eq!(ok("wss://gateway.discord.gg/?v=6", "https://discord.com"), Some("wss://gateway.discord.gg".into()));
        assert_eq!(ok("ws://127.0.0.1:80/a/", "http://127.0.0.1"), Some("ws://127.0.0.1/a".into()));
        assert_eq!(ok("ws://gateway.discord.gg", "https://discord.com"), None);
        for bad in ["", "gateway", "wss://", "https://discord.com", "wss://u:p@host", "wss://a b"] {
            assert_eq!(ok(bad, "https://discord.com"), None, "{bad}");
        }
        assert!(
            is_loopback("http://[::1]:9/") && is_loopback("http://localhost") && !is_loopback("https://discord.com")
        );
    }
}
