//! Opens the file of a transcript, as its program keeps it.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Seek as _};

use chorus_tool_files::{MAX_TRANSCRIPT_BYTES, ZstdReader, is_compressed, is_opencode_session, write_opencode_session};

use crate::error::Error;

/// Opens a file, or what is compressed in it, and returns the length in bytes; 0 if that is unknown. `-` is standard input.
pub fn open_source(file: &str) -> Result<(Box<dyn Read>, u64), Error> {
    if file == "-" {
        return Ok((Box::new(io::stdin()), 0));
    }
    let failed = |error| Error::for_file(file, &error);
    let opened = File::open(file).map_err(failed)?;
    let metadata = opened.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(Error::usage(format!("{file} is a directory")).with_hint("give the name of a file"));
    }
    let mut opened = BufReader::new(opened);
    if fs::canonicalize(file).is_ok_and(|path| is_opencode_session(&path)) {
        return opencode_document(file).map_err(failed);
    }
    if is_compressed(opened.fill_buf().map_err(failed)?) {
        return Ok((Box::new(ZstdReader::new(opened, MAX_TRANSCRIPT_BYTES)), 0));
    }
    Ok((Box::new(opened), metadata.len()))
}

/// Writes a conversation that opencode keeps in many files into an unnamed file.
fn opencode_document(session: &str) -> io::Result<(Box<dyn Read>, u64)> {
    let mut out = BufWriter::new(tempfile::tempfile()?);
    // A relative path has no names of directories above it.
    write_opencode_session(&fs::canonicalize(session)?, &mut out)?;
    let mut document = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    let length = document.stream_position()?;
    document.rewind()?;
    Ok((Box::new(document), length))
}
