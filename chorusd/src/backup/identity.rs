//! Which home a backup is of. A home has an id from its first backup on, and a restored home keeps it, so that another home never
//! replaces a backup.

use std::fs;
use std::io;
use std::path::Path;

use chorus_proto::ErrorKind;
use jiff::Timestamp;
use uuid::Uuid;

use super::manifest::Manifest;
use crate::failure::{Failure, Result};
use crate::store::DB;
use crate::store::agents_dir::write_private;
use crate::store::recovery::{Incident, incidents};

/// The file with the id, in `db/`.
pub const HOME_ID: &str = "home.id";

/// A home as a backup knows it.
#[derive(Debug, Clone)]
pub struct Identity {
    pub id: Uuid,
    /// True if it has any agent.
    pub has_agents: bool,
    /// The first time that something was lost of it that is not salvaged yet.
    pub lost_at: Option<Timestamp>,
    /// Open damage, for a person.
    pub warnings: Vec<String>,
}

impl Identity {
    /// Reads what there is to know of `home`; one without an id gets one. Blocks.
    ///
    /// # Errors
    /// An id that cannot be read or written.
    pub fn of(home: &Path) -> Result<Self> {
        let agents = fs::read_dir(home.join("agents")).into_iter().flatten().flatten();
        let has_agents = agents.into_iter().any(|agent| agent.path().join("agent.json").is_file());
        let open: Vec<Incident> =
            incidents(&home.join(DB)).into_iter().filter(|incident| !incident.facts.salvaged).collect();
        let lost_at = open.iter().filter(|incident| incident.facts.lost).map(|incident| incident.facts.at).min();
        let warnings = open.iter().map(|incident| {
            let (name, facts) = (incident.name(), &incident.facts);
            format!("the home was damaged at {:.0}: {} (db/{name}); run `chorusctl doctor`", facts.at, facts.what)
        });
        Ok(Self { id: id(home)?, has_agents, lost_at, warnings: warnings.collect() })
    }

    /// Refuses to replace the backup `before` if it is of another home.
    ///
    /// # Errors
    /// `denied`.
    pub fn check(&self, before: &Manifest, dir: &Path) -> Result<()> {
        let why = match before.home {
            Some(id) if id != self.id => "has the backup of another home",
            None if !self.has_agents && before.agents().0 > 0 => "has a backup with agents, and this home has none",
            _ => return Ok(()),
        };
        Err(Failure::new(ErrorKind::Denied, format!("{} {why}; it is as it was", dir.display()))
            .hint("name another directory for this home, also if it lost its db/ and began anew, or check CHORUS_HOME"))
    }
}

fn id(home: &Path) -> Result<Uuid> {
    let path = home.join(DB).join(HOME_ID);
    let failed = |what: &str, e: &io::Error| Failure::io(format_args!("cannot {what} {}", path.display()), e);
    match fs::read_to_string(&path) {
        Ok(text) => Uuid::parse_str(text.trim()).map_err(|_| {
            Failure::new(ErrorKind::StorageFailed, format!("{} has no id of a home", path.display()))
                .hint("delete it, and name a new directory for the backup")
        }),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let id = Uuid::new_v4();
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
            fs::create_dir(home.path().join(DB)).expect("db");
        }
        let first = Identity::of(one.path()).expect("an id");
        assert_eq!(Identity::of(one.path()).expect("an id").id, first.id);
        let other = Identity::of(two.path()).expect("an id");
        assert_ne!(other.id, first.id);
        let mut manifest = Manifest::new(Timestamp::UNIX_EPOCH, Some(first.id), Vec::new());
        assert!(first.check(&manifest, one.path()).is_ok());
        assert_eq!(other.check(&manifest, one.path()).map_err(|e| e.kind), Err(ErrorKind::Denied));
        manifest.home = None;
        assert!(other.check(&manifest, one.path()).is_ok(), "one of an older version is adopted");
        fs::write(two.path().join(DB).join(HOME_ID), "nonsense").expect("written");
        assert!(Identity::of(two.path()).is_err());
    }
}
