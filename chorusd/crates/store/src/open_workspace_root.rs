//! Opens the directory of workspaces that the nodes of a cluster share: all have the same one, or none has one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::{TEMPORARY_PREFIX, sync_dir, write_private};
use chorus_catalog::SettingTable;
use chorus_journal::{NodeState, Ownership};
use chorus_proto::ErrorKind;
use chorus_runtime::run_blocking;
use uuid::Uuid;

use crate::workspace_root::{MARK, WorkspaceRoot, list_agents};

/// The setting with the id of the directory, and its path as it is without links.
const SETTING: &str = "workspace_root";

/// The directory that the configuration of a node names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootChoice {
    /// None: the nodes share none.
    Unset,
    /// Explicitly none: the sharing ends.
    End,
    Path(PathBuf),
}

/// The directory that the nodes have agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Agreed {
    id: String,
    path: String,
}

impl Agreed {
    fn parse(text: &str) -> Self {
        let (id, path) = text.split_once(' ').unwrap_or((text, ""));
        Self { id: id.to_owned(), path: path.to_owned() }
    }
}

impl WorkspaceRoot {
    /// Opens the directory of the configuration, and compares it with that of the other nodes. The first node marks it.
    ///
    /// # Errors
    /// `invalid_config` if it is not the directory of the others, cannot be used, or if they have one and this node has none.
    pub async fn open(
        choice: RootChoice,
        settings: &dyn SettingTable,
        ownership: &dyn Ownership,
    ) -> Result<Option<Self>> {
        let known = settings.get(SETTING).await?.map(|text| Agreed::parse(&text));
        let path = match (choice, &known) {
            (RootChoice::Path(path), _) => path,
            (_, None) => return Ok(None),
            (RootChoice::End, Some(_)) => {
                if let Some(other) = running(ownership, true).await? {
                    return Err(invalid(format!("node {other} shares the directory of workspaces"))
                        .hint("to end that, stop all nodes first"));
                }
                settings.set(SETTING, None).await?;
                return Ok(None);
            }
            (RootChoice::Unset, Some(known)) => {
                let what =
                    format!("the nodes share the workspaces in {}, and this one has no workspace_root", known.path);
                return Err(invalid(what).hint(
                    "set workspace_root in the table [cluster] as on the other nodes; to end the sharing: docs/SCALING.md",
                ));
            }
        };
        if known.is_none()
            && let Some(other) = running(ownership, false).await?
        {
            return Err(invalid(format!("node {other} runs without workspace_root")).hint("stop all nodes first"));
        }
        let root = match find(path.clone(), known.clone()).await {
            // Another node has begun at the same time.
            Err(refused) if known.is_none() => match settings.get(SETTING).await? {
                Some(now) => find(path, Some(Agreed::parse(&now))).await?,
                None => return Err(refused),
            },
            found => found?,
        };
        let (root, here) = root;
        match known {
            Some(known) if known == here => {}
            Some(known) => {
                // One path for all: git stores it.
                if running(ownership, true).await?.is_some() {
                    let what =
                        format!("workspace_root is {}, and the other nodes have it at {}", here.path, known.path);
                    return Err(invalid(what).hint("mount the file system at the same path on all nodes"));
                }
                settings.set(SETTING, Some(format!("{} {}", here.id, here.path))).await?;
            }
            None => {
                settings.set(SETTING, Some(format!("{} {}", here.id, here.path))).await?;
                let agreed = settings.get(SETTING).await?.map(|text| Agreed::parse(&text));
                if agreed.as_ref() != Some(&here) {
                    return Err(invalid("another node uses another workspace_root".to_owned())
                        .hint("name the same directory on all nodes"));
                }
            }
        }
        Ok(Some(root))
    }
}

fn invalid(what: String) -> Error {
    Error::new(ErrorKind::InvalidConfig, what)
}

/// Returns another node that runs and shares workspaces, or one that runs and does not.
async fn running(ownership: &dyn Ownership, shares: bool) -> Result<Option<String>> {
    let nodes = ownership.nodes().await?.into_iter();
    let mut others = nodes.filter(|node| {
        node.name != ownership.node()
            && matches!(node.state, NodeState::Running | NodeState::Draining)
            && node.shares_workspaces == shares
    });
    Ok(others.next().map(|node| node.name))
}

async fn find(path: PathBuf, known: Option<Agreed>) -> Result<(WorkspaceRoot, Agreed)> {
    run_blocking(move || {
        let hint = "mount the file system that all nodes share there, or change the key in the table [cluster]";
        let refused = |why: String| invalid(format!("workspace_root {}: {why}", path.display())).hint(hint);
        let real = path.canonicalize().map_err(|e| refused(e.to_string()))?;
        let mark = match read_mark(&real).map_err(|e| refused(e.to_string()))? {
            Some(mark) => Some(mark),
            None if known.is_none() => Some(mark_root(&real).map_err(|e| refused(e.to_string()))?),
            None => None,
        };
        let id = match (mark, &known) {
            (Some(id), Some(known)) if id == known.id => id,
            (_, Some(_)) => {
                return Err(refused(format!("it is not the directory of the other nodes, which has a file {MARK}")));
            }
            (mark, None) => {
                if !list_agents(&real).map_err(|e| refused(e.to_string()))?.is_empty() {
                    let what = format!(
                        "workspace_root {} has workspaces of another cluster, or of an earlier setup",
                        path.display()
                    );
                    return Err(invalid(what).hint("move them away, or name an empty directory"));
                }
                mark.unwrap_or_default()
            }
        };
        let here = Agreed { id: id.clone(), path: real.display().to_string() };
        Ok((WorkspaceRoot { path, id }, here))
    })
    .await
}

fn read_mark(dir: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(dir.join(MARK)) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Marks a directory, unless another node does so at the same time. Returns its id. Blocks.
fn mark_root(dir: &Path) -> io::Result<String> {
    let new = dir.join(format!("{TEMPORARY_PREFIX}{}", Uuid::new_v4()));
    write_private(&new, format!("{}\n", Uuid::new_v4()).as_bytes())?;
    // Does not replace the file of another node.
    let linked = fs::hard_link(&new, dir.join(MARK));
    fs::remove_file(&new)?;
    match linked {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => sync_dir(dir)?,
    }
    read_mark(dir)?.ok_or_else(|| io::Error::other("the file that marks it is gone"))
}
