//! A session file that is open for reading, compressed or not.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;

use crate::gzip::{FileReader, GzipFile, MAGIC};

/// Bytes of memory that are reserved before a text is read.
const MAX_RESERVED: usize = 256 << 20;

/// An open session file. Its text is the same whether it is compressed or not.
#[derive(Debug)]
pub enum SessionInput {
    Plain(File),
    Gzip(Box<GzipFile>),
}

impl SessionInput {
    /// Finds out from the first bytes if a file is compressed.
    ///
    /// # Errors
    /// An I/O error.
    pub fn new(file: File) -> io::Result<Self> {
        let mut start = [0; MAGIC.len()];
        let is_gzip = file.read_at(&mut start, 0)? == MAGIC.len() && start == MAGIC;
        Ok(if is_gzip { Self::Gzip(Box::new(GzipFile::open(file)?)) } else { Self::Plain(file) })
    }

    /// The file itself.
    pub fn file(&self) -> &File {
        match self {
            Self::Plain(file) => file,
            Self::Gzip(gzip) => gzip.file(),
        }
    }

    /// Returns the bytes of the text; an estimate if another program compressed the file.
    ///
    /// # Errors
    /// An I/O error.
    pub fn text_bytes(&self) -> io::Result<u64> {
        let length = self.file().metadata()?.len();
        Ok(match self {
            Self::Plain(_) => length,
            Self::Gzip(gzip) => gzip.text_bytes().unwrap_or(length.saturating_mul(8)),
        })
    }

    /// Returns a reader of the text, from its beginning.
    #[must_use]
    pub fn reader(&self) -> Box<dyn Read + '_> {
        match self {
            Self::Plain(file) => Box::new(FileReader::new(file)),
            Self::Gzip(gzip) => Box::new(gzip.reader()),
        }
    }

    /// Reads the whole text.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if a compressed file is damaged, otherwise an I/O error.
    pub fn read_text(&self) -> io::Result<Vec<u8>> {
        let size = usize::try_from(self.text_bytes()?).unwrap_or(0);
        // What a header claims is not known to be true.
        let mut text = Vec::with_capacity(size.saturating_add(1).min(MAX_RESERVED));
        self.reader().read_to_end(&mut text)?;
        Ok(text)
    }

    /// Reads text at a position.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if a compressed file is damaged, [`io::ErrorKind::UnexpectedEof`] if the text is shorter.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.read_exact_at(buffer, offset),
            Self::Gzip(gzip) => gzip.read_exact_at(buffer, offset),
        }
    }
}
