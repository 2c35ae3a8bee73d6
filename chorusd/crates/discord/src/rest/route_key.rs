//! Keys of requests that Discord counts together in rate limits.

use super::Request;

/// The key of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RouteKey {
    /// The method and path, with the ids replaced.
    pub route: String,
    /// The major parameter: a channel, guild or webhook, each of which has limits of its own.
    pub major: String,
    /// Responses to interactions: they have no rate limit.
    pub is_exempt: bool,
    /// The request is authorized by a token in its path, not by the application's.
    pub has_own_token: bool,
}

impl RouteKey {
    pub(super) fn of(request: &Request) -> Self {
        Self::new(request.method.as_str(), &request.path)
    }

    /// `path` is the one below the version of the API.
    fn new(method: &str, path: &str) -> Self {
        let mut parts = path.split('?').next().unwrap_or(path).split('/').skip(1);
        let kind = parts.next().unwrap_or_default();
        let mut major = String::new();
        let mut route = format!("{method} /{kind}");
        let has_own_token = matches!(kind, "interactions" | "webhooks");
        if matches!(kind, "channels" | "guilds" | "interactions" | "webhooks") {
            let id = parts.next().unwrap_or_default();
            major.push_str(id);
            route.push_str("/*");
            if has_own_token && let Some(token) = parts.next() {
                major.push('/');
                major.push_str(token);
                route.push_str("/*");
            }
        }
        for part in parts {
            let id = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            route.push('/');
            route.push_str(if id { "*" } else { part });
            // The rest are an emoji and a user.
            if part == "reactions" {
                break;
            }
        }
        Self { route, major, is_exempt: kind == "interactions", has_own_token }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_taken_out_and_majors_kept() {
        for (path, route, major) in [
            ("/channels/12/messages/345", "GET /channels/*/messages/*", "12"),
            ("/channels/12/messages/3/reactions/x%3A9/@me", "GET /channels/*/messages/*/reactions", "12"),
            ("/guilds/7/channels", "GET /guilds/*/channels", "7"),
            ("/applications/1/guilds/2/commands", "GET /applications/*/guilds/*/commands", ""),
            ("/gateway/bot", "GET /gateway/bot", ""),
            ("/users/@me", "GET /users/@me", ""),
        ] {
            let read = RouteKey::new("GET", path);
            assert_eq!((&*read.route, &*read.major, read.is_exempt, read.has_own_token), (route, major, false, false));
        }
        let answer = RouteKey::new("POST", "/interactions/5/aW50/callback");
        assert_eq!((&*answer.route, &*answer.major), ("POST /interactions/*/*/callback", "5/aW50"));
        assert!(answer.is_exempt && answer.has_own_token);
        let follow = RouteKey::new("PATCH", "/webhooks/5/tok/messages/@original");
        assert_eq!((&*follow.major, follow.is_exempt, follow.has_own_token), ("5/tok", false, true));
    }
}
