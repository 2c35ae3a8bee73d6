//! Turns signals into requests to stop, or to read the configuration again.

use chorus_base::error::{Error, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// The requests to stop a daemon, by name of the signal: the first one asks for an orderly stop, the second ends it at
/// once.
pub type StopSignals = mpsc::Receiver<&'static str>;

/// The requests to read the configuration again.
pub type ReloadSignals = mpsc::Receiver<()>;

/// Receives SIGTERM, SIGINT and SIGHUP of this process from now on. Must be called inside a runtime. SIGHUP is what a
/// terminal sends when it closes: with `has_terminal` it stops the daemon, otherwise it has the configuration read again.
pub fn listen(has_terminal: bool) -> Result<(StopSignals, ReloadSignals)> {
    let mut signals = Signals::register()?;
    let (stop, stops) = mpsc::channel(2);
    let (reload, reloads) = mpsc::channel(1);
    chorus_runtime::spawn(async move {
        loop {
            match signals.next().await {
                HANGUP if !has_terminal => {
                    // One that is pending reads the file after this signal, too.
                    let _ = reload.try_send(());
                }
                name if stop.send(name).await.is_err() => return,
                _ => {}
            }
        }
    });
    Ok((stops, reloads))
}

const HANGUP: &str = "SIGHUP";

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
            _ = self.hangup.recv() => HANGUP,
        }
    }
}
