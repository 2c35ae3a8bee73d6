//! A task from its start to its end.

use std::sync::Arc;
use std::time::Duration;

use chorus_proto::EventType;
use chorus_proto::methods::tasks::TaskStatus;
use futures_util::future::BoxFuture;
use rustix::process::Signal;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Shared;
use super::log::Log;
use super::notice::Ended;
use super::slots::Taken;
use crate::failure::{Failure, Result};
use crate::message::Stored;
use crate::sandbox::{Exit, Running};
use crate::store::catalog::TaskRow;

/// How long a task that is to end has for it.
pub const GRACE: Duration = Duration::from_secs(3);

/// How long what it printed last may be on its way; longer, somebody else holds the pipe.
const LAST_OUTPUT: Duration = Duration::from_secs(2);

/// Bytes that are read at once: what a pipe holds.
const PIECE: usize = 64 << 10;

/// Characters of a command in an event.
const SHOWN: usize = 200;

/// A task that runs.
#[derive(Debug)]
pub struct Run {
    pub shared: Arc<Shared>,
    pub taken: Taken,
    pub row: TaskRow,
    pub running: Running,
    pub output: Receiver,
    pub log: Log,
}

impl Run {
    /// Sees it to its end, writes that down, and tells whoever is to hear of it.
    pub async fn finish(self) {
        let Self { shared, taken, mut row, mut running, output, log } = self;
        let over = CancellationToken::new();
        let mut writing = tokio::spawn(write(output, log, taken.printed.clone(), over.clone()));
        let by_itself = tokio::select! {
            exit = running.wait() => Some(exit),
            () = taken.stop.cancelled() => None,
        };
        let stopped = by_itself.is_none();
        let exit = match by_itself {
            Some(exit) => exit,
            None => {
                running.end(GRACE).await;
                running.wait().await
            }
        };
        let written = match timeout(LAST_OUTPUT, &mut writing).await {
            Ok(log) => log,
            Err(_) => {
                over.cancel();
                writing.await
            }
        };
        let (output, mut problem) = match &written {
            Ok(log) => (log.end(), log.problem().map(|why| format!("its log is not whole: {why}"))),
            Err(e) => (Vec::new(), Some(format!("its log is not whole: {e}"))),
        };
        (row.exit_code, row.signal) = match exit {
            Ok(Exit::Code(code)) => (Some(code), None),
            Ok(Exit::Signal(signal)) => (None, Some(signal)),
            Ok(Exit::TimedOut) => (None, None),
            Ok(Exit::Memory) => {
                problem = Some("its processes used more memory than they may".into());
                (None, Some(Signal::KILL.as_raw()))
            }
            Err(e) => {
                tracing::warn!(task = %row.id, "how a task ended is not known: {e}");
                problem = Some(format!("it was not run to an end that is known: {e}"));
                (None, None)
            }
        };
        row.status = match row.exit_code {
            _ if stopped => TaskStatus::Stopped,
            Some(0) => TaskStatus::Completed,
            _ => TaskStatus::Failed,
        };
        row.ended_at = Some(shared.now());
        shared.ended(Ended { row, output, problem }, taken).await;
    }
}

/// Writes what is printed into the log, to its end or until it is `over`.
async fn write(mut from: Receiver, mut log: Log, printed: watch::Sender<u64>, over: CancellationToken) -> Log {
    let mut piece = Vec::with_capacity(PIECE);
    loop {
        piece.clear();
        let read = tokio::select! {
            read = from.read_buf(&mut piece) => read,
            () = over.cancelled() => break,
        };
        if !matches!(read, Ok(1..)) {
            break;
        }
        let taken;
        (taken, piece) = blocking(log, piece, |log, piece| log.write(piece)).await;
        log = taken;
        printed.send_replace(log.length());
    }
    blocking(log, piece, |log, _| log.finish()).await.0
}

/// Does what blocks where it may.
async fn blocking(mut log: Log, piece: Vec<u8>, act: impl FnOnce(&mut Log, &[u8]) + Send + 'static) -> (Log, Vec<u8>) {
    let done = tokio::task::spawn_blocking(move || {
        act(&mut log, &piece);
        (log, piece)
    });
    match done.await {
        Ok(done) => done,
        // Only where the runtime goes down or the closure panicked: nothing is written any more.
        Err(e) => (Log::broken(e.to_string()), Vec::new()),
    }
}

/// A command as events show it.
#[must_use]
pub fn shown(command: &str) -> String {
    match command.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &command[..at]),
        None => command.to_owned(),
    }
}

impl Shared {
    /// A task has ended: in the table, in agent.json, among the events, in its agent's conversation. Whoever waits for the
    /// end hears of it when the table has it.
    async fn ended(&self, ended: Ended, taken: Taken) {
        let row = &ended.row;
        let (agent, number) = (row.agent, taken.number);
        tracing::info!(
            agent = %row.agent_name, task = %row.id, status = row.status.as_str(), exit_code = row.exit_code, "a task has ended"
        );
        if let Err(failure) = self.store.catalog.end_task(row.clone()).await {
            tracing::error!(task = %row.id, %failure, "the end of a task cannot be written down");
        }
        self.announce(row);
        let tell = self.slots.ended(number, ended);
        if let Some(outside) = self.outside() {
            outside.running_changed(agent);
        }
        drop(taken);
        if let Some(ended) = tell {
            self.tell(ended).await;
        }
    }

    /// Tells observers of an end.
    pub(super) fn announce(&self, row: &TaskRow) {
        let Some(outside) = self.outside() else { return };
        let name = outside.place_of(row.agent).map_or_else(|| row.agent_name.clone(), |(name, _)| name);
        let mut data = json!({
            "id": row.id,
            "command": shown(&row.command),
            "status": row.status,
            "exit_code": row.exit_code,
        });
        if let (Some(signal), Some(data)) = (row.signal, data.as_object_mut()) {
            data.insert("signal".to_owned(), signal.into());
        }
        outside.announce(EventType::TaskFinished, name, data);
    }

    /// Tells an agent of an end.
    pub(super) fn tell(&self, ended: Ended) -> BoxFuture<'static, ()> {
        let outside = self.outside();
        self.tell_by(ended, move |agent, message, key| match &outside {
            Some(outside) => outside.append(agent, message, key),
            None => Box::pin(std::future::ready(Err(Failure::stopping()))),
        })
    }

    /// The same by a way of the caller's. It is begun when this returns.
    pub(super) fn tell_by(
        &self,
        ended: Ended,
        append: impl Fn(Uuid, Stored, String) -> BoxFuture<'static, Result<()>>,
    ) -> BoxFuture<'static, ()> {
        let (agent, id, key) = (ended.row.agent, ended.row.id.clone(), ended.key());
        let added = match ended.message(self.now()) {
            Ok(message) => append(agent, message, key),
            Err(e) => Box::pin(std::future::ready(Err(Failure::internal(e.to_string())))),
        };
        let store = self.store.clone();
        Box::pin(async move {
            let told = match added.await {
                Ok(()) => store.catalog.told_of_task(id.clone()).await,
                Err(failure) => Err(failure),
            };
            if let Err(failure) = told {
                tracing::warn!(task = %id, %failure, "an agent was not told that its task has ended; the next start does it");
            }
        })
    }
}
