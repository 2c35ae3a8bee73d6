//! Identifies the home that a backup was made of. A home gets an id at its first backup, or as the node of a cluster, and a restored home keeps it,
//! so that the backup of one home never replaces that of another.

use std::fs;
use std::io;
use std::path::Path;

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::{create_private, write_private};
use chorus_proto::ErrorKind;
use chorus_store::DB_DIR;
use chorus_store::recovery::{Incident, list_incidents};
use jiff::Timestamp;
use uuid::Uuid;

use super::manifest::Manifest;

/// Name of the file with the id, in `db/`.
pub(super) const HOME_ID_FILE: &str = "home.id";

/// The identity and condition of the home that is backed up.
#[derive(Debug, Clone)]
pub struct HomeIdentity {
    pub id: Uuid,
    /// True if the home has any agent.
    pub has_agents: bool,
    /// The first time data was lost that is not salvaged yet.
    pub lost_at: Option<Timestamp>,
    /// Descriptions of open damage, for a person.
    pub warnings: Vec<String>,
}

impl HomeIdentity {
    /// Reads the identity of `home`; a home without an id gets one. Blocks.
    pub fn load(home: &Path) -> Result<Self> {
        let agents = fs::read_dir(home.join("agents")).into_iter().flatten().flatten();
        let has_agents = agents.into_iter().any(|agent| agent.path().join("agent.json").is_file());
        let open: Vec<Incident> =
            list_incidents(&home.join(DB_DIR)).into_iter().filter(|incident| !incident.facts.salvaged).collect();
        let lost_at = open.iter().filter(|incident| incident.facts.lost).map(|incident| incident.facts.at).min();
        let warnings = open.iter().map(|incident| {
            let (name, facts) = (incident.name(), &incident.facts);
            format!("the home was damaged at {:.0}: {} (db/{name}); run `chorusctl doctor`", facts.at, facts.what)
        });
        Ok(Self { id: home_id(home)?, has_agents, lost_at, warnings: warnings.collect() })
    }

    /// Refuses with `denied` to replace the backup `before` if it is of another home.
    pub fn ensure_same_home(&self, before: &Manifest, dir: &Path) -> Result<()> {
        let why = match before.home {
            Some(id) if id != self.id => "contains a backup of another home",
            None if !self.has_agents && before.agent_totals().0 > 0 => {
                "contains a backup with agents, but this home has none"
            }
            _ => return Ok(()),
        };
        Err(Error::new(ErrorKind::Denied, format!("{} {why}; nothing was changed", dir.display()))
            .hint("use another directory for this home (also if it lost its db/), or check CHORUS_HOME"))
    }
}

/// Returns the id of a home; one without an id gets one. Blocks.
///
/// # Errors
/// `storage_failed` if it cannot be read or written.
pub fn home_id(home: &Path) -> Result<Uuid> {
    let path = home.join(DB_DIR).join(HOME_ID_FILE);
    let failed = |what: &str, e: &io::Error| Error::io(format_args!("cannot {what} {}", path.display()), e);
    match fs::read_to_string(&path) {
        Ok(text) => Uuid::parse_str(text.trim()).map_err(|_| {
            Error::new(ErrorKind::StorageFailed, format!("{} does not contain a home id", path.display()))
                .hint("delete it; backups of the home need a new directory then")
        }),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let id = Uuid::new_v4();
            create_private(&home.join(DB_DIR)).map_err(|e| failed("write", &e))?;
            write_private(&path, format!("{id}\n").as_bytes()).map_err(|e| failed("write", &e))?;
            Ok(id)
        }
        Err(e) => Err(failed("read", &e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_keeps_its_id_and_another_is_refused() {
        let (one, two) = (tempfile::tempdir().expect("a home"), tempfile::tempdir().expect("a home"));
        for home in [&one, &two] {
            fs::create_dir(home.path().join(DB_DIR)).expect("db");
        }
        let first = HomeIdentity::load(one.path()).expect("an id");
        assert_eq!(HomeIdentity::load(one.path()).expect("an id").id, first.id);
        let other = HomeIdentity::load(two.path()).expect("an id");
        assert_ne!(other.id, first.id);
        let mut manifest = Manifest::new(Timestamp::UNIX_EPOCH, Some(first.id), Vec::new());
        assert!(first.ensure_same_home(&manifest, one.path()).is_ok());
        assert_eq!(other.ensure_same_home(&manifest, one.path()).map_err(|e| e.kind), Err(ErrorKind::Denied));
        manifest.home = None;
        assert!(other.ensure_same_home(&manifest, one.path()).is_ok(), "one of an older version is adopted");
        fs::write(two.path().join(DB_DIR).join(HOME_ID_FILE), "nonsense").expect("written");
        assert!(HomeIdentity::load(two.path()).is_err());
    }
}
