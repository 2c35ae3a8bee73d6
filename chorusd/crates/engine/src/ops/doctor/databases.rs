//! Checks SQLite and the two databases.

use std::path::Path;

use chorus_proto::methods::doctor::{Check, Verdict};
use chorus_store::{CATALOG_FILE, DB_DIR, JOURNAL_FILE, integrity};

use super::{check, check_with};

/// Checks the version, and every page of each database; if `thorough`, also the indexes.
pub(super) fn checks(home: &Path, thorough: bool) -> Vec<Check> {
    let (version, good) = integrity::sqlite_version();
    let verdict = if good { Verdict::Ok } else { Verdict::Fail };
    let mut checks = vec![check("SQLite", verdict, format!("{version} (built in)"))];
    let hints = [
        (JOURNAL_FILE, "save all readable messages as sessions: chorusctl daemon stop && chorusctl doctor --salvage"),
        (CATALOG_FILE, "rebuild it from the files: chorusctl daemon stop && chorusctl doctor --rebuild"),
    ];
    for (name, hint) in hints {
        let path = home.join(DB_DIR).join(name);
        let problems = integrity::find_problems_while_open(&path, thorough);
        checks.push(match problems.first() {
            None => {
                let kind = if thorough { "full integrity check passed" } else { "integrity check passed" };
                check(name, Verdict::Ok, kind)
            }
            Some(first) => {
                let more = if problems.len() > 1 { format!(" and {} more", problems.len() - 1) } else { String::new() };
                check_with(name, Verdict::Fail, format!("damaged: {first}{more}"), hint)
            }
        });
    }
    checks
}
