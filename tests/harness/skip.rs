//! Tests that cannot run here: they say so past the test harness, and fail if every test has to run.

use std::fs::OpenOptions;
use std::io::Write as _;

/// What an ordinary machine may be unable to give a test. A program that is missing is none of these: it can be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// To be root: to give files away, become another user, or read what only root may.
    Root,
    /// To mount file systems.
    Mount,
    /// Control groups to make groups in.
    Cgroups,
    /// To trace processes.
    Ptrace,
    /// A way to confine commands: bubblewrap, or namespaces.
    Sandbox,
    /// Temporary files on a file system that is synced as a whole.
    FileSystem,
    /// A model server that somebody runs: `CHORUS_TEST_OPENAI_URL`.
    ModelServer,
    /// Real conversations beside the project.
    RealData,
}

impl Need {
    const ALL: [Self; 8] = [
        Self::Root,
        Self::Mount,
        Self::Cgroups,
        Self::Ptrace,
        Self::Sandbox,
        Self::FileSystem,
        Self::ModelServer,
        Self::RealData,
    ];

    /// The name in `CHORUS_TESTS_MAY_SKIP`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Mount => "mount",
            Self::Cgroups => "cgroups",
            Self::Ptrace => "ptrace",
            Self::Sandbox => "sandbox",
            Self::FileSystem => "file-system",
            Self::ModelServer => "model-server",
            Self::RealData => "real-data",
        }
    }
}

/// Skips the rest of a test because a program is missing or does not work here.
///
/// # Panics
/// Under `CHORUS_TESTS_REQUIRE=all`.
pub fn skip(why: &str) {
    report(None, why);
}

/// Skips the rest of a test that needs more than an ordinary machine gives.
///
/// # Panics
/// Under `CHORUS_TESTS_REQUIRE=all`, unless `CHORUS_TESTS_MAY_SKIP` lists the need.
pub fn skip_without(need: Need, why: &str) {
    report(Some(need), why);
}

/// Prints the reason past the capture of test output and adds it to the file that `CHORUS_TEST_SKIPS` names, one line each:
/// `.ci/run` shows and counts them.
fn report(need: Option<Need>, why: &str) {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let verdict = judge(need, &variable("CHORUS_TESTS_REQUIRE"), &variable("CHORUS_TESTS_MAY_SKIP"));
    let line = format!("{}: {why}\n", std::thread::current().name().unwrap_or("a test"));
    if let Err(fault) = verdict {
        panic!("{why}: {fault}");
    }
    // Only the macros that print are captured.
    let _ = std::io::stderr().write_all(format!("skipped {line}").as_bytes());
    let Some(list) = std::env::var_os("CHORUS_TEST_SKIPS") else { return };
    let noted =
        OpenOptions::new().append(true).create(true).open(&list).and_then(|mut file| file.write_all(line.as_bytes()));
    assert!(noted.is_ok(), "{}: {noted:?}", list.display());
}

/// Says if a test may be skipped.
fn judge(need: Option<Need>, require: &str, may_skip: &str) -> Result<(), String> {
    let listed: Vec<&str> = may_skip.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let known = Need::ALL.map(Need::name);
    if let Some(unknown) = listed.iter().find(|name| !known.contains(name)) {
        return Err(format!("CHORUS_TESTS_MAY_SKIP has {unknown:?}, which is none of: {}", known.join(", ")));
    }
    match require {
        "" | "none" => Ok(()),
        "all" => match need {
            Some(need) if listed.contains(&need.name()) => Ok(()),
            Some(need) => Err(format!(
                "skipped under CHORUS_TESTS_REQUIRE=all (add {:?} to CHORUS_TESTS_MAY_SKIP if this machine cannot do it)",
                need.name()
            )),
            None => Err("skipped under CHORUS_TESTS_REQUIRE=all (install what is missing)".into()),
        },
        other => Err(format!("CHORUS_TESTS_REQUIRE is {other:?}, neither \"all\" nor \"none\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_requirement_everything_may_be_skipped() {
        for require in ["", "none"] {
            assert_eq!(judge(None, require, ""), Ok(()));
            assert_eq!(judge(Some(Need::Mount), require, ""), Ok(()));
        }
    }

    #[test]
    fn where_all_are_required_only_listed_needs_may_be_skipped() {
        assert_eq!(judge(Some(Need::Mount), "all", "root, mount"), Ok(()));
        assert!(judge(Some(Need::Cgroups), "all", "root,mount").unwrap_err().contains("\"cgroups\""));
        assert!(judge(None, "all", "root,mount").unwrap_err().contains("install"));
    }

    #[test]
    fn a_misspelled_variable_is_an_error() {
        assert!(judge(None, "", "mounts").unwrap_err().contains("none of: root, mount"));
        assert!(judge(None, "ALL", "").unwrap_err().contains("neither"));
    }
}
