//! Claude Code transcripts: lines of JSON that form a tree.
//!
//! The file is read twice. The first reading keeps a few numbers per line ([`index`]); [`links`] and [`chains`] make
//! trees of them, one for the main conversation and one for each side chain; [`path`] follows each tree to its
//! newest leaf. Messages that were typed while the program worked stand beside the trees ([`queue`], [`typed`]): each has a
//! place on the path, behind what was said last when the model got it. The second reading fetches the lines of that path and writes them as messages ([`session`]).

mod authorship;
mod chain_writer;
mod index;
mod line;
mod line_seeker;
mod main_branch;
mod message_builder;
mod parents;
mod queue;
mod queued_messages;
mod qwen;
mod sidechains;
mod titles;

use std::io::{BufRead, Seek};

use super::error::ImportError;
use super::writer::SessionWriter;
use index::TranscriptIndex;

/// Reads the main conversation and every side chain.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let mut index = TranscriptIndex::build(source, writer)?;
    let copies = parents::resolve(&mut index);
    for (copy, first) in copies {
        writer.skip(copy, format!("the same uuid as line {first}"));
    }
    let chains = sidechains::split_chains(&index);
    let mut reader = line_seeker::LineSeeker::new(source)?;
    let mut units = main_branch::LineUnits::new(&index);
    for chain in chains {
        let path = units.find_path(&index, &chain);
        for node in &path.off_path {
            writer.skip(u64::from(index.nodes[*node as usize].line), "on a branch that was abandoned");
        }
        chain_writer::write_chain(&mut reader, &index, &chain, &path, writer)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
