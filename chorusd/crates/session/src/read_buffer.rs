//! Memory that a file is read into. The kernel provides that of a large buffer at once: page by page, when each is first written
//! to, takes as long as reading the file.

use std::io::{self, Read};

use bytes::Bytes;
use memmap2::{MmapMut, MmapOptions};

/// Capacity from which a buffer is a mapping of its own, in bytes.
const MIN_MAPPED_BYTES: usize = 128 << 10;

/// Bytes that were read, and room for more.
#[derive(Debug)]
pub(crate) struct ReadBuffer {
    memory: Memory,
    length: usize,
}

#[derive(Debug)]
enum Memory {
    Heap(Vec<u8>),
    Mapped(MmapMut),
}

impl Memory {
    fn new(capacity: usize) -> Self {
        let mapped = (capacity >= MIN_MAPPED_BYTES).then(|| MmapOptions::new().len(capacity).populate().map_anon());
        match mapped {
            Some(Ok(memory)) => Self::Mapped(memory),
            Some(Err(_)) | None => Self::Heap(vec![0; capacity]),
        }
    }

    fn all(&self) -> &[u8] {
        match self {
            Self::Heap(memory) => memory,
            Self::Mapped(memory) => memory,
        }
    }

    fn all_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Heap(memory) => memory,
            Self::Mapped(memory) => memory,
        }
    }
}

impl ReadBuffer {
    /// Makes a buffer with `start` and room for `more` bytes.
    pub(crate) fn new(start: &[u8], more: usize) -> Self {
        let mut memory = Memory::new(start.len() + more);
        memory.all_mut()[..start.len()].copy_from_slice(start);
        Self { memory, length: start.len() }
    }

    /// Makes a buffer with so many zeros.
    pub(crate) fn filled(length: usize) -> Self {
        Self { memory: Memory::new(length), length }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.memory.all_mut()[..self.length]
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.memory.all()[..self.length]
    }

    /// Makes room for `more` bytes.
    pub(crate) fn reserve(&mut self, more: usize) {
        if self.memory.all().len() - self.length < more {
            *self = Self::new(self.as_slice(), more);
        }
    }

    /// Reads until the buffer is full or the source ends. Returns the number of bytes.
    pub(crate) fn fill(&mut self, source: &mut impl Read) -> io::Result<usize> {
        let before = self.length;
        loop {
            match source.read(&mut self.memory.all_mut()[self.length..]) {
                Ok(0) => return Ok(self.length - before),
                Ok(read) => self.length += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Returns the first `length` bytes, without copying them.
    pub(crate) fn into_bytes(self, length: usize) -> Bytes {
        match self.memory {
            Memory::Heap(mut memory) => {
                memory.truncate(length);
                Bytes::from(memory)
            }
            Memory::Mapped(memory) => Bytes::from_owner(memory).slice(..length),
        }
    }
}
