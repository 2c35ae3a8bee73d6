//! Waits before retries of a post. A wait ends early when another request shows that Discord works again.

use std::time::Duration;

use chorus_base::Backoff;
use tokio::time::sleep;

use super::super::rest::Successes;

/// The first wait before a retry, and the longest.
pub(super) const INITIAL_BACKOFF: Duration = Duration::from_millis(500);
pub(super) const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// The condition that ends the wait before a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryAfter {
    /// This time.
    Time(Duration),
    /// The usual backoff.
    Backoff,
    /// The usual backoff, or the success of another request.
    Recovery,
    /// This time, or the success of another request with the bot's token.
    TimeOrRecovery(Duration),
}

/// The waits of one channel.
#[derive(Debug)]
pub(super) struct RetryWaits {
    backoff: Backoff,
    successes: Successes,
    /// A success ended the previous wait. The next one lasts its full time, so that a channel that fails alone is not
    /// retried at each success in another one.
    woken: bool,
}

impl RetryWaits {
    pub(super) fn new(successes: Successes) -> Self {
        Self { backoff: Backoff::new(INITIAL_BACKOFF, MAX_BACKOFF), successes, woken: false }
    }

    /// Begins a try: only successes from now on end the wait after it.
    pub(super) fn begin_try(&mut self) {
        self.successes.any.mark_unchanged();
        self.successes.with_bot_token.mark_unchanged();
    }

    /// A post was delivered: the next failure waits as the first one did.
    pub(super) fn reset(&mut self) {
        self.backoff.reset();
        self.woken = false;
    }

    /// Waits before the next try.
    pub(super) async fn wait(&mut self, after: RetryAfter) {
        let Successes { any, with_bot_token } = &mut self.successes;
        let (time, success) = match after {
            RetryAfter::Time(time) => (time, None),
            RetryAfter::Backoff => (self.backoff.next_wait(), None),
            RetryAfter::Recovery => (self.backoff.next_wait(), Some(any)),
            RetryAfter::TimeOrRecovery(time) => (time, Some(with_bot_token)),
        };
        let was_woken = std::mem::take(&mut self.woken);
        let Some(success) = success.filter(|_| !was_woken) else { return sleep(time).await };
        tokio::select! {
            Ok(()) = success.changed() => self.woken = true,
            () = sleep(time) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;
    use tokio::time::Instant;

    use super::*;

    const LATER: Duration = Duration::from_secs(1336);

    /// Fails once and waits; returns how long.
    async fn fail(waits: &mut RetryWaits, after: RetryAfter) -> Duration {
        waits.begin_try();
        let begun = Instant::now();
        waits.wait(after).await;
        begun.elapsed()
    }

    /// Like [`fail`], with a success of another request a tenth of a second later.
    async fn fail_beside_success(waits: &mut RetryWaits, after: RetryAfter, success: &watch::Sender<()>) -> Duration {
        let succeed = async {
            sleep(Duration::from_millis(100)).await;
            success.send_replace(());
        };
        tokio::join!(fail(waits, after), succeed).0
    }

    #[tokio::test(start_paused = true)]
    async fn no_wait_is_longer_than_half_a_minute() {
        let (_success, any) = watch::channel(());
        let mut waits = RetryWaits::new(Successes { with_bot_token: any.clone(), any });
        let mut longest = Duration::ZERO;
        for after in [RetryAfter::Recovery, RetryAfter::Backoff].repeat(50) {
            longest = longest.max(fail(&mut waits, after).await);
        }
        assert_eq!(longest.as_secs(), 30);
        waits.reset();
        assert_eq!(fail(&mut waits, RetryAfter::Recovery).await.as_millis(), 500);
    }

    #[tokio::test(start_paused = true)]
    async fn a_success_of_another_request_ends_a_wait_but_not_two_in_a_row() {
        let (success, any) = watch::channel(());
        let mut waits = RetryWaits::new(Successes { with_bot_token: any.clone(), any });
        for _ in 0..10 {
            fail(&mut waits, RetryAfter::Recovery).await;
        }
        for (wait, millis) in [
            (RetryAfter::Recovery, 100),
            (RetryAfter::Recovery, 30_000),
            (RetryAfter::TimeOrRecovery(LATER), 100),
            (RetryAfter::Time(LATER), LATER.as_millis()),
            (RetryAfter::Backoff, 30_000),
        ] {
            assert_eq!(fail_beside_success(&mut waits, wait, &success).await.as_millis(), millis, "{wait:?}");
        }
        // One that came while the try was under way counts, and one before it does not.
        success.send_replace(());
        waits.begin_try();
        success.send_replace(());
        let begun = Instant::now();
        waits.wait(RetryAfter::Recovery).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        waits.reset();
        success.send_replace(());
        assert_eq!(fail(&mut waits, RetryAfter::Recovery).await.as_millis(), 500);
    }

    /// An answer to a command needs no token of the bot, so it does not show that Discord accepts that again.
    #[tokio::test(start_paused = true)]
    async fn a_refused_token_is_tried_again_only_once_it_was_accepted() {
        let ((answer, any), (accepted, with_bot_token)) = (watch::channel(()), watch::channel(()));
        let mut waits = RetryWaits::new(Successes { any, with_bot_token });
        let wait = RetryAfter::TimeOrRecovery(LATER);
        assert_eq!(fail_beside_success(&mut waits, wait, &answer).await, LATER);
        assert_eq!(fail_beside_success(&mut waits, wait, &accepted).await.as_millis(), 100);
    }
}
