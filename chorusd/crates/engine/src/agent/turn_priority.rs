//! Gives turns priority over background model calls. A self-hosted model server may take one request at a time, and a
//! user who waits for a reply must not wait for notes and summaries first.

use std::collections::HashMap;
use std::time::Duration;

use chorus_base::sync::Mutex;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How often turns may preempt one background call.
pub const MAX_PREEMPTIONS: usize = 3;

/// How long no turn may call the model before a background call starts. A turn's tool may take less than this between
/// two model calls, and the next one would preempt the background call at once.
const QUIET_PERIOD: Duration = Duration::from_secs(1);

/// Number of turns that call their models, by provider.
#[derive(Debug, Default)]
pub struct TurnPriority(Mutex<HashMap<String, watch::Sender<usize>>>);

/// A turn that calls its model. Dropped when the turn ends or runs tools.
#[derive(Debug)]
pub struct TurnGuard(watch::Sender<usize>);

impl Drop for TurnGuard {
    fn drop(&mut self) {
        self.0.send_modify(|turns| *turns = turns.saturating_sub(1));
    }
}

impl TurnPriority {
    /// Registers a turn that calls a model of `provider`.
    #[must_use]
    pub fn begin_turn(&self, provider: &str) -> TurnGuard {
        let turns = self.turn_counter(provider);
        turns.send_modify(|turns| *turns += 1);
        TurnGuard(turns)
    }

    /// Runs the background call `ask` while no turn calls a model of `provider`. A turn that starts in the meantime
    /// cancels the call, for which `ask` returns `None`; it is made again after the turn. After [`MAX_PREEMPTIONS`]
    /// cancellations it is no longer interrupted. `provider` is `None` if requests do not delay each other. Returns
    /// `None` if `stop` comes first.
    pub async fn run_between_turns<T, F>(
        &self,
        provider: Option<&str>,
        stop: &CancellationToken,
        ask: impl Fn(CancellationToken) -> F,
    ) -> Option<T>
    where
        F: Future<Output = Option<T>>,
    {
        let Some(provider) = provider else { return ask(stop.child_token()).await };
        let mut turns = self.turn_counter(provider).subscribe();
        let mut cut_off = 0;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                ended = wait_until_no_turn(&mut turns, cut_off > 0) => ended?,
            }
            let cancel = stop.child_token();
            let mut asked = std::pin::pin!(ask(cancel.clone()));
            tokio::select! {
                biased;
                answer = &mut asked => match answer {
                    Some(answer) => return Some(answer),
                    None if stop.is_cancelled() => return None,
                    None => continue,
                },
                began = turns.wait_for(|turns| *turns > 0), if cut_off < MAX_PREEMPTIONS => drop(began),
            }
            cancel.cancel();
            cut_off += 1;
            // Wait for its end, which records what it has used.
            if let Some(answer) = asked.await {
                return Some(answer);
            }
        }
    }

    fn turn_counter(&self, provider: &str) -> watch::Sender<usize> {
        let mut all = self.0.lock();
        match all.get(provider) {
            Some(turns) => turns.clone(),
            None => all.entry(provider.to_owned()).or_default().clone(),
        }
    }
}

/// Waits until no turn calls its model. If `did`, until none has for [`QUIET_PERIOD`].
async fn wait_until_no_turn(turns: &mut watch::Receiver<usize>, did: bool) -> Option<()> {
    if !did && *turns.borrow_and_update() == 0 {
        return Some(());
    }
    loop {
        turns.wait_for(|turns| *turns == 0).await.ok()?;
        if timeout(QUIET_PERIOD, turns.wait_for(|turns| *turns > 0)).await.is_err() {
            return Some(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_turn_ends_what_is_under_way_and_that_is_asked_anew_behind_it() {
        let precedence = Arc::new(TurnPriority::default());
        let first = precedence.begin_turn("p");
        let (asked, begins, go) = (Arc::<AtomicUsize>::default(), Arc::new(Notify::new()), Arc::new(Notify::new()));
        let task = chorus_runtime::spawn({
            let (precedence, asked, begins, go) = (precedence.clone(), asked.clone(), begins.clone(), go.clone());
            async move {
                let ask = |cancel: CancellationToken| {
                    let number = asked.fetch_add(1, Ordering::SeqCst);
                    begins.notify_one();
                    let go = go.clone();
                    async move {
                        tokio::select! {
                            () = cancel.cancelled() => None,
                            () = go.notified() => Some(number),
                        }
                    }
                };
                precedence.run_between_turns(Some("p"), &CancellationToken::new(), ask).await
            }
        });
        tokio::task::yield_now().await;
        assert_eq!(asked.load(Ordering::SeqCst), 0, "a turn runs");
        // A turn of another provider has no effect.
        let _other = precedence.begin_turn("q");
        drop(first);
        begins.notified().await;
        let second = precedence.begin_turn("p");
        let third = precedence.begin_turn("p");
        tokio::task::yield_now().await;
        drop(second);
        tokio::task::yield_now().await;
        assert_eq!(asked.load(Ordering::SeqCst), 1, "one more runs");
        drop(third);
        begins.notified().await;
        go.notify_one();
        assert_eq!(task.await.unwrap(), Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_turns_cut_off_again_and_again_comes_to_its_end() {
        let (precedence, begins, go) =
            (Arc::new(TurnPriority::default()), Arc::new(Notify::new()), Arc::new(Notify::new()));
        let task = chorus_runtime::spawn({
            let (precedence, begins, go) = (precedence.clone(), begins.clone(), go.clone());
            async move {
                let ask = |cancel: CancellationToken| {
                    begins.notify_one();
                    let go = go.clone();
                    async move {
                        tokio::select! {
                            biased;
                            () = cancel.cancelled() => None,
                            () = go.notified() => Some(1),
                        }
                    }
                };
                precedence.run_between_turns(Some("p"), &CancellationToken::new(), ask).await
            }
        });
        for _ in 0..MAX_PREEMPTIONS {
            begins.notified().await;
            let _cuts_it_off = precedence.begin_turn("p");
            tokio::task::yield_now().await;
        }
        begins.notified().await;
        let _turn = precedence.begin_turn("p");
        tokio::task::yield_now().await;
        go.notify_one();
        assert_eq!(task.await.unwrap(), Some(1));
    }

    #[tokio::test]
    async fn a_stop_is_waited_for_by_nobody() {
        let precedence = TurnPriority::default();
        let _turn = precedence.begin_turn("p");
        let stop = CancellationToken::new();
        stop.cancel();
        assert_eq!(precedence.run_between_turns(Some("p"), &stop, |_| async { Some(1) }).await, None);
    }
}
