//! Running a command to its end.

use std::io;
use std::process::Stdio;

use tokio_util::sync::CancellationToken;

use super::{Exit, Job, Sandbox};

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    pub exit: Exit,
    /// What it printed on both streams, as it came: beginning and end, with a line between that says how many bytes are
    /// left out.
    pub output: String,
    /// It was ended because the turn was.
    pub cancelled: bool,
}

/// Runs a command until it ends, its time is up, or `cancel` says so. None of its processes is left.
///
/// # Errors
/// A command that cannot be started.
pub async fn run(sandbox: &Sandbox, job: &Job, cancel: &CancellationToken) -> io::Result<Ran> {
    let (mut reader, writer) = io::pipe()?;
    let mut running = sandbox.start(job, Stdio::from(writer.try_clone()?), Stdio::from(writer))?;
    let printed = tokio::task::spawn_blocking(move || {
        let mut printed = Vec::new();
        io::Read::read_to_end(&mut reader, &mut printed).map(|_| printed)
    });
    let (exit, cancelled) = tokio::select! {
        exit = running.wait() => (exit?, false),
        () = cancel.cancelled() => {
            running.end(std::time::Duration::from_secs(2)).await;
            (running.wait().await?, true)
        }
    };
    let printed = printed.await.map_err(io::Error::other)??;
    Ok(Ran { exit, output: String::from_utf8_lossy(&printed).into_owned(), cancelled })
}
