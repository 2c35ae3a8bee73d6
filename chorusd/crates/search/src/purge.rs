//! Overwrites what was deleted: tantivy only marks it, so the parts of the index that hold it are written again.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tantivy::index::SegmentMeta;
use tantivy::{FutureResult, IndexWriter as TantivyWriter};

use crate::error::SearchError;
use crate::files;
use crate::index::Shared;

/// How often parts with deleted entries are looked for. A merge that was running during the commit has read them, and has them in its result;
/// one that starts later has not.
const PASSES: u8 = 2;

/// The parts of the index that have to be written again.
#[derive(Default)]
pub(crate) struct Purge {
    /// Parts whose files may hold deleted texts.
    suspects: HashSet<String>,
    passes_left: u8,
    /// The parts that are being written again. Each merge of a part keeps its files, so there is one at a time.
    rewrites: HashMap<String, FutureResult<Option<SegmentMeta>>>,
}

impl Purge {
    /// Notes which parts may hold what was deleted before the last commit.
    pub(crate) fn begin(&mut self, shared: &Shared) -> Result<(), SearchError> {
        self.suspects.extend(find_suspects(shared)?);
        self.passes_left = PASSES;
        Ok(())
    }

    /// Has the noted parts written again, and removes files that are not used any more. Returns true once no file holds what was deleted.
    pub(crate) fn advance(&mut self, shared: &Shared, writer: &mut TantivyWriter) -> Result<bool, SearchError> {
        if self.passes_left == 0 {
            self.begin(shared)?;
        }
        self.rewrites.retain(|_, rewrite| is_running(rewrite));
        for segment in shared.index.searchable_segment_metas()? {
            let id = segment.id().uuid_string();
            if !self.suspects.contains(&id) {
                continue;
            }
            if segment.num_deleted_docs() == 0 {
                // A merge has created it in the meantime, without deleted entries.
                self.suspects.remove(&id);
            } else {
                self.rewrites.entry(id).or_insert_with(|| writer.merge(&[segment.id()]));
            }
        }
        shared.reload(0)?;
        writer.garbage_collect_files().wait()?;
        let present = files::segments(&shared.dir)?;
        self.suspects.retain(|segment| present.contains(segment));
        if !self.suspects.is_empty() {
            return Ok(false);
        }
        self.passes_left -= 1;
        if self.passes_left > 0 {
            self.suspects = find_suspects(shared)?;
            return Ok(false);
        }
        files::set_purging(&shared.dir, false)?;
        Ok(true)
    }
}

/// Returns the parts that have deleted entries, and those that are no part of the index: a merge may be writing or reading them.
fn find_suspects(shared: &Shared) -> Result<HashSet<String>, SearchError> {
    let mut suspects = files::segments(&shared.dir)?;
    for segment in shared.index.searchable_segment_metas()? {
        if segment.num_deleted_docs() == 0 {
            suspects.remove(&segment.id().uuid_string());
        }
    }
    Ok(suspects)
}

fn is_running(rewrite: &mut FutureResult<Option<SegmentMeta>>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    matches!(Pin::new(rewrite).poll(&mut context), Poll::Pending)
}
