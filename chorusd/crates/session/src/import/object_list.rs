//! Walks over the objects of a file: a list of them, a single one, or several one after the other, as on lines.

use std::io::{self, BufRead, Seek};

use super::error::ImportError;
use super::json_splitter::{ScanError, Scanner};
use super::line_reader::LINE_TOO_LONG;
use super::raw_object::RawObject;
use super::writer::SessionWriter;

/// Calls `each` with every object and its number. Others are skipped and reported.
pub(super) fn for_each_object(
    source: &mut (impl BufRead + Seek),
    writer: &mut SessionWriter<'_>,
    mut each: impl FnMut(u64, &RawObject<'_>, &mut SessionWriter<'_>) -> io::Result<()>,
) -> Result<(), ImportError> {
    let mut read = |number: u64, bytes: Option<&[u8]>, writer: &mut SessionWriter<'_>| match bytes
        .ok_or_else(|| LINE_TOO_LONG.to_owned())
        .and_then(RawObject::from_bytes)
    {
        Ok(fields) => each(number, &fields, writer),
        Err(reason) => {
            writer.skip(number, reason);
            Ok(())
        }
    };
    let is_list = Scanner::new(&mut *source).peek()? == Some(b'[');
    source.rewind()?;
    let mut scanner = Scanner::new(&mut *source);
    let mut count = 0;
    let walked = if is_list {
        scanner.for_each_entry(|entry| {
            count = entry.number;
            writer.sink.report_progress(entry.position);
            read(entry.number, entry.bytes, writer)
        })
    } else {
        let mut value = Vec::new();
        loop {
            match next_value(&mut scanner, &mut value) {
                Ok(None) => break Ok(()),
                Ok(Some(fits)) => {
                    count += 1;
                    writer.sink.report_progress(scanner.position());
                    read(count, fits.then_some(&value), writer)?;
                }
                Err(error) => break Err(error),
            }
        }
    };
    report_end(walked, count + 1, writer)
}

fn next_value<R: BufRead>(scanner: &mut Scanner<R>, value: &mut Vec<u8>) -> Result<Option<bool>, ScanError> {
    Ok(match scanner.peek()? {
        Some(_) => Some(scanner.read_value(Some(value))?),
        None => None,
    })
}

/// Reports where a source could not be read further, as the entry with this number. That is an error if it has no message
/// before.
pub(super) fn report_end(
    walked: Result<(), ScanError>,
    number: u64,
    writer: &mut SessionWriter<'_>,
) -> Result<(), ImportError> {
    let Err(error) = walked else { return Ok(()) };
    let (line, reason) = error.into_line_and_reason()?;
    if writer.message_count() == 0 {
        return Err(ImportError::Malformed { line, reason });
    }
    writer.skip(number, reason);
    Ok(())
}
