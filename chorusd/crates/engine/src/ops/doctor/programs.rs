//! Checks the programs that Chorus needs.

use std::process::{Command, Stdio};

use chorus_proto::methods::doctor::{Check, Verdict};

use super::{check, check_with};

/// Checks git.
pub(super) fn checks() -> Vec<Check> {
    vec![check_git()]
}

fn check_git() -> Check {
    let asked = Command::new("git").arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    match asked {
        Ok(said) if said.status.success() => {
            let version = String::from_utf8_lossy(&said.stdout);
            check("git", Verdict::Ok, version.trim().trim_start_matches("git version ").to_owned())
        }
        _ => check_with("git", Verdict::Fail, "not found", "install git: agents cannot be created without it"),
    }
}
