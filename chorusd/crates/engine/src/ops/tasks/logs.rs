//! The operation `tasks.logs`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_catalog::TaskTable;
use chorus_config::Config;
use chorus_proto::ErrorKind;
use chorus_proto::methods::tasks::{LogsParams, LogsResult, TaskStatus};
use chorus_runtime::run_blocking;
use tokio::time::{Instant, timeout_at};

use super::{find_task, single_task};
use crate::ops::agent::AgentResolver;
use crate::tasks::Tasks;

/// The limit on the bytes of a page. In JSON each may become six.
const MAX_PAGE_BYTES: usize = 256 << 10;

/// The time that a request waits for new output.
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns a page of a task's output.
///
/// # Errors
/// `not_found` if there is no such task, or its log was deleted; `storage_failed`.
pub async fn logs(
    agents: &AgentResolver,
    table: &Arc<dyn TaskTable>,
    tasks: &Tasks,
    config: &Config,
    params: LogsParams,
) -> Result<LogsResult> {
    let offset = params.offset.unwrap_or(0);
    let most = MAX_PAGE_BYTES.min(config.max_frame / 8).max(4);
    let until = Instant::now() + WAIT_TIMEOUT;
    // The log is a file of the daemon that has the agent.
    agents.claims.ensure_by_id(find_task(table, &params.id).await?.agent).await?;
    loop {
        // The status is read before the log, so that the log of an ended task is complete.
        let task = single_task(agents, find_task(table, &params.id).await?).await?;
        let runs = task.status == TaskStatus::Running;
        let path = task.log_path.clone();
        let page = run_blocking(move || read_page(Path::new(&path), offset, most, runs)).await?;
        let waits = params.wait && runs && page.data.is_empty() && Instant::now() < until;
        if !waits {
            let next = (runs || page.has_more).then_some(offset.saturating_add(page.consumed));
            return Ok(LogsResult { task, data: page.data, next });
        }
        let _ = timeout_at(until, tasks.wait_for_output(&task.id, offset.saturating_add(page.available))).await;
    }
}

#[derive(Debug, PartialEq, Eq)]
struct LogPage {
    data: String,
    /// Bytes of the log that the data stands for.
    consumed: u64,
    /// Bytes that were available; an incomplete character at the end waits for its rest.
    available: u64,
    /// True if the file has more bytes.
    has_more: bool,
}

/// Reads a page. Blocks.
fn read_page(path: &Path, offset: u64, most: usize, grows: bool) -> Result<LogPage> {
    let failed = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => {
            Error::new(ErrorKind::NotFound, format!("the log {} no longer exists", path.display()))
                .hint("it was deleted with the agent's directory; see `chorusctl tasks show`")
        }
        _ => Error::io(format_args!("cannot read {}", path.display()), &e),
    };
    let file = File::open(path).map_err(failed)?;
    // An offset beyond the end of the file reads nothing.
    let offset = offset.min(file.metadata().map_err(failed)?.len());
    let mut piece = vec![0; most];
    let mut length = 0;
    while length < most {
        match file.read_at(&mut piece[length..], offset + length as u64).map_err(failed)? {
            0 => break,
            read => length += read,
        }
    }
    piece.truncate(length);
    let full = length == most;
    let used = if full || grows { length - incomplete_char_bytes(&piece) } else { length };
    let data = String::from_utf8_lossy(&piece[..used]).into_owned();
    let more = full && file.metadata().map_err(failed)?.len() > offset + used as u64;
    Ok(LogPage { data, consumed: used as u64, available: length as u64, has_more: more })
}

/// Returns the number of bytes at the end that form an incomplete character.
fn incomplete_char_bytes(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(3);
    let last = bytes[from..].iter().rposition(|byte| !(0x80..0xC0).contains(byte));
    let Some(at) = last.map(|at| from + at) else { return 0 };
    match std::str::from_utf8(&bytes[at..]) {
        Err(e) if e.error_len().is_none() => bytes.len() - at,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_between_characters() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, "aé🎉\u{0}b".as_bytes()).unwrap();
        let mut text = String::new();
        let mut offset = 0;
        loop {
            let page = read_page(&path, offset, 5, false).unwrap();
            text.push_str(&page.data);
            offset += page.consumed;
            if !page.has_more {
                break;
            }
            assert!(page.consumed > 0);
        }
        assert_eq!((&*text, offset), ("aé🎉\0b", 9));
        assert_eq!(
            read_page(&path, 99, 5, false).unwrap(),
            LogPage { data: String::new(), consumed: 0, available: 0, has_more: false }
        );
        assert_eq!(read_page(&path, u64::MAX, 5, true).unwrap().consumed, 0);
    }

    #[test]
    fn half_a_character_waits_while_the_task_runs_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, b"a\xf0\x9f").unwrap();
        assert_eq!(
            read_page(&path, 0, 50, true).unwrap(),
            LogPage { data: "a".into(), consumed: 1, available: 3, has_more: false }
        );
        assert_eq!(
            read_page(&path, 1, 50, true).unwrap(),
            LogPage { data: String::new(), consumed: 0, available: 2, has_more: false }
        );
        assert_eq!(read_page(&path, 1, 50, false).unwrap().data, "\u{fffd}");
        for (bytes, count) in [(&b"\xff"[..], 0), (b"a", 0), (b"\xc3", 1), (b"\x80\x80\x80\x80", 0), (b"", 0)] {
            assert_eq!(incomplete_char_bytes(bytes), count, "{bytes:?}");
        }
    }
}
