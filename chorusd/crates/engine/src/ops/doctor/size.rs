//! The operation `doctor.size`: says what takes room on the disk.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File, Metadata};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use chorus_base::error::Result;
use chorus_proto::methods::doctor::{SizeOfAgent, SizeOfCompression, SizeParams, SizePart, SizeResult};
use chorus_runtime::run_blocking;
use chorus_session::SessionInput;
use chorus_session::gzip::GzipWriter;
use chorus_store::session_form::{SessionForm, parse_file_name};

use crate::ops::Ops;

/// Number of agents in the result.
const MAX_AGENTS: usize = 20;
/// Bytes of a block, as `st_blocks` counts them.
const BLOCK_BYTES: u64 = 512;
/// Bytes that file systems usually give to a file at once.
const ALLOCATION_BYTES: u64 = 4096;
/// Number of session files from which it is estimated what compression would save, and bytes of each.
const MAX_SAMPLES: usize = 16;
const SAMPLE_BYTES: u64 = 128 << 10;

/// Measures the files of the home. Those that vanish meanwhile are left out.
///
/// # Errors
/// The daemon stops.
pub async fn size(ops: &Ops, _: SizeParams) -> Result<SizeResult> {
    let home = ops.home.clone();
    let names: HashMap<PathBuf, String> =
        ops.agents.all().iter().map(|entry| (entry.settings.dir.clone(), entry.settings.name.clone())).collect();
    let may_compress = ops.store.may_compress();
    run_blocking(move || {
        let size = measure(&home, &names);
        Ok(SizeResult { compression: size.compression.filter(|_| may_compress), ..size })
    })
    .await
}

/// The sums so far.
#[derive(Debug, Default)]
struct Measure {
    parts: BTreeMap<&'static str, (u64, u64)>,
    agents: HashMap<PathBuf, SizeOfAgent>,
    /// Files with several names count once.
    seen: HashSet<(u64, u64)>,
    sessions: MeasuredSessions,
}

/// The session files so far.
#[derive(Debug, Default)]
struct MeasuredSessions {
    compressed: u64,
    saved: u64,
    plain: u64,
    plain_bytes: u64,
    /// Some of the plain ones: each one whose number is a multiple of `stride`.
    samples: Vec<PathBuf>,
    stride: u64,
}

impl MeasuredSessions {
    fn add(&mut self, path: &Path, form: SessionForm, bytes: u64) {
        if form == SessionForm::Compressed {
            self.compressed += 1;
            self.saved += plain_bytes(path).unwrap_or(0).saturating_sub(bytes);
            return;
        }
        self.stride = self.stride.max(1);
        if self.plain.is_multiple_of(self.stride) {
            self.samples.push(path.to_owned());
        }
        if self.samples.len() == 2 * MAX_SAMPLES {
            let mut number = 0;
            self.samples.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.stride *= 2;
        }
        self.plain += 1;
        self.plain_bytes += bytes;
    }

    fn finish(self) -> SizeOfCompression {
        let (mut before, mut after) = (0, 0);
        for path in self.samples.iter().take(MAX_SAMPLES) {
            if let Some((plain, compressed)) = compress_sample(path) {
                before += plain;
                after += compressed;
            }
        }
        let ratio = if before == 0 { 1.0 } else { (after as f64 / before as f64).min(1.0) };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate that is not negative")]
        let possible = (self.plain_bytes as f64 * (1.0 - ratio)) as u64;
        SizeOfCompression { compressed: self.compressed, saved: self.saved, plain: self.plain, possible }
    }
}

/// Returns the bytes on the disk that a compressed file would take otherwise; `None` if that is not known without reading it.
fn plain_bytes(path: &Path) -> Option<u64> {
    match SessionInput::new(File::open(path).ok()?).ok()? {
        SessionInput::Gzip(gzip) => Some(gzip.text_bytes()?.next_multiple_of(ALLOCATION_BYTES)),
        SessionInput::Plain(_) => None,
    }
}

/// Compresses the beginning of a file. Returns the bytes on the disk that it takes before and after.
fn compress_sample(path: &Path) -> Option<(u64, u64)> {
    let mut sample = Vec::new();
    File::open(path).ok()?.take(SAMPLE_BYTES).read_to_end(&mut sample).ok()?;
    let mut gzip = GzipWriter::new(Vec::new());
    gzip.write_all(&sample).ok()?;
    let compressed = gzip.finish().ok()?.len() as u64;
    let allocated = |bytes: u64| bytes.next_multiple_of(ALLOCATION_BYTES);
    Some((allocated(sample.len() as u64), allocated(compressed)))
}

fn measure(home: &Path, names: &HashMap<PathBuf, String>) -> SizeResult {
    let mut measure = Measure::default();
    let mut pending = vec![home.to_owned()];
    while let Some(path) = pending.pop() {
        let Ok(metadata) = path.symlink_metadata() else { continue };
        if metadata.is_dir() {
            pending.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
        measure.add(home, &path, &metadata);
    }
    let mut parts: Vec<SizePart> = measure
        .parts
        .into_iter()
        .map(|(name, (bytes, files))| SizePart { name: name.to_owned(), bytes, files })
        .collect();
    parts.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    let mut agents: Vec<SizeOfAgent> = measure
        .agents
        .into_iter()
        .map(|(dir, of)| SizeOfAgent { agent: names.get(&dir).cloned().unwrap_or(of.agent), ..of })
        .collect();
    agents.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.agent.cmp(&b.agent)));
    let agents_total = agents.len() as u64;
    agents.truncate(MAX_AGENTS);
    let bytes = parts.iter().map(|part| part.bytes).sum();
    let compression = Some(measure.sessions.finish());
    SizeResult { home: home.to_string_lossy().into_owned(), bytes, parts, agents, agents_total, compression }
}

impl Measure {
    /// Adds a file or a directory.
    fn add(&mut self, home: &Path, path: &Path, metadata: &Metadata) {
        if metadata.nlink() > 1 && !metadata.is_dir() && !self.seen.insert((metadata.dev(), metadata.ino())) {
            return;
        }
        let (bytes, file) = (metadata.blocks() * BLOCK_BYTES, u64::from(!metadata.is_dir()));
        let inside: Vec<_> = path.strip_prefix(home).unwrap_or(path).iter().filter_map(|name| name.to_str()).collect();
        let name = part_of(&inside);
        let part = self.parts.entry(name).or_default();
        part.0 += bytes;
        part.1 += file;
        let ["agents", agent, ..] = inside.as_slice() else { return };
        let of = self.agents.entry(home.join("agents").join(agent)).or_insert_with(|| SizeOfAgent {
            agent: (*agent).to_owned(),
            bytes: 0,
            sessions: 0,
            count: 0,
        });
        of.bytes += bytes;
        if name == "sessions" {
            of.sessions += bytes;
            of.count += file;
            if let [_, _, _, file] = inside.as_slice()
                && let Some((_, form)) = parse_file_name(file)
                && metadata.is_file()
            {
                self.sessions.add(path, form, bytes);
            }
        }
    }
}

/// Returns the part of the home that a path below it belongs to.
fn part_of(inside: &[&str]) -> &'static str {
    match inside {
        ["agents", _, "sessions", ..] => "sessions",
        ["agents", _, "workspace", ..] => "workspaces",
        ["agents", _, "worktrees", ..] | ["worktrees", ..] => "worktrees",
        ["agents", _, "tasks", ..] | ["tasks", ..] => "tasks",
        ["db", file, ..] if file.starts_with("live.db") => "live",
        ["db", file, ..] if file.starts_with("chorus.db") => "catalog",
        ["index", ..] => "index",
        ["embeddings", ..] => "embeddings",
        ["trash", ..] => "trash",
        ["log" | "logs", ..] => "logs",
        ["cache", ..] => "cache",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_counts_once() {
        let home = tempfile::tempdir().unwrap();
        let sessions = home.path().join("agents/a/sessions");
        fs::create_dir_all(&sessions).unwrap();
        fs::write(sessions.join("one.json"), vec![b'x'; 20_000]).unwrap();
        let alone = measure(home.path(), &HashMap::new());
        fs::hard_link(sessions.join("one.json"), sessions.join("two.json")).unwrap();
        let linked = measure(home.path(), &HashMap::new());
        assert_eq!(alone.bytes, linked.bytes);
        assert_eq!((linked.parts[0].name.as_str(), linked.parts[0].files), ("sessions", 1));
        assert!(linked.parts[0].bytes >= 20_000, "{linked:?}");
        assert_eq!((linked.agents[0].agent.as_str(), linked.agents[0].count), ("a", 1));
    }
}
