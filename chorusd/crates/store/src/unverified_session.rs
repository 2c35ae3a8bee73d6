//! Reads a session file while another thread hashes its messages.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use bytes::Bytes;
use chorus_base::error::Result;
use chorus_session::block_reader::{BLOCK_BYTES, BlockHash, read_blocks_unhashed, read_unhashed};
use chorus_session::file::UnhashedSessionFile;
use chorus_session::gzip::GzipFile;
use chorus_session::{FormatError, SessionInput};
use tokio::task::JoinHandle;

use super::session_files::{hash_messages, read_error};
use super::session_form;

/// Number of members from which a second thread saves more time than its start costs.
const MIN_SHARED_MEMBERS: usize = 4;

/// The members of a compressed file, in their order. Two threads inflate them: each takes the next one that nobody has taken.
struct SharedMembers<'a> {
    gzip: &'a GzipFile,
    count: usize,
    /// The next member that nobody has taken.
    next: &'a AtomicUsize,
    /// Text that the other thread has inflated.
    helped: mpsc::Receiver<(usize, io::Result<Bytes>)>,
    /// Members that are not wanted yet.
    found: BTreeMap<usize, io::Result<Bytes>>,
    wanted: usize,
}

impl SharedMembers<'_> {
    /// Returns the next member; `None` after the last one.
    fn read_next(&mut self) -> Option<io::Result<Bytes>> {
        let wanted = self.wanted;
        self.wanted += 1;
        loop {
            self.found.extend(self.helped.try_iter());
            if wanted >= self.count {
                return None;
            }
            if let Some(member) = self.found.remove(&wanted) {
                return Some(member);
            }
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number < self.count {
                self.found.insert(number, self.gzip.read_member(number));
            } else {
                // The other thread is about to send it.
                let ended = || (wanted, Err(io::Error::other("a thread that reads the session ended")));
                let (number, member) = self.helped.recv().unwrap_or_else(|_| ended());
                self.found.insert(number, member);
            }
        }
    }
}

/// A session file whose messages may be used, and that says later if they are those that were saved.
#[derive(Debug)]
pub struct UnverifiedSession {
    pub file: UnhashedSessionFile,
    /// The hash of the messages, unless `file` has it.
    hash: Option<JoinHandle<String>>,
}

impl UnverifiedSession {
    /// Reads a file. Each block of it is hashed on a thread of the runtime while the next one is read. Blocks.
    ///
    /// # Errors
    /// Those of [`session_files::read`](crate::session_files::read).
    pub fn read(path: &Path) -> Result<std::result::Result<Self, FormatError>> {
        let failed = |e: io::Error| read_error(path, &e);
        let source = session_form::open(path).map_err(failed)?;
        let read = match &source {
            SessionInput::Gzip(gzip) if let Some(members) = gzip.member_count() => Self::read_members(gzip, members),
            _ => source
                .text_bytes()
                .and_then(|size| Self::read_from(source.reader(), usize::try_from(size).unwrap_or(0))),
        };
        read.or_else(|error| FormatError::of_damage(&error).map(Err).ok_or_else(|| failed(error)))
    }

    /// Reads a compressed file. Its messages have the hash that was recorded, because each member has a checksum; without a recorded
    /// one, they are hashed.
    fn read_members(gzip: &GzipFile, count: usize) -> io::Result<std::result::Result<Self, FormatError>> {
        let Some(sha256) = gzip.messages_sha256() else {
            return Self::read_with(count, |take_block| read_shared(gzip, count, take_block));
        };
        Ok(read_shared(gzip, count, &mut |_| ())?.map(|mut file| {
            file.sha256.get_or_insert_with(|| sha256.to_owned());
            Self { file, hash: None }
        }))
    }

    /// Reads a file that had `size` bytes when it was opened.
    fn read_from(source: impl Read, size: usize) -> io::Result<std::result::Result<Self, FormatError>> {
        Self::read_with(size / BLOCK_BYTES, |take_block| read_unhashed(source, size, take_block))
    }

    /// Reads a file of about so many blocks, each of which `read` passes on.
    fn read_with(
        count: usize,
        read_file: impl FnOnce(&mut dyn FnMut(Bytes)) -> io::Result<std::result::Result<UnhashedSessionFile, FormatError>>,
    ) -> io::Result<std::result::Result<Self, FormatError>> {
        // Room for every block: the reader must not wait for a thread that may start only after it.
        let (blocks, read) = mpsc::sync_channel::<Bytes>(count + 2);
        let hash = chorus_runtime::spawn_blocking(move || {
            let mut hash = BlockHash::default();
            read.iter().for_each(|block| hash.add(&block));
            hash.finish()
        });
        let mut is_complete = true;
        let file = read_file(&mut |block| is_complete &= blocks.try_send(block).is_ok());
        drop(blocks);
        let mut file = match file? {
            Ok(file) => file,
            Err(error) => return Ok(Err(error)),
        };
        // The file has grown since its size was asked for.
        if !is_complete && file.sha256.is_none() {
            file.sha256 = Some(hash_messages(&file.messages));
        }
        Ok(Ok(Self { file, hash: Some(hash) }))
    }

    /// Returns the hash of the messages, which may be waited for. `None` if the thread ended without one: then the daemon ends.
    pub async fn sha256(self) -> Option<String> {
        match self.file.sha256 {
            Some(sha256) => Some(sha256),
            None => self.hash?.await.ok(),
        }
    }
}

/// Reads a compressed file of so many members. Another thread inflates some of them.
fn read_shared(
    gzip: &GzipFile,
    count: usize,
    take_block: &mut dyn FnMut(Bytes),
) -> io::Result<std::result::Result<UnhashedSessionFile, FormatError>> {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (found, helped) = mpsc::sync_channel(count);
        if count >= MIN_SHARED_MEMBERS {
            let next = &next;
            scope.spawn(move || {
                let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
                for number in numbers.take_while(|number| *number < count) {
                    // Fails once the reader has found that the file is damaged.
                    if found.send((number, gzip.read_member(number))).is_err() {
                        break;
                    }
                }
            });
        }
        let mut members = SharedMembers { gzip, count, next: &next, helped, found: BTreeMap::new(), wanted: 0 };
        read_blocks_unhashed(|| members.read_next().transpose(), take_block)
    })
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
