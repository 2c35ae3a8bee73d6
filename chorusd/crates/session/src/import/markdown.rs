//! Imports Markdown: exports of Chorus, files of related programs without data, and the simple form with a heading for
//! each message.

mod call_ids;
mod data;
mod guide;
mod header;
mod line_classifier;
mod message_builder;
mod parser;
mod summary;

use std::io::{BufRead, Read as _, Seek};

use super::error::ImportError;
use super::line_reader::MAX_LINE_BYTES;
use super::writer::SessionWriter;
use crate::markdown::DATA_END;
use data::find_data_block;
use guide::Guide;
use parser::Parser;

const BOM: &str = "\u{feff}";

/// Imports one conversation.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let block = find_data_block(source)?;
    let guided = block.as_ref().map_or(Ok(None), |block| Guide::open(source, block, writer))?;
    let mut data = block.map(|block| block.start).filter(|_| guided.is_some());
    let mut talk = Parser::new(guided);
    source.rewind()?;
    let (mut number, mut position, mut bytes, mut windows) = (0_u64, 0_u64, Vec::new(), false);
    loop {
        bytes.clear();
        let read = source.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes)? as u64;
        if read == 0 {
            break;
        }
        number += 1;
        if data.is_some_and(|start| position >= start) {
            position += read;
            match position - read {
                start if data == Some(start) => talk.end_text(writer)?,
                // Somebody may have written more behind the block.
                _ if bytes.trim_ascii() == DATA_END.as_bytes() => data = None,
                _ => {}
            }
            continue;
        }
        position += read;
        writer.sink.report_progress(position);
        let Ok(text) = std::str::from_utf8(&bytes) else {
            writer.skip(number, "not valid UTF-8");
            continue;
        };
        let line = text.strip_suffix('\n').unwrap_or(text);
        // If the first line ends with CRLF, an editor has converted all of them.
        windows = if number == 1 { line.ends_with('\r') } else { windows };
        let line = if windows { line.strip_suffix('\r').unwrap_or(line) } else { line };
        let line = if number == 1 { line.trim_start_matches(BOM) } else { line };
        talk.read_line(line, number, source, writer)?;
    }
    let about = talk.into_metadata(source, writer)?;
    writer.end_session(about)?;
    Ok(())
}

#[cfg(test)]
mod tests;
