//! Turns signals into requests to stop.

use chorus_base::error::{Error, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// The requests to stop a daemon, by name of the signal: the first one asks for an orderly stop, the second ends it at
/// once.
pub type StopSignals = mpsc::Receiver<&'static str>;

/// Receives SIGTERM, SIGINT and SIGHUP of this process from now on. Must be called inside a runtime.
pub fn listen_for_stops() -> Result<StopSignals> {
    let mut signals = Signals::register()?;
    let (say, stops) = mpsc::channel(2);
    chorus_runtime::spawn(async move { while say.send(signals.next().await).await.is_ok() {} });
    Ok(stops)
}

#[derive(Debug)]
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn register() -> Result<Self> {
        let take = |kind| signal(kind).map_err(|e| Error::io("cannot handle signals", &e));
        Ok(Self {
            terminate: take(SignalKind::terminate())?,
            interrupt: take(SignalKind::interrupt())?,
            hangup: take(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.hangup.recv() => "SIGHUP",
        }
    }
}
