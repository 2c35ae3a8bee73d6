//! Reads the header lines of a session file, and rewrites them: those that only a later version knows stay.

use std::io::{self, BufRead, Read as _, Write};

use chorus_proto::SessionHeader;

use crate::file::{MESSAGES_LINE, write_header};

/// Largest header in the native layout. A file with a larger one is read as a whole.
const MAX_HEADER_BYTES: usize = 16 << 20;

/// Reads everything before the line of `messages`, and that line. Returns `None` if the file has another layout.
///
/// # Errors
/// An I/O error.
pub fn read_header_lines(source: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    while head.len() < MAX_HEADER_BYTES {
        let start = head.len();
        if source.by_ref().take((MAX_HEADER_BYTES - start) as u64).read_until(b'\n', &mut head)? == 0 {
            return Ok(None);
        }
        if head[start..] == *MESSAGES_LINE {
            head.truncate(start);
            return Ok(Some(head));
        }
    }
    Ok(None)
}

/// Writes the header lines of `before`, the start of a file of the native layout up to the line of `messages`, with the
/// fields of `header`. Fields that only a later version knows stay; those that `before` lacks are inserted.
pub fn write_header_over(out: &mut impl Write, before: &[u8], header: &SessionHeader) -> io::Result<()> {
    let mut native = Vec::new();
    write_header(&mut native, header)?;
    let field = |line: &[u8]| line.split(|byte| *byte == b':').next().unwrap_or_default().to_owned();
    let named = |text: &[u8]| -> Vec<(Vec<u8>, Vec<u8>)> {
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| (field(line), line.to_owned())).collect()
    };
    let (old, mut new) = (named(before), named(&native));
    // The line of `messages`.
    new.pop();
    let mut next = 0;
    for (name, line) in &old {
        match new.iter().position(|(of, _)| name.starts_with(b"  \"") && of == name) {
            Some(at) => {
                let missing = |(of, _): &&(Vec<u8>, Vec<u8>)| !old.iter().any(|(name, _)| name == of);
                for (_, inserted) in new[next.min(at)..at].iter().filter(missing) {
                    write_line(out, inserted)?;
                }
                write_line(out, &new[at].1)?;
                next = at + 1;
            }
            None => write_line(out, line)?,
        }
    }
    Ok(())
}

fn write_line(out: &mut impl Write, line: &[u8]) -> io::Result<()> {
    out.write_all(line)?;
    out.write_all(b"\n")
}
