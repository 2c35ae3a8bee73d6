//! How often a fast stream is looked at. Being woken costs more than a token does: what comes within two milliseconds is
//! read together, which nobody sees. A stream that is slower, and the first piece of any, is read as it comes.

use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use tokio::time::{Instant, sleep};

use super::error::CallError;
use super::transport::{Answer, Watch};

/// A stream is fast whose pieces come sooner one after the other.
const FAST: Duration = Duration::from_millis(3);

/// How long a fast one is left alone; the clock of the runtime makes it one to two milliseconds.
const REST: Duration = Duration::from_millis(1);

/// When pieces came that had to be waited for.
#[derive(Debug, Default)]
pub struct Pace {
    last: Option<Instant>,
    fast: bool,
}

impl Pace {
    /// The next piece of `answer`, as [`Answer::piece`].
    ///
    /// # Errors
    /// As [`Answer::piece`].
    pub async fn piece(&mut self, answer: &mut Answer, watch: &Watch) -> Result<Option<Bytes>, CallError> {
        if let Some(there) = answer.piece(watch).now_or_never() {
            return there;
        }
        if self.fast {
            sleep(REST).await;
        }
        let piece = answer.piece(watch).await?;
        let now = Instant::now();
        self.fast = self.last.is_some_and(|last| now - last < FAST);
        self.last = Some(now);
        Ok(piece)
    }
}
