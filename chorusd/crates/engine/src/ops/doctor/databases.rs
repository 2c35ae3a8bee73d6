//! Checks SQLite and the two databases.

use std::path::Path;

use chorus_proto::methods::doctor::{Check, Verdict};
use chorus_store::{CATALOG_FILE, DB_DIR, JOURNAL_FILE, integrity};

use super::{check, check_with};

/// Checks the version, and every page of each database; if `thorough`, also the indexes.
pub(super) fn checks(home: &Path, thorough: bool) -> Vec<Check> {
    let (version, good) = integrity::sqlite_version();
    let verdict = if good { Verdict::Ok } else { Verdict::Fail };
    let mut checks = vec![check("SQLite", verdict, format!("{version}, built in"))];
    let hints = [
        (
            JOURNAL_FILE,
            "chorusctl daemon stop, then chorusctl doctor --salvage: it makes sessions of everything that can be read",
        ),
        (
            CATALOG_FILE,
            "chorusctl daemon stop, then chorusctl doctor --rebuild: it makes a new one from the directories",
        ),
    ];
    for (name, hint) in hints {
        let path = home.join(DB_DIR).join(name);
        let problems = integrity::find_problems_while_open(&path, thorough);
        checks.push(match problems.first() {
            None => {
                let kind = if thorough { "every page and index is sound" } else { "every page is sound" };
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
