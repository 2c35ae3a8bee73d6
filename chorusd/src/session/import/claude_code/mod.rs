//! Claude Code transcripts: lines of JSON that form a tree.
//!
//! The file is read twice. The first reading keeps a few numbers per line ([`index`]); [`links`] and [`chains`] make
//! trees of them, one for the main conversation and one for each side chain; [`path`] follows each tree to its
//! newest leaf. Messages that were typed while the program worked stand beside the trees ([`queue`], [`typed`]): each has a
//! place on the path, behind what was said last when the model got it. The second reading fetches the lines of that path and writes them as messages ([`session`]).

mod chains;
mod draft;
mod index;
mod line;
mod links;
mod path;
mod person;
mod queue;
mod qwen;
mod seek;
mod session;
mod titles;
mod typed;

use std::io::{BufRead, Seek};

use super::error::ImportError;
use super::writer::Writer;
use index::Index;

/// Reads the main conversation and every side chain.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut Writer<'_>) -> Result<(), ImportError> {
    let mut index = Index::read(source, writer)?;
    let copies = links::resolve(&mut index);
    for (copy, first) in copies {
        writer.skip(copy, format!("the same uuid as line {first}"));
    }
    let chains = chains::chains(&index);
    let mut reader = seek::Reader::new(source)?;
    let mut units = path::Units::new(&index);
    for chain in chains {
        let path = units.follow(&index, &chain);
        for node in &path.left {
            writer.skip(u64::from(index.nodes[*node as usize].line), "on a branch that was abandoned");
        }
        session::write(&mut reader, &index, &chain, &path, writer)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
