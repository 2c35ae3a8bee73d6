//! What a task prints, on its way into a file: the beginning goes there at once, of a flood only the end follows.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use crate::redact::{Flow, Redactor};

/// Bytes from the beginning that are kept.
const HEAD: u64 = 64 << 20;

/// Bytes from the end that are kept behind a longer beginning.
const TAIL: usize = 64 << 10;

/// A log that is written.
#[derive(Debug)]
pub struct Log {
    /// `None`: it could not be written any more.
    file: Option<File>,
    head: u64,
    most: u64,
    /// Bytes that came.
    came: u64,
    /// The last bytes that came.
    tail: Vec<u8>,
    /// Why it is not whole.
    problem: Option<String>,
    /// Takes secrets out of what came, before anything else is done with it.
    flow: Option<Flow>,
}

impl Log {
    /// Makes the file, of mode 0600, where none may be. `redactor`: what keeps secrets out of it.
    ///
    /// # Errors
    /// What the system says.
    pub fn create(path: &Path, redactor: Option<&Arc<Redactor>>) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
        Ok(Self { flow: redactor.map(Redactor::flow), ..Self::new(file, HEAD) })
    }

    /// One that takes nothing.
    #[must_use]
    pub fn broken(problem: String) -> Self {
        let (head, most, came) = (0, 0, 0);
        Self { file: None, head, most, came, tail: Vec::new(), problem: Some(problem), flow: None }
    }

    fn new(file: File, most: u64) -> Self {
        Self { file: Some(file), head: 0, most, came: 0, tail: Vec::new(), problem: None, flow: None }
    }

    /// Takes what was printed. Blocks. A disk that does not take it ends the log and not the task. What may become a secret waits until
    /// that can be told.
    pub fn write(&mut self, bytes: &[u8]) {
        match &mut self.flow {
            None => self.keep(bytes),
            Some(flow) => {
                let mut clean = Vec::with_capacity(bytes.len());
                flow.push_bytes(bytes, &mut clean);
                self.keep(&clean);
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.came += bytes.len() as u64;
        let kept = usize::try_from(self.most - self.head).unwrap_or(usize::MAX).min(bytes.len());
        self.put(&bytes[..kept]);
        self.head += kept as u64;
        let last = &bytes[bytes.len().saturating_sub(TAIL)..];
        let too_many = (self.tail.len() + last.len()).saturating_sub(TAIL);
        self.tail.drain(..too_many);
        self.tail.extend_from_slice(last);
    }

    /// Writes what waits, and the end of what is left out. Blocks.
    pub fn finish(&mut self) {
        if let Some(mut flow) = self.flow.take() {
            let mut last = Vec::new();
            // A task may be ended in the middle of one.
            flow.end_bytes(true, &mut last);
            self.keep(&last);
        }
        let rest = self.came - self.head;
        if rest == 0 {
            return;
        }
        let shown = rest.min(self.tail.len() as u64);
        if rest > shown {
            self.put(format!("\n[{} bytes are left out]\n", rest - shown).as_bytes());
        }
        let from = self.tail.len() - usize::try_from(shown).unwrap_or(0);
        let end = self.tail.split_off(from);
        self.put(&end);
        self.tail.extend_from_slice(&end);
    }

    fn put(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        if let Err(e) = file.write_all(bytes) {
            tracing::warn!("the log of a task cannot be written any more: {e}");
            self.problem = Some(e.to_string());
            self.file = None;
        }
    }

    /// Bytes in the file, as far as the beginning goes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.head
    }

    /// The last bytes that came.
    #[must_use]
    pub fn end(&self) -> Vec<u8> {
        self.tail.clone()
    }

    /// Why the file is not whole, where it is not.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
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
            let mut log = Log::new(File::create(&path).unwrap(), 10);
            (0..count).for_each(|line| log.write(format!("{line:04}\n").as_bytes()));
            log.finish();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), wanted, "where all of it fits there is no gap");
        }
        let mut log = Log::new(File::create(&path).unwrap(), 10);
        (0..40_000).for_each(|line| log.write(format!("{line:07}\n").as_bytes()));
        assert_eq!(log.length(), 10);
        log.finish();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("0000000\n00\n[254454 bytes are left out]\n"), "{}", &text[..60]);
        assert!(text.ends_with("0039998\n0039999\n") && text.len() < TAIL + 60);
        assert!(log.end().ends_with(b"0039999\n"));
    }

    #[test]
    fn a_disk_that_takes_nothing_ends_the_log_only() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut log = Log::new(full, 100);
        log.write(b"one\n");
        log.write(b"two\n");
        log.finish();
        assert!(log.problem().is_some_and(|why| why.contains("No space")));
        assert_eq!(log.end(), b"one\ntwo\n");
    }
}
