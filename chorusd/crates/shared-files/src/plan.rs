//! Plans the work on each file of an agent, within the limits of what is stored.

use std::collections::{BTreeMap, BTreeSet};

use chorus_base::hex::hex;
use chorus_catalog::{AgentFileContent, AgentFileRow, MAX_AGENT_FILES, MAX_AGENT_FILES_BYTES};
use chorus_store::AgentDir;

use crate::decision::{Decision, Here, decide};
use crate::known_files::{KnownFile, KnownFiles};
use crate::listing::Listing;
use crate::local_changes::{LocalFile, too_many_bytes};
use crate::sync::Occasion;

/// The work on the files of an agent.
#[derive(Default)]
pub(crate) struct Plan {
    /// Files with their stamps, and the versions of the rows that they follow.
    pub(crate) send: Vec<(AgentFileContent, String, u64)>,
    pub(crate) delete_rows: Vec<(String, u64)>,
    pub(crate) fetch: Vec<String>,
    pub(crate) delete_files: Vec<String>,
    /// Files that get another name first.
    pub(crate) set_aside: Vec<String>,
}

/// Decides about all files. What is the same on both sides, or cannot be stored, is noted in `known`.
pub(crate) fn make_plan(
    of: &AgentDir,
    occasion: Occasion,
    known: &mut KnownFiles,
    listing: &Listing,
    mut local: BTreeMap<String, LocalFile>,
    rows: &BTreeMap<String, AgentFileRow>,
) -> Plan {
    let mut plan = Plan::default();
    let (mut count, mut bytes) = (rows.len(), rows.values().map(|row| row.bytes).sum::<u64>());
    let refused = std::mem::take(&mut known.refused);
    let paths: BTreeSet<String> = known.files.keys().chain(local.keys()).chain(rows.keys()).cloned().collect();
    for path in paths {
        let (file, row) = (local.remove(&path), rows.get(&path));
        if file.is_none() && listing.is_partial() {
            // It may be here, behind the limit of the list.
            continue;
        }
        let sha256 = row.map(|row| hex(&row.sha256));
        let before = known.files.get(&path).map(|known| known.sha256.as_str());
        let here = file.as_ref().map_or(Here::Missing, LocalFile::here);
        let may_delete = occasion == Occasion::Edit && listing.is_deleted(&path);
        let decision = decide(before, here, sha256.as_deref(), may_delete);
        let refuse = |known: &mut KnownFiles, path: String, stamp: &str, why: &str| {
            if refused.get(&path).is_none_or(|former| former != stamp) {
                tracing::warn!(agent = of.name, file = path, why, "a file is not stored for other nodes");
            }
            known.refused.insert(path, stamp.to_owned());
        };
        match (decision, file, row) {
            (Decision::Same, Some(file), _) => {
                let stamp = file.stamp().to_owned();
                known.files.insert(path, KnownFile { sha256: sha256.unwrap_or_default(), stamp });
            }
            (Decision::Gone, ..) => drop(known.files.remove(&path)),
            (Decision::Send, Some(LocalFile::Changed { hash, stamp, content, .. }), row) => {
                let (more, former) = (content.len() as u64, row.map_or(0, |row| row.bytes));
                if row.is_none() && count >= MAX_AGENT_FILES {
                    let why = format!("an agent may have {MAX_AGENT_FILES} files");
                    refuse(known, path, &stamp, &why);
                } else if bytes.saturating_sub(former) + more > MAX_AGENT_FILES_BYTES {
                    refuse(known, path, &stamp, &too_many_bytes());
                } else {
                    count += usize::from(row.is_none());
                    bytes = bytes.saturating_sub(former) + more;
                    let file = AgentFileContent { path, sha256: hash, content };
                    plan.send.push((file, stamp, row.map_or(0, |row| row.version)));
                }
            }
            (Decision::DeleteRow, _, Some(row)) => plan.delete_rows.push((path, row.version)),
            (Decision::Fetch, file, _) => {
                if file.is_none() {
                    // If it cannot be written, it is not one that somebody deleted.
                    known.files.remove(&path);
                }
                plan.fetch.push(path);
            }
            (Decision::DeleteFile, ..) => plan.delete_files.push(path),
            (Decision::FetchBeside, ..) => {
                plan.set_aside.push(path.clone());
                plan.fetch.push(path);
            }
            (Decision::SetAside, ..) => plan.set_aside.push(path),
            (Decision::Refuse, Some(LocalFile::Unusable { stamp, why }), _) => refuse(known, path, &stamp, &why),
            (Decision::Same | Decision::Send | Decision::DeleteRow | Decision::Refuse, ..) => {}
        }
    }
    plan
}
