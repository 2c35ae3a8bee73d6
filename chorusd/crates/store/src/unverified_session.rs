//! Reads a session file while another thread hashes its messages.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc;

use bytes::Bytes;
use chorus_base::error::Result;
use chorus_session::FormatError;
use chorus_session::block_reader::{BLOCK_BYTES, BlockHash, read_unhashed};
use chorus_session::file::UnhashedSessionFile;
use tokio::task::JoinHandle;

use super::session_files::{hash_messages, read_error};

/// A session file whose messages may be used, and that says later if they are those that were saved.
#[derive(Debug)]
pub struct UnverifiedSession {
    pub file: UnhashedSessionFile,
    /// The hash of the messages, unless `file` has it.
    hash: JoinHandle<String>,
}

impl UnverifiedSession {
    /// Reads a file. Each block of it is hashed on a thread of the runtime while the next one is read. Blocks.
    ///
    /// # Errors
    /// Those of [`session_files::read`](crate::session_files::read).
    pub fn read(path: &Path) -> Result<std::result::Result<Self, FormatError>> {
        let failed = |e: io::Error| read_error(path, &e);
        let source = File::open(path).map_err(failed)?;
        let size = usize::try_from(source.metadata().map_err(failed)?.len()).unwrap_or(0);
        Self::read_from(&source, size).map_err(failed)
    }

    /// Reads a file that had `size` bytes when it was opened.
    fn read_from(source: impl Read, size: usize) -> io::Result<std::result::Result<Self, FormatError>> {
        // Room for every block: the reader must not wait for a thread that may start only after it.
        let (blocks, read) = mpsc::sync_channel::<Bytes>(size / BLOCK_BYTES + 2);
        let hash = chorus_runtime::spawn_blocking(move || {
            let mut hash = BlockHash::default();
            read.iter().for_each(|block| hash.add(&block));
            hash.finish()
        });
        let mut is_complete = true;
        let file = read_unhashed(source, size, |block| is_complete &= blocks.try_send(block).is_ok());
        let mut file = match file? {
            Ok(file) => file,
            Err(error) => return Ok(Err(error)),
        };
        // The file has grown since its size was asked for.
        if !is_complete && file.sha256.is_none() {
            file.sha256 = Some(hash_messages(&file.messages));
        }
        Ok(Ok(Self { file, hash }))
    }

    /// Returns the hash of the messages, which may be waited for. `None` if the thread ended without one: then the daemon ends.
    pub async fn sha256(self) -> Option<String> {
        match self.file.sha256 {
            Some(sha256) => Some(sha256),
            None => self.hash.await.ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use chorus_session::file::{parse, write_end, write_header, write_message};
    use chorus_session::stored_message::StoredMessage;

    use super::*;

    /// Returns a session file of several blocks in the native layout.
    fn long_file() -> Vec<u8> {
        let header = r#"{"schema":2,"session_id":"2026-02-12_x","timestamp":"2026-02-12T14:30:00Z","messages":[]}"#;
        let mut header = parse(&Bytes::from_static(header.as_bytes())).unwrap().header;
        header.message_count = 1000;
        let mut out = Vec::new();
        write_header(&mut out, &header).unwrap();
        for number in 0..1000 {
            let (id, text) = (number.to_string(), "a word ".repeat(300));
            let json =
                format!(r#"{{"id":"{id}","role":"user","content":"{text}","timestamp":"2026-02-12T09:00:00Z"}}"#);
            let message = StoredMessage::parse(Bytes::from(json.into_bytes())).unwrap();
            write_message(&mut out, message.json(), number == 0).unwrap();
        }
        write_end(&mut out).unwrap();
        out.flush().unwrap();
        out
    }

    #[test]
    fn a_file_that_grows_while_it_is_read_has_the_hash_of_what_was_read() {
        let bytes = long_file();
        assert!(bytes.len() > 6 * BLOCK_BYTES);
        let expected = parse(&Bytes::from(bytes.clone())).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        let _context = runtime.enter();
        // The thread that hashes starts after the file is read.
        let (start, started) = mpsc::sync_channel::<()>(1);
        let busy = runtime.spawn_blocking(move || started.recv());
        let grown = UnverifiedSession::read_from(&bytes[..], 100).unwrap().unwrap();
        let known = UnverifiedSession::read_from(&bytes[..], bytes.len()).unwrap().unwrap();
        start.send(()).unwrap();
        assert_eq!(grown.file.sha256.as_ref(), Some(&expected.sha256), "there was no room for all blocks");
        assert_eq!(known.file.sha256, None);
        assert_eq!(grown.file.messages.len(), 1000);
        for session in [grown, known] {
            assert_eq!(runtime.block_on(session.sha256()).as_ref(), Some(&expected.sha256));
        }
        runtime.block_on(busy).unwrap().unwrap();
    }
}
