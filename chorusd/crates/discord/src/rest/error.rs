//! Errors of the REST API.

use std::error::Error as _;
use std::time::Duration;

use chorus_base::error::Error;
use chorus_proto::ErrorKind;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::Value;

/// Discord's codes for a channel, guild, message, webhook or interaction that does not exist any more.
const GONE_CODES: [u64; 5] = [10_003, 10_004, 10_008, 10_015, 10_062];

/// No rate limit is longer; a response that says so is wrong.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3600);

/// The hint if Chorus lacks a permission.
const GRANT_PERMISSIONS: &str = "in Discord, give Chorus the permissions View Channels, Send Messages, Attach Files, Read Message \
                                 History and Manage Channels; see docs/DISCORD.md";

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum RestError {
    #[error("Discord: not found ({message})")]
    Gone { code: u64, message: String },
    #[error("Discord rejected the token")]
    Unauthorized,
    #[error("Discord rejected the request ({status}): {message}")]
    Refused { status: u16, code: u64, message: String },
    /// The rate limit allows no request before `after`.
    #[error("Discord's rate limit was reached")]
    RateLimited { after: Duration, global: bool },
    #[error("Discord returned an error ({0})")]
    ServerError(u16),
    #[error("cannot reach Discord: {0}")]
    Unreachable(String),
    /// Like `Unreachable`, but the request certainly did not arrive.
    #[error("cannot reach Discord: {0}")]
    Unconnected(String),
    #[error("cannot parse Discord's response: {0}")]
    Unreadable(String),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ErrorBody {
    code: u64,
    message: String,
    retry_after: Option<f64>,
    global: bool,
    errors: Value,
}

impl RestError {
    /// Leaves out the URL, which may contain a token.
    pub(super) fn from_transport(error: &reqwest::Error) -> Self {
        let mut source = error.source();
        let mut said = None;
        while let Some(error) = source {
            said = Some(error.to_string());
            source = error.source();
        }
        let usual = if error.is_timeout() { "timed out" } else { "cannot send the request" };
        Self::Unreachable(said.unwrap_or_else(|| usual.to_owned()))
    }

    pub(super) fn from_response(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let read = serde_json::from_slice::<ErrorBody>(body);
        let page = read.is_err();
        let said = read.unwrap_or_default();
        match status {
            StatusCode::UNAUTHORIZED => Self::Unauthorized,
            StatusCode::TOO_MANY_REQUESTS => {
                let header = headers.get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
                let seconds = said.retry_after.or(header).filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
                let after = Duration::try_from_secs_f64(seconds.unwrap_or(1.0)).unwrap_or(Duration::from_secs(1));
                // An HTML page comes from a proxy in front of Discord, and limits this whole machine.
                let global = said.global || headers.contains_key("x-ratelimit-global") || page;
                Self::RateLimited { after: after.min(MAX_RETRY_AFTER), global }
            }
            status if status.is_server_error() => Self::ServerError(status.as_u16()),
            _ if GONE_CODES.contains(&said.code) => Self::Gone { code: said.code, message: said.message },
            status => {
                let message = match (said.message.is_empty(), page) {
                    (false, _) => {
                        said.message + &first_form_error(&said.errors).map(|e| format!(": {e}")).unwrap_or_default()
                    }
                    (true, true) => "Discord returned a web page".to_owned(),
                    (true, false) => "no reason given".to_owned(),
                };
                Self::Refused { status: status.as_u16(), code: said.code, message }
            }
        }
    }

    /// Returns Discord's code for the reason, if it refused.
    #[must_use]
    pub(crate) fn code(&self) -> Option<u64> {
        match self {
            Self::Refused { code, .. } | Self::Gone { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Returns whether Chorus lacks a permission.
    #[must_use]
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused { status: 403, .. })
    }

    /// Returns whether the same request may succeed later.
    #[must_use]
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::RateLimited { .. } | Self::ServerError(_) | Self::Unreachable(_) | Self::Unconnected(_))
    }
}

impl From<RestError> for Error {
    fn from(error: RestError) -> Self {
        let failure = Self::new(ErrorKind::DiscordFailed, error.to_string());
        match error {
            RestError::Unauthorized => failure.hint("create a new token and set it in the daemon's environment"),
            RestError::Refused { status: 403, .. } => failure.hint(GRANT_PERMISSIONS),
            RestError::Gone { .. } => failure.hint("it was deleted in Discord"),
            error if error.is_transient() => failure.hint("try again in a moment"),
            _ => failure.hint("see the log: `chorusctl daemon logs`"),
        }
    }
}

/// Returns the first field that Discord rejects, and why: `embeds.0.title: Must be 256 or fewer in length.`
fn first_form_error(errors: &Value) -> Option<String> {
    let mut path = Vec::new();
    let mut at = errors;
    loop {
        let fields = at.as_object()?;
        if let Some(said) = fields.get("_errors").and_then(|said| said.get(0)?.get("message")?.as_str()) {
            return Some(if path.is_empty() { said.to_owned() } else { format!("{}: {said}", path.join(".")) });
        }
        let (name, below) = fields.iter().next()?;
        path.push(name.as_str());
        at = below;
    }
}

/// Describes an error of the JSON parser, without the values in it.
pub(crate) fn describe_json_error(error: &serde_json::Error) -> String {
    let said = error.to_string();
    // The value is between the first quote and the last, even if it contains quotes.
    let told = match (said.find('"'), said.rfind('"')) {
        (Some(first), Some(last)) if first < last => format!("{}…{}", &said[..first], &said[last + 1..]),
        _ => said,
    };
    match told.split_once("unknown variant `") {
        Some((before, _)) => format!("{before}unknown variant"),
        None => told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, headers: &[(&'static str, &str)], body: &str) -> RestError {
        let headers = headers
            .iter()
            .map(|(name, value)| (reqwest::header::HeaderName::from_static(name), value.parse().unwrap()));
        RestError::from_response(StatusCode::from_u16(status).unwrap(), &headers.collect(), body.as_bytes())
    }

    #[test]
    fn what_discord_says_is_understood() {
        let limited = |after: f64, global| RestError::RateLimited { after: Duration::from_secs_f64(after), global };
        assert_eq!(refused(429, &[], r#"{"retry_after": 1336.57, "global": false}"#), limited(1336.57, false));
        assert_eq!(refused(429, &[], r#"{"retry_after": 0.5, "global": true}"#), limited(0.5, true));
        assert_eq!(refused(429, &[("retry-after", "70")], "<html>"), limited(70.0, true));
        assert_eq!(refused(429, &[], r#"{"retry_after": 1e300}"#), limited(1.0, false));
        assert_eq!(refused(502, &[], "<html>"), RestError::ServerError(502));
        assert_eq!(refused(401, &[], ""), RestError::Unauthorized);
        let message = "Discord returned a web page".to_owned();
        assert_eq!(refused(403, &[], "<html>"), RestError::Refused { status: 403, code: 0, message });
        let gone = r#"{"code": 10003, "message": "Unknown Channel"}"#;
        assert_eq!(refused(404, &[], gone), RestError::Gone { code: 10_003, message: "Unknown Channel".into() });
        let form = r#"{"code": 50035, "message": "Invalid Form Body", "errors":
            {"content": {"_errors": [{"code": "X", "message": "Must be 2000 or fewer in length."}]}}}"#;
        let message = "Invalid Form Body: content: Must be 2000 or fewer in length.".to_owned();
        assert_eq!(refused(400, &[], form), RestError::Refused { status: 400, code: 50_035, message });
    }

    #[test]
    fn values_are_not_told() {
        #[derive(Debug, Deserialize)]
        struct Wanted {
            #[expect(dead_code, reason = "only its type matters")]
            id: u64,
        }
        let error = serde_json::from_str::<Wanted>(r#"{"id": "what a person \" said"}"#).unwrap_err();
        let told = describe_json_error(&error);
        assert!(told.contains("expected u64") && !told.contains("person") && !told.contains("said"), "{told}");
    }
}
