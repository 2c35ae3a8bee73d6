//! Runs a task from its start to its end.

use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_catalog::TaskRow;
use chorus_proto::EventType;
use chorus_proto::methods::tasks::TaskStatus;
use chorus_sandbox::{Exit, SandboxChild};
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::StoredMessage;
use futures_util::future::BoxFuture;
use rustix::process::Signal;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::log::TaskLog;
use super::notice::EndedTask;
use super::running_tasks::SlotGuard;
use crate::tools::CommandGuard;

/// How long a task may take to end after it was asked to.
pub(super) const TERMINATE_GRACE: Duration = Duration::from_secs(3);

/// How long to wait for the rest of the output; after that, another process holds the pipe open.
const OUTPUT_DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Bytes read at once: the capacity of a pipe.
const READ_BUFFER_LEN: usize = 64 << 10;

/// Limit on the characters of a command in an event.
const MAX_EVENT_COMMAND_CHARS: usize = 200;

/// A running task.
#[derive(Debug)]
pub(super) struct TaskRun {
    pub shared: Arc<Shared>,
    pub slot: SlotGuard,
    pub row: TaskRow,
    pub running: SandboxChild,
    pub output: Receiver,
    pub log: TaskLog,
    pub guard: Option<CommandGuard>,
}

impl TaskRun {
    /// Waits for the task's end, records it, and notifies observers and the agent.
    pub(super) async fn run_to_end(self) {
        let Self { shared, slot: taken, mut row, mut running, output, log, guard } = self;
        let over = CancellationToken::new();
        let mut writing = chorus_runtime::spawn(copy_output(output, log, taken.printed.clone(), over.clone()));
        let by_itself = tokio::select! {
            exit = running.wait() => Some(exit),
            () = taken.stop.cancelled() => None,
        };
        let stopped = by_itself.is_none();
        let exit = match by_itself {
            Some(exit) => exit,
            None => {
                running.terminate(TERMINATE_GRACE).await;
                running.wait().await
            }
        };
        let written = match timeout(OUTPUT_DRAIN_TIMEOUT, &mut writing).await {
            Ok(log) => log,
            Err(_) => {
                over.cancel();
                writing.await
            }
        };
        let (output, mut problem) = match &written {
            Ok(log) => (log.tail(), log.problem().map(|why| format!("its log is incomplete: {why}"))),
            Err(e) => (Vec::new(), Some(format!("its log is incomplete: {e}"))),
        };
        (row.exit_code, row.signal) = match exit {
            Ok(Exit::Code(code)) => (Some(code), None),
            Ok(Exit::Signal(signal)) => (None, Some(signal)),
            Ok(Exit::TimedOut) => (None, None),
            Ok(Exit::Memory) => {
                problem = Some("its processes exceeded the memory limit".into());
                (None, Some(Signal::KILL.as_raw()))
            }
            Err(e) => {
                tracing::warn!(task = %row.id, "cannot determine how a task ended: {e}");
                problem = Some(format!("its outcome is unknown: {e}"));
                (None, None)
            }
        };
        row.status = match row.exit_code {
            _ if stopped => TaskStatus::Stopped,
            Some(0) => TaskStatus::Completed,
            _ => TaskStatus::Failed,
        };
        row.ended_at = Some(shared.now());
        drop(guard);
        shared.record_end(EndedTask { row, output, problem }, taken).await;
    }
}

/// Copies the output into the log until it ends or `over` is cancelled.
async fn copy_output(
    mut from: Receiver,
    mut log: TaskLog,
    printed: watch::Sender<u64>,
    over: CancellationToken,
) -> TaskLog {
    let mut piece = Vec::with_capacity(READ_BUFFER_LEN);
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
        (taken, piece) = with_log_blocking(log, piece, |log, piece| log.write(piece)).await;
        log = taken;
        printed.send_replace(log.length());
    }
    with_log_blocking(log, piece, |log, _| log.finish()).await.0
}

/// Runs an operation on the log in a blocking thread.
async fn with_log_blocking(
    mut log: TaskLog,
    piece: Vec<u8>,
    act: impl FnOnce(&mut TaskLog, &[u8]) + Send + 'static,
) -> (TaskLog, Vec<u8>) {
    let done = chorus_runtime::spawn_blocking(move || {
        act(&mut log, &piece);
        (log, piece)
    });
    match done.await {
        Ok(done) => done,
        // Only if the runtime is shutting down or the closure panicked: nothing more is written.
        Err(e) => (TaskLog::broken(e.to_string()), Vec::new()),
    }
}

/// Shortens a command for events.
#[must_use]
pub(super) fn shorten_command(command: &str) -> String {
    match command.char_indices().nth(MAX_EVENT_COMMAND_CHARS) {
        Some((at, _)) => format!("{}…", &command[..at]),
        None => command.to_owned(),
    }
}

impl Shared {
    /// Records the end of a task in the table, in agent.json, as an event, and in the agent's context. Callers that
    /// wait for the end are woken after the table has it.
    async fn record_end(&self, ended: EndedTask, taken: SlotGuard) {
        let row = &ended.row;
        let (agent, number) = (row.agent, taken.number);
        if self.slots.is_abandoned(number) {
            tracing::info!(agent = %row.agent_name, task = %row.id, "ended the task of an agent that has moved");
            return;
        }
        tracing::info!(
            agent = %row.agent_name, task = %row.id, status = row.status.as_str(), exit_code = row.exit_code, "task ended"
        );
        if let Err(failure) = self.store.catalog.tasks.update_end(row.clone()).await {
            tracing::error!(task = %row.id, %failure, "cannot record the end of a task");
        }
        self.publish_end(row);
        let tell = self.slots.finish(number, ended);
        if let Some(outside) = self.host() {
            outside.sync_running_tasks(agent);
        }
        drop(taken);
        if let Some(ended) = tell {
            self.notify_agent(ended).await;
        }
    }

    /// Publishes the end of a task to observers.
    pub(super) fn publish_end(&self, row: &TaskRow) {
        let Some(outside) = self.host() else { return };
        let name = outside.name_and_dir(row.agent).map_or_else(|| row.agent_name.clone(), |(name, _)| name);
        let mut data = json!({
            "id": row.id,
            "command": shorten_command(&row.command),
            "status": row.status,
            "exit_code": row.exit_code,
        });
        if let (Some(signal), Some(data)) = (row.signal, data.as_object_mut()) {
            data.insert("signal".to_owned(), signal.into());
        }
        let conversation = ConversationKey::from_stored(row.agent, row.conversation_id);
        outside.publish_event(EventType::TaskFinished, name, conversation, data);
    }

    /// Notifies an agent of the end of its task.
    pub(super) fn notify_agent(&self, ended: EndedTask) -> BoxFuture<'static, ()> {
        let outside = self.host();
        self.notify_agent_with(ended, move |conversation, message, key| match &outside {
            Some(outside) => outside.append_message(conversation, message, key),
            None => Box::pin(std::future::ready(Err(Error::stopping()))),
        })
    }

    /// Like [`Shared::notify_agent`], with the caller's way of appending a message. The append has started when this
    /// returns.
    pub(super) fn notify_agent_with(
        &self,
        ended: EndedTask,
        append: impl Fn(ConversationKey, StoredMessage, String) -> BoxFuture<'static, Result<()>>,
    ) -> BoxFuture<'static, ()> {
        let (id, key) = (ended.row.id.clone(), ended.message_key());
        let conversation = ConversationKey::from_stored(ended.row.agent, ended.row.conversation_id);
        let added = match ended.message(self.now()) {
            Ok(message) => append(conversation, message, key),
            Err(e) => Box::pin(std::future::ready(Err(Error::internal(e.to_string())))),
        };
        let store = self.store.clone();
        Box::pin(async move {
            let told = match added.await {
                Ok(()) => store.catalog.tasks.mark_reported(id.clone()).await,
                Err(failure) => Err(failure),
            };
            if let Err(failure) = told {
                tracing::warn!(task = %id, %failure, "cannot notify an agent that its task ended; retrying at the next start");
            }
        })
    }
}
