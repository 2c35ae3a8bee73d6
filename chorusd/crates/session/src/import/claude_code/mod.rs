//! Imports Claude Code transcripts: lines of JSON that form a tree.
//!
//! Reads the file twice. The first pass keeps a few numbers per line ([`index`]). [`parents`] and [`sidechains`] build
//! trees from them, one for the main conversation and one for each side chain, and [`main_branch`] follows each tree to
//! its newest leaf. Messages that the user typed while the program worked are not part of the trees ([`queue_operation`],
//! [`queued_messages`]): each is inserted into the path after the last message that the model had received by then. The
//! second pass reads the lines of the path again and writes them as messages ([`chain_writer`]).

mod authorship;
mod call_index;
mod chain_writer;
mod index;
mod line;
mod main_branch;
mod message_builder;
mod parents;
mod queue_operation;
mod queued_messages;
mod qwen;
mod sidechains;
mod titles;
mod unknown_types;

use std::collections::HashSet;
use std::io::{BufRead, Seek};

use super::error::ImportError;
use super::line_seeker::LineSeeker;
use super::writer::SessionWriter;
use index::TranscriptIndex;

/// Imports the main conversation and every side chain.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    writer.reports_calls = true;
    let mut index = TranscriptIndex::build(source, writer)?;
    let copies = parents::resolve(&mut index);
    for (copy, first) in copies {
        writer.leave_out(copy, format!("the same uuid as line {first}"));
    }
    let chains = sidechains::split_chains(&index);
    let mut reader = LineSeeker::new(source)?;
    let mut units = main_branch::LineUnits::new(&index);
    let mut named_agents = HashSet::new();
    for chain in chains {
        let path = units.find_path(&index, &chain);
        for node in &path.off_path {
            writer.leave_out(u64::from(index.nodes[*node as usize].line), "on a branch that was abandoned");
        }
        chain_writer::write_chain(&mut reader, &index, &chain, path, &mut named_agents, writer)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
