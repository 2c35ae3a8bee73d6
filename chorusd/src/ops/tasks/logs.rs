//! `tasks.logs`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

use chorus_proto::ErrorKind;
use chorus_proto::methods::tasks::{LogsParams, LogsResult, TaskStatus};
use tokio::time::{Instant, timeout_at};

use super::{find, one};
use crate::failure::{Failure, Result};
use crate::ops::{Ops, blocking};

/// Bytes of a page. JSON may need six for one.
const PAGE: usize = 256 << 10;

/// How long a page is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// A page of what a task printed.
///
/// # Errors
/// `not_found` where there is no such task, or no log of it any more; `storage_failed`.
pub async fn logs(ops: &Ops, params: LogsParams) -> Result<LogsResult> {
    let offset = params.offset.unwrap_or(0);
    let most = PAGE.min(ops.config.max_frame / 8).max(4);
    let until = Instant::now() + PATIENCE;
    loop {
        // First how it is, then what it printed: of one that has ended, the log is whole.
        let task = one(ops, find(ops, &params.id).await?).await?;
        let runs = task.status == TaskStatus::Running;
        let path = task.log_path.clone();
        let page = blocking(move || read(Path::new(&path), offset, most, runs)).await?;
        let waits = params.wait && runs && page.data.is_empty() && Instant::now() < until;
        if !waits {
            let next = (runs || page.more).then_some(offset.saturating_add(page.used));
            return Ok(LogsResult { task, data: page.data, next });
        }
        let _ = timeout_at(until, ops.registry.world.tasks.more_than(&task.id, offset.saturating_add(page.seen))).await;
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Page {
    data: String,
    /// Bytes that the data stands for.
    used: u64,
    /// Bytes that were there; half a character at the end waits for its other half.
    seen: u64,
    /// The file goes on.
    more: bool,
}

/// Blocks.
fn read(path: &Path, offset: u64, most: usize, grows: bool) -> Result<Page> {
    let failed = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => Failure::new(ErrorKind::NotFound, format!("the log {} is gone", path.display()))
            .hint("it went with its agent's directory; `chorusctl tasks show` has what is known"),
        _ => Failure::io(format_args!("cannot read {}", path.display()), &e),
    };
    let file = File::open(path).map_err(failed)?;
    // Past what any file can have nothing can be read.
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
    let used = if full || grows { length - begun(&piece) } else { length };
    let data = String::from_utf8_lossy(&piece[..used]).into_owned();
    let more = full && file.metadata().map_err(failed)?.len() > offset + used as u64;
    Ok(Page { data, used: used as u64, seen: length as u64, more })
}

/// Bytes at the end that are the beginning of a character.
fn begun(bytes: &[u8]) -> usize {
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
            let page = read(&path, offset, 5, false).unwrap();
            text.push_str(&page.data);
            offset += page.used;
            if !page.more {
                break;
            }
            assert!(page.used > 0);
        }
        assert_eq!((&*text, offset), ("aé🎉\0b", 9));
        assert_eq!(read(&path, 99, 5, false).unwrap(), Page { data: String::new(), used: 0, seen: 0, more: false });
        assert_eq!(read(&path, u64::MAX, 5, true).unwrap().used, 0);
    }

    #[test]
    fn half_a_character_waits_while_the_task_runs_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, b"a\xf0\x9f").unwrap();
        assert_eq!(read(&path, 0, 50, true).unwrap(), Page { data: "a".into(), used: 1, seen: 3, more: false });
        assert_eq!(read(&path, 1, 50, true).unwrap(), Page { data: String::new(), used: 0, seen: 2, more: false });
        assert_eq!(read(&path, 1, 50, false).unwrap().data, "\u{fffd}");
        for (bytes, count) in [(&b"\xff"[..], 0), (b"a", 0), (b"\xc3", 1), (b"\x80\x80\x80\x80", 0), (b"", 0)] {
            assert_eq!(begun(bytes), count, "{bytes:?}");
        }
    }
}
