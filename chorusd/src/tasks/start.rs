//! Starting a task.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use chorus_proto::EventType;
use chorus_proto::methods::tasks::TaskStatus;
use serde_json::json;
use tokio::net::unix::pipe::Receiver;
use uuid::Uuid;

use super::log::Log;
use super::run::{self, Run};
use super::slots::Taken;
use super::{LOGS, Tasks, process};
use crate::redact::Redactor;
use crate::sandbox::{Job, Running, Sandbox};
use crate::store::agents_dir::create_private;
use crate::store::catalog::TaskRow;

/// Logs of that number may be there from a table that was lost.
const TRIES: usize = 10_000;

/// Bytes that the logs of an agent may have when one more is begun. Nothing removes one by itself.
const MOST_LOGGED: u64 = 1 << 30;

/// A command that is to run in the background.
#[derive(Debug)]
pub struct Start {
    pub agent: Uuid,
    pub agent_name: String,
    /// The agent's directory, absolute.
    pub dir: PathBuf,
    /// For people and for the record.
    pub command: String,
    pub job: Job,
    /// What keeps secrets out of its log; `None`: they stay in it.
    pub redactor: Option<Arc<Redactor>>,
}

impl Tasks {
    /// Starts a command. Its row is on the disk when this returns.
    ///
    /// # Errors
    /// Why it does not run, for a model.
    pub async fn start(&self, sandbox: &Sandbox, start: Start) -> Result<TaskRow, String> {
        let (taken, log) = self.place(&start).await?;
        let number = taken.number;
        let begun = self.begin(sandbox, &start, taken, log).await;
        if begun.is_err() {
            let path = start.dir.join(LOGS).join(file(number));
            let _ = tokio::task::spawn_blocking(move || std::fs::remove_file(path)).await;
        }
        begun
    }

    /// A slot, and an empty log of its number.
    async fn place(&self, start: &Start) -> Result<(Taken, Log), String> {
        for _ in 0..TRIES {
            let taken = self.shared.slots.take(start.agent)?;
            let dir = start.dir.join(LOGS);
            let path = dir.join(file(taken.number));
            let redactor = start.redactor.clone();
            let made = tokio::task::spawn_blocking(move || make(&dir, &path, redactor.as_ref())).await;
            match made.map_err(io::Error::other).and_then(|made| made) {
                Ok(log) => return Ok((taken, log)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(format!("it was not started: its log cannot be made: {e}")),
            }
        }
        Err("it was not started: no name for its log is free".into())
    }

    async fn begin(&self, sandbox: &Sandbox, start: &Start, taken: Taken, log: Log) -> Result<TaskRow, String> {
        let cannot = |e: io::Error| format!("it was not started: {e}");
        let (mut running, output) = spawn(sandbox, &start.job).map_err(cannot)?;
        let pid = running.pid();
        let row = TaskRow {
            id: format!("t{}", taken.number),
            agent: start.agent,
            agent_name: start.agent_name.clone(),
            command: start.command.clone(),
            pid,
            pid_started: process::started_of_child(pid).unwrap_or(0),
            boot: process::boot(),
            status: TaskStatus::Running,
            exit_code: None,
            signal: None,
            started_at: self.shared.now(),
            ended_at: None,
            log_path: format!("{LOGS}/{}", file(taken.number)),
        };
        if let Err(failure) = self.shared.store.catalog.add_task(row.clone()).await {
            running.end(Duration::ZERO).await;
            return Err(format!("it was not started: it cannot be written down ({failure})"));
        }
        self.shared.slots.runs(taken.number, row.clone());
        tracing::info!(agent = %row.agent_name, task = %row.id, pid, "a task has started");
        if let Some(outside) = self.shared.outside() {
            let data = json!({"id": row.id, "command": run::shown(&row.command), "pid": pid});
            outside.announce(EventType::TaskStarted, row.agent_name.clone(), data);
            outside.running_changed(row.agent);
        }
        let run = Run { shared: self.shared.clone(), taken, row: row.clone(), running, output, log };
        tokio::spawn(run.finish());
        Ok(row)
    }
}

fn file(number: u64) -> String {
    format!("t{number}.log")
}

/// Blocks.
fn make(dir: &Path, path: &Path, redactor: Option<&Arc<Redactor>>) -> io::Result<Log> {
    create_private(dir)?;
    let sizes = std::fs::read_dir(dir)?.flatten().filter_map(|entry| Some(entry.metadata().ok()?.len()));
    if sizes.sum::<u64>() >= MOST_LOGGED {
        return Err(io::Error::new(
            io::ErrorKind::QuotaExceeded,
            format!(
                "the logs of this agent's tasks have {} MiB, and no more are begun. Run the command in the foreground, or \
                 have a person remove old ones from {}",
                MOST_LOGGED >> 20,
                dir.display()
            ),
        ));
    }
    Log::create(path, redactor)
}

/// Both streams go into one pipe, so that their lines stay in order.
fn spawn(sandbox: &Sandbox, job: &Job) -> io::Result<(Running, Receiver)> {
    let (reader, writer) = io::pipe()?;
    let output = Receiver::from_owned_fd(OwnedFd::from(reader))?;
    let running = sandbox.start(job, Stdio::from(writer.try_clone()?), Stdio::from(writer))?;
    Ok((running, output))
}
