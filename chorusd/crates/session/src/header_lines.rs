//! Rewrites the header lines of a session file, and keeps those that only a later version knows.

use std::io::{self, Write};

use chorus_proto::SessionHeader;

use crate::file::write_header;

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
