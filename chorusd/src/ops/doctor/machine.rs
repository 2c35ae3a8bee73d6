//! What the machine has: git, and what a sandbox would find.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use chorus_proto::methods::doctor::{Check, Verdict};

use super::{check, check_with, landlock};

/// git, and what sandboxes are built of. The latter only informs: nothing here needs it.
pub fn checks() -> Vec<Check> {
    let information = [
        ("bubblewrap", find("bwrap").map_or_else(|| "not installed".into(), |path| path.display().to_string())),
        ("namespaces", namespaces()),
        ("Landlock", landlock::abi().map_or_else(|| "not there".into(), |abi| format!("ABI {abi}"))),
        ("seccomp", seccomp()),
    ];
    let information = information.into_iter().map(|(name, text)| check(name, Verdict::Info, text));
    std::iter::once(git()).chain(information).collect()
}

fn git() -> Check {
    let asked = Command::new("git").arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    match asked {
        Ok(said) if said.status.success() => {
            let version = String::from_utf8_lossy(&said.stdout);
            check("git", Verdict::Ok, version.trim().trim_start_matches("git version ").to_owned())
        }
        _ => check_with("git", Verdict::Fail, "not found", "install git: no agent can be made without it"),
    }
}

/// The first of that name in PATH.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

/// Whether a user may make namespaces: several switches turn it off, some only on some distributions.
fn namespaces() -> String {
    let number = |name: &str| fs::read_to_string(format!("/proc/sys/{name}")).ok()?.trim().parse::<u64>().ok();
    match number("user/max_user_namespaces") {
        None => return "not there".into(),
        Some(0) => return "switched off (user.max_user_namespaces is 0)".into(),
        Some(_) => {}
    }
    if number("kernel/unprivileged_userns_clone") == Some(0) {
        return "for root only (kernel.unprivileged_userns_clone is 0)".into();
    }
    if number("kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
        return "only with an AppArmor profile (kernel.apparmor_restrict_unprivileged_userns is 1)".into();
    }
    "for every user".into()
}

fn seccomp() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:")).map(str::trim);
    match mode {
        None => "not there".into(),
        Some("0") => "filters can be set".into(),
        Some(_) => "filters can be set; one is in force already".into(),
    }
}
