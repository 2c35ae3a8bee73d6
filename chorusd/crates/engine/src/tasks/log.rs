//! The log file of a task: its output is written at once up to a limit, and of longer output the end is appended.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use chorus_redact::{HeadTail, OutputTail, Redactor};

/// Limit on the bytes kept of the beginning.
const HEAD_LEN: u64 = 64 << 20;

/// Bytes kept of the end if the output is longer than that.
const TAIL_LEN: usize = 64 << 10;

/// A log that is being written.
#[derive(Debug)]
pub(super) struct TaskLog {
    /// `None` after a write error.
    file: Option<File>,
    head_tail: HeadTail,
    head_len: u64,
    /// The last bytes of the output.
    tail: Vec<u8>,
    /// The reason why the log is incomplete.
    problem: Option<String>,
}

impl TaskLog {
    /// Creates the file with mode 0600; fails if it exists. `redactor` replaces secrets.
    pub(super) fn create(path: &Path, redactor: Option<&Arc<Redactor>>) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
        Ok(Self::new(file, HeadTail::new(redactor, HEAD_LEN, TAIL_LEN)))
    }

    /// Creates a log that discards everything.
    #[must_use]
    pub(super) fn broken(problem: String) -> Self {
        Self { file: None, head_tail: HeadTail::new(None, 0, 0), head_len: 0, tail: Vec::new(), problem: Some(problem) }
    }

    fn new(file: File, head_tail: HeadTail) -> Self {
        Self { file: Some(file), head_tail, head_len: 0, tail: Vec::new(), problem: None }
    }

    /// Writes output. Blocks. A write error ends the log, but not the task. Bytes that may be the start of a secret are
    /// held back until more is known.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        let mut head = Vec::new();
        self.head_tail.push(bytes, &mut head);
        self.append_head(&head);
    }

    fn append_head(&mut self, bytes: &[u8]) {
        self.write_bytes(bytes);
        self.head_len += bytes.len() as u64;
        self.remember_tail(bytes);
    }

    fn remember_tail(&mut self, bytes: &[u8]) {
        let last = &bytes[bytes.len().saturating_sub(TAIL_LEN)..];
        let too_many = (self.tail.len() + last.len()).saturating_sub(TAIL_LEN);
        self.tail.drain(..too_many);
        self.tail.extend_from_slice(last);
    }

    /// Writes the bytes held back, and the end of output that was left out. Blocks.
    pub(super) fn finish(&mut self) {
        let mut head = Vec::new();
        let OutputTail { left_out, end } = self.head_tail.finish(&mut head);
        self.append_head(&head);
        if left_out > 0 {
            self.write_bytes(format!("\n[{left_out} bytes omitted]\n").as_bytes());
        }
        self.write_bytes(&end);
        self.remember_tail(&end);
    }

    fn write_bytes(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        if let Err(e) = file.write_all(bytes) {
            tracing::warn!("cannot write the log of a task: {e}");
            self.problem = Some(e.to_string());
            self.file = None;
        }
    }

    /// Returns the bytes written of the beginning.
    #[must_use]
    pub(super) fn length(&self) -> u64 {
        self.head_len
    }

    /// Returns the last bytes of the output.
    #[must_use]
    pub(super) fn tail(&self) -> Vec<u8> {
        self.tail.clone()
    }

    /// Returns the reason why the file is incomplete, if it is.
    #[must_use]
    pub(super) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_keeps_its_beginning_and_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        for (count, wanted) in [(3, "0000\n0001\n0002\n".to_owned()), (4, "0000\n0001\n0002\n0003\n".to_owned())] {
            let mut log = TaskLog::new(File::create(&path).unwrap(), HeadTail::new(None, 10, TAIL_LEN));
            (0..count).for_each(|line| log.write(format!("{line:04}\n").as_bytes()));
            log.finish();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), wanted, "where all of it fits there is no gap");
        }
        let mut log = TaskLog::new(File::create(&path).unwrap(), HeadTail::new(None, 10, TAIL_LEN));
        (0..40_000).for_each(|line| log.write(format!("{line:07}\n").as_bytes()));
        assert_eq!(log.length(), 10);
        log.finish();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("0000000\n00\n[254454 bytes omitted]\n"), "{}", &text[..60]);
        assert!(text.ends_with("0039998\n0039999\n") && text.len() < TAIL_LEN + 60);
        assert!(log.tail().ends_with(b"0039999\n"));
    }

    #[test]
    fn a_disk_that_takes_nothing_ends_the_log_only() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut log = TaskLog::new(full, HeadTail::new(None, 100, TAIL_LEN));
        log.write(b"one\n");
        log.write(b"two\n");
        log.finish();
        assert!(log.problem().is_some_and(|why| why.contains("No space")));
        assert_eq!(log.tail(), b"one\ntwo\n");
    }
}
