//! Work on sessions that is done once a day, if the configuration has an age for it.

use std::time::Duration;

use chorus_clock::Clock;
use chorus_config::Config;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::ops::settings::EffectiveConfig;

/// The interval of the runs.
const RUN_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// Works now and once a day until `stop` is cancelled, and whenever the configured age changes, for which work that is going on is cancelled.
/// Does nothing without an age.
pub(super) async fn repeat_daily<'a>(
    clock: &Clock,
    config: &EffectiveConfig,
    stop: &CancellationToken,
    age_of: fn(&Config) -> Option<Duration>,
    work: impl Fn(Duration, CancellationToken) -> BoxFuture<'a, ()> + Send,
) {
    let mut reloads = config.subscribe();
    loop {
        let age = age_of(&config.current());
        let next = clock.ticks().after(RUN_INTERVAL);
        if let Some(age) = age {
            let change = stop.child_token();
            let mut working = work(age, change.clone());
            loop {
                tokio::select! {
                    () = &mut working => break,
                    Ok(()) = reloads.changed() => {
                        if age_of(&config.current()) != Some(age) {
                            change.cancel();
                        }
                    }
                }
            }
            if change.is_cancelled() && !stop.is_cancelled() {
                continue;
            }
        }
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = clock.sleep_until(next) => break,
                Ok(()) = reloads.changed() => {
                    if age_of(&config.current()) != age {
                        break;
                    }
                }
            }
        }
    }
}
