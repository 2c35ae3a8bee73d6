//! Starts tasks.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::private_fs::create_private;
use chorus_catalog::TaskRow;
use chorus_proto::EventType;
use chorus_proto::methods::tasks::TaskStatus;
use chorus_redact::Redactor;
use chorus_sandbox::{CommandSpec, Sandbox, SandboxChild};
use chorus_session::conversation::ConversationKey;
use serde_json::json;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::log::TaskLog;
use super::run::{self, TaskRun};
use super::running_tasks::SlotGuard;
use super::{LOGS_DIR, Tasks, process_identity};
use crate::tools::CommandGuard;

/// Attempts to find a free log name: logs with the next numbers may remain from a table that was lost.
const MAX_LOG_NAME_ATTEMPTS: usize = 10_000;

/// Limit on the bytes of an agent's logs, above which no further task is started. Logs are never removed automatically.
const MAX_LOG_BYTES: u64 = 1 << 30;

/// How long the sandbox of a command may take to be set up.
const SETUP_TIMEOUT: Duration = Duration::from_secs(30);

/// A command to run in the background.
#[derive(Debug)]
pub struct TaskSpec {
    pub agent: Uuid,
    /// The conversation that hears of its end.
    pub conversation: ConversationKey,
    pub agent_name: String,
    /// The agent's directory, as an absolute path.
    pub dir: PathBuf,
    /// The command as shown to people and stored in the table.
    pub command: String,
    pub command_spec: CommandSpec,
    /// Replaces secrets in the log; `None` if they may stay.
    pub redactor: Option<Arc<Redactor>>,
    /// Dropped when the command has ended; `None` if it changes no files of other conversations.
    pub guard: Option<CommandGuard>,
}

impl Tasks {
    /// Starts a command. The task's row is durable when this returns.
    pub async fn start(&self, sandbox: &Sandbox, start: TaskSpec) -> Result<TaskRow, String> {
        let (taken, log) = self.reserve_slot_and_log(&start).await?;
        let number = taken.number;
        let path = start.dir.join(LOGS_DIR).join(log_file_name(number));
        let begun = self.launch(sandbox, start, taken, log).await;
        if begun.is_err() {
            let _ = chorus_runtime::spawn_blocking(move || std::fs::remove_file(path)).await;
        }
        begun
    }

    /// Acquires a slot and creates an empty log with its number.
    async fn reserve_slot_and_log(&self, start: &TaskSpec) -> Result<(SlotGuard, TaskLog), String> {
        for _ in 0..MAX_LOG_NAME_ATTEMPTS {
            let taken = self.shared.slots.acquire(start.agent)?;
            let dir = start.dir.join(LOGS_DIR);
            let path = dir.join(log_file_name(taken.number));
            let redactor = start.redactor.clone();
            let made = chorus_runtime::spawn_blocking(move || create_log(&dir, &path, redactor.as_ref())).await;
            match made.map_err(io::Error::other).and_then(|made| made) {
                Ok(log) => return Ok((taken, log)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(format!("not started: cannot create its log: {e}")),
            }
        }
        Err("not started: no free name for its log".into())
    }

    async fn launch(
        &self,
        sandbox: &Sandbox,
        start: TaskSpec,
        taken: SlotGuard,
        log: TaskLog,
    ) -> Result<TaskRow, String> {
        let begun = spawn_confined(sandbox, &start.command_spec, &taken.stop).await;
        let (mut running, output) = begun.map_err(|e| format!("not started: {e}"))?;
        let pid = running.pid();
        let row = TaskRow {
            id: format!("t{}", taken.number),
            agent: start.agent,
            conversation_id: start.conversation.stored_id(),
            agent_name: start.agent_name,
            command: start.command,
            pid,
            pid_started: process_identity::child_start_time(pid).unwrap_or(0),
            boot: process_identity::boot_id(),
            status: TaskStatus::Running,
            exit_code: None,
            signal: None,
            started_at: self.shared.now(),
            ended_at: None,
            log_path: format!("{LOGS_DIR}/{}", log_file_name(taken.number)),
        };
        let mut insert = self.shared.store.catalog.tasks.insert(row.clone());
        let inserted = tokio::select! {
            inserted = &mut insert => inserted,
            // The database may take long: what must end now does not wait for it.
            () = taken.stop.cancelled() => {
                running.terminate(Duration::ZERO).await;
                insert.await
            }
        };
        if let Err(failure) = inserted {
            running.terminate(Duration::ZERO).await;
            return Err(format!("not started: cannot record the task ({failure})"));
        }
        self.shared.slots.set_running(taken.number, row.clone());
        tracing::info!(agent = %row.agent_name, task = %row.id, pid, "task started");
        if let Some(outside) = self.shared.host() {
            let data = json!({"id": row.id, "command": run::shorten_command(&row.command), "pid": pid});
            outside.publish_event(EventType::TaskStarted, row.agent_name.clone(), start.conversation, data);
            outside.sync_running_tasks(row.agent);
        }
        let (shared, guard) = (self.shared.clone(), start.guard);
        let run = TaskRun { shared, slot: taken, row: row.clone(), running, output, log, guard };
        chorus_runtime::spawn(run.run_to_end());
        Ok(row)
    }
}

fn log_file_name(number: u64) -> String {
    format!("t{number}.log")
}

/// Creates the log unless the agent's logs exceed the limit. Blocks.
fn create_log(dir: &Path, path: &Path, redactor: Option<&Arc<Redactor>>) -> io::Result<TaskLog> {
    create_private(dir)?;
    let sizes = std::fs::read_dir(dir)?.flatten().filter_map(|entry| Some(entry.metadata().ok()?.len()));
    if sizes.sum::<u64>() >= MAX_LOG_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::QuotaExceeded,
            format!(
                "the task logs of this agent reached the limit of {} MiB; run the command in the foreground, or \
                 ask the user to delete old logs in {}",
                MAX_LOG_BYTES >> 20,
                dir.display()
            ),
        ));
    }
    TaskLog::create(path, redactor)
}

/// Starts the command and waits until it is confined, so that its agent may be renamed from then on. Nothing of it is left if
/// that fails.
async fn spawn_confined(
    sandbox: &Sandbox,
    job: &CommandSpec,
    stop: &CancellationToken,
) -> io::Result<(SandboxChild, Receiver)> {
    match spawn_confined_once(sandbox, job, stop).await {
        // A path that was to be hidden may have disappeared in the meantime: another attempt takes those that exist now.
        Err(e) if e.kind() == io::ErrorKind::Other && !stop.is_cancelled() => {
            spawn_confined_once(sandbox, job, stop).await
        }
        begun => begun,
    }
}

async fn spawn_confined_once(
    sandbox: &Sandbox,
    job: &CommandSpec,
    stop: &CancellationToken,
) -> io::Result<(SandboxChild, Receiver)> {
    let (mut running, output) = spawn_command(sandbox, job)?;
    let ready = tokio::select! {
        ready = timeout(SETUP_TIMEOUT, running.wait_until_ready()) => ready.unwrap_or_else(|_| {
            Err(io::Error::new(io::ErrorKind::TimedOut, "its sandbox was not set up in time"))
        }),
        () = stop.cancelled() => Err(io::Error::other("it was stopped before")),
    };
    match ready {
        Ok(()) => Ok((running, output)),
        Err(e) => {
            running.terminate(Duration::ZERO).await;
            Err(e)
        }
    }
}

/// Starts the command with both output streams in one pipe, so that their order is preserved.
fn spawn_command(sandbox: &Sandbox, job: &CommandSpec) -> io::Result<(SandboxChild, Receiver)> {
    let (reader, writer) = io::pipe()?;
    let output = Receiver::from_owned_fd(OwnedFd::from(reader))?;
    let running = sandbox.start(job, Stdio::from(writer.try_clone()?), Stdio::from(writer))?;
    Ok((running, output))
}
