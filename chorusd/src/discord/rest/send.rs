//! One request on its way: when it goes, how often, and what becomes of the answer.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, USER_AGENT};
use serenity::http::{LightMethod, Request};
use tokio::time::{Instant, sleep};

use super::path::Path;
use super::{Rest, RestError};
use crate::discord::chance;

/// As Discord wants programs to name themselves.
const NAME: &str = concat!("DiscordBot (chorus, ", env!("CARGO_PKG_VERSION"), ")");
/// No answer is longer.
const BODY: usize = 16 << 20;
/// Of what may be done twice.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(300);
/// What is under way when the daemon stops has this long.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// For a request with files, which an uplink may be slow with.
const WITH_FILES: Duration = Duration::from_secs(120);

/// A try that came to nothing.
struct Failed {
    error: RestError,
    /// Discord cannot have seen it.
    unsent: bool,
}

impl Rest {
    /// Sends it, again where that does no harm; waits for limits until `latest`, or as long as they are, and in any case not long after
    /// the daemon has begun to stop.
    pub(super) async fn send(&self, request: Request<'_>, latest: Option<Instant>) -> Result<Vec<u8>, RestError> {
        let over = async {
            self.stop.cancelled().await;
            sleep(LAST_WORDS).await;
        };
        tokio::select! {
            biased;
            answer = self.until_done(request, latest) => answer,
            () = over => Err(RestError::Unreachable("the daemon stops".into())),
        }
    }

    async fn until_done(&self, request: Request<'_>, latest: Option<Instant>) -> Result<Vec<u8>, RestError> {
        let path = Path::of(&request);
        let twice = matches!(request.method_ref(), LightMethod::Get | LightMethod::Put | LightMethod::Delete);
        let mut tries = 0;
        loop {
            if !path.own_token && self.refused.holds(Instant::now()) {
                return Err(RestError::Unauthorized);
            }
            let Failed { error, unsent } = match self.once(request.clone(), &path, latest).await {
                Ok(body) => return Ok(body),
                Err(failed) => failed,
            };
            match error {
                // It was not done; the limit is known now, and waited for before the next try, if at all.
                RestError::Limited { after, .. }
                    if latest.is_none_or(|latest| Instant::now().checked_add(after).is_some_and(|at| at <= latest)) =>
                {
                    sleep(if path.exempt { after.max(PAUSE) } else { PAUSE.saturating_sub(after) }).await;
                }
                RestError::Failing(_) | RestError::Unreachable(_) if (twice || unsent) && tries + 1 < TRIES => {
                    tries += 1;
                    sleep(PAUSE.mul_f64(f64::from(tries) + chance())).await;
                }
                RestError::Unreachable(why) if unsent => return Err(RestError::Unconnected(why)),
                error => return Err(error),
            }
        }
    }

    async fn once(&self, request: Request<'_>, path: &Path, latest: Option<Instant>) -> Result<Vec<u8>, Failed> {
        let turn = self.limits.turn(path, latest).await;
        let pass = turn.map_err(|error| Failed { error, unsent: false })?;
        let built = request
            .build(&self.client, self.token.expose(), Some(&self.base))
            .map_err(|_| RestError::Unreachable("the request cannot be made".into()))
            .and_then(|built| built.build().map_err(|e| RestError::unreachable(&e)));
        let mut built = built.map_err(|error| Failed { error, unsent: false })?;
        built.headers_mut().insert(USER_AGENT, HeaderValue::from_static(NAME));
        if let Some(token) = built.headers_mut().get_mut(AUTHORIZATION) {
            token.set_sensitive(true);
        }
        // What comes in parts has no bytes to look at.
        if built.body().is_some_and(|body| body.as_bytes().is_none()) {
            *built.timeout_mut() = Some(WITH_FILES);
        }
        let lost = |e: reqwest::Error| Failed { error: RestError::unreachable(&e), unsent: e.is_connect() };
        let mut answer = self.client.execute(built).await.map_err(lost)?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(lost)? {
            body.extend_from_slice(&piece);
            if body.len() > BODY {
                let error = RestError::Unreadable("it is too long".into());
                return Err(Failed { error, unsent: false });
            }
        }
        match self.judged(status, &headers, &body, path) {
            None => {
                pass.heard(status, &headers, None);
                Ok(body)
            }
            Some(error) => {
                pass.heard(status, &headers, Some(&error));
                Err(Failed { error, unsent: false })
            }
        }
    }

    fn judged(&self, status: StatusCode, headers: &HeaderMap, body: &[u8], path: &Path) -> Option<RestError> {
        if status.is_success() {
            if !path.own_token {
                self.refused.over();
            }
            return None;
        }
        let error = RestError::refused(status, headers, body);
        match error {
            // The token of an interaction is over, not the application's.
            RestError::Unauthorized if path.own_token => {
                Some(RestError::Gone { code: 0, message: "the interaction is over".into() })
            }
            RestError::Unauthorized => {
                self.refused.again(Instant::now());
                Some(error)
            }
            error => Some(error),
        }
    }
}
