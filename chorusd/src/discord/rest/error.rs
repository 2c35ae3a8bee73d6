//! What Discord answers instead.

use std::time::Duration;

use chorus_proto::ErrorKind;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde::Deserialize;

use crate::failure::Failure;

/// A channel, message, command or interaction that is not there any more.
const GONE: [u64; 5] = [10_003, 10_004, 10_008, 10_015, 10_062];

/// Why a request came to nothing.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RestError {
    #[error("Discord does not know it any more ({message})")]
    Gone { code: u64, message: String },
    #[error("Discord does not take the token")]
    Unauthorized,
    #[error("Discord refuses it ({status}): {message}")]
    Refused { status: u16, code: u64, message: String },
    /// Not before `after`.
    #[error("Discord wants fewer requests")]
    Limited { after: Duration, global: bool },
    #[error("Discord fails ({0})")]
    Failing(u16),
    #[error("Discord cannot be reached: {0}")]
    Unreachable(String),
    #[error("Discord's answer cannot be read: {0}")]
    Unreadable(String),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Body {
    code: u64,
    message: String,
    retry_after: Option<f64>,
    global: bool,
}

impl RestError {
    pub(super) fn unreachable(error: &reqwest::Error) -> Self {
        Self::Unreachable(error.to_string())
    }

    pub(super) fn refused(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let said: Body = serde_json::from_slice(body).unwrap_or_default();
        match status {
            StatusCode::UNAUTHORIZED => Self::Unauthorized,
            StatusCode::TOO_MANY_REQUESTS => {
                let header = headers.get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
                let seconds = said.retry_after.or(header).filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
                let after = Duration::try_from_secs_f64(seconds.unwrap_or(1.0)).unwrap_or(Duration::from_secs(1));
                Self::Limited { after, global: said.global }
            }
            status if status.is_server_error() => Self::Failing(status.as_u16()),
            _ if GONE.contains(&said.code) => Self::Gone { code: said.code, message: said.message },
            status => Self::Refused { status: status.as_u16(), code: said.code, message: said.message },
        }
    }

    /// Whether the same may work later.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Limited { .. } | Self::Failing(_) | Self::Unreachable(_))
    }
}

impl From<RestError> for Failure {
    fn from(error: RestError) -> Self {
        let failure = Self::new(ErrorKind::DiscordFailed, error.to_string());
        match error {
            RestError::Unauthorized => failure.hint("make a new token and set it where chorusd starts"),
            RestError::Refused { status: 403, .. } => {
                failure.hint("give the application the permissions that docs/DISCORD.md lists")
            }
            RestError::Gone { .. } => failure.hint("it was deleted in Discord"),
            error if error.may_pass() => failure.hint("try again in a moment"),
            _ => failure.hint("`chorusctl daemon logs` has more"),
        }
    }
}
