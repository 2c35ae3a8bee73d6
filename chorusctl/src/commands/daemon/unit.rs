//! Renders the systemd user unit.

use std::path::Path;

/// First line of every unit that Chorus wrote. Units without it belong to the user and are not overwritten.
pub(super) const HEADER: &str = "# Written by `chorusctl daemon install`.";

/// Renders the unit for `program`, with the `--socket` of the command line and the environment variables of the
/// instance.
///
/// # Errors
/// A path or value contains characters that a unit cannot hold.
pub(super) fn render(program: &Path, socket: Option<&Path>, environment: &[(&str, String)]) -> Result<String, String> {
    let mut start = quote_program(path_str(program)?)?;
    if let Some(socket) = socket {
        start.push_str(" --socket ");
        start.push_str(&quote_argument(path_str(socket)?)?);
    }
    let mut variables = String::new();
    for (name, value) in environment {
        variables.push_str(&format!("Environment={}\n", quote(&format!("{name}={value}"))?));
    }
    Ok(format!(
        "\
{HEADER} To customize it, run:
# systemctl --user edit chorusd

[Unit]
Description=Chorus, conversation store for AI agents
StartLimitIntervalSec=60
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=main
ExecStart={start}
{variables}Restart=on-failure
RestartSec=1
# Do not restart after invalid configuration (2), a refusal such as a moved home or database (6), or if another daemon
# is running (7): a retry would fail again, or start with an empty home.
RestartPreventExitStatus=2 6 7
# The journal writer sends the keep-alive: if the disk hangs, systemd restarts the daemon. No acknowledged data is lost.
WatchdogSec=60
TimeoutStartSec=5min
# Longer than `stop_timeout` (10s), during which every conversation is saved.
TimeoutStopSec=30
# Send SIGTERM only to the daemon; it stops its own child processes.
KillMode=mixed

# New files are private to their owner. Core dumps are off, because memory contains conversations.
UMask=0077
LimitCORE=0
LimitNOFILE=16384
TasksMax=4096
# Each command of an agent runs in its own control group below the daemon's, with limits on memory and processes.
Delegate=memory pids
# If a command of an agent runs out of memory, keep the daemon running.
OOMPolicy=continue
UnsetEnvironment=LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT
# Not set, because Chorus runs the commands of agents in its own, stricter sandboxes:
#   NoNewPrivileges=, and settings that imply it in a user unit (SystemCallFilter=, LockPersonality=,
#   RestrictSUIDSGID=, MemoryDenyWriteExecute=, ...): they would prevent a setuid bwrap from starting.
#   RestrictNamespaces=: the sandbox needs user namespaces.
#   ProtectSystem=, ProtectHome=, PrivateTmp=, PrivateUsers=: in a user unit they use a user namespace, in which
#   mounts are locked and more namespaces may be refused.

[Install]
WantedBy=default.target
"
    ))
}

fn path_str(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{} is not UTF-8, which a systemd unit requires", path.display()))
}

/// Quotes the program path of ExecStart; systemd accepts neither quotes nor backslashes in it.
fn quote_program(text: &str) -> Result<String, String> {
    match text.chars().find(|c| "\"'\\".contains(*c)) {
        Some(c) => Err(format!("{text} contains {c}, which ExecStart= does not allow in the program path")),
        None => quote(text),
    }
}

/// Quotes an argument of ExecStart; escapes `$`, which would expand a variable.
fn quote_argument(text: &str) -> Result<String, String> {
    quote(&text.replace('$', "$$"))
}

/// Quotes a word if necessary; escapes `%`, which would be a specifier.
fn quote(text: &str) -> Result<String, String> {
    if let Some(c) = text.chars().find(|c| c.is_control()) {
        return Err(format!("{text:?} contains {c:?}, which a systemd unit does not allow"));
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    let plain = |c: char| c.is_alphanumeric() || "/._-=+:,@%$~".contains(c);
    Ok(if escaped.chars().all(plain) { escaped } else { format!("\"{escaped}\"") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strange_paths_are_quoted() {
        let unit = render(
            Path::new("/opt/100% new/$bin/chorusd"),
            Some(Path::new("/run/a \"$b\".sock")),
            &[("CHORUS_HOME", "/srv/$x 1".into())],
        );
        let unit = unit.unwrap_or_default();
        for line in [
            r#"ExecStart="/opt/100%% new/$bin/chorusd" --socket "/run/a \"$$b\".sock""#,
            r#"Environment="CHORUS_HOME=/srv/$x 1""#,
        ] {
            assert!(unit.lines().any(|there| there == line), "{line}: {unit}");
        }
        assert!(render(Path::new("/a\"b"), None, &[]).is_err());
        assert!(render(Path::new("/a\nExecStartPre=/bin/evil"), None, &[]).is_err());
    }

    #[test]
    fn plain_paths_stay_plain() {
        let unit = render(Path::new("/usr/bin/chorusd"), None, &[]).unwrap_or_default();
        assert!(
            unit.starts_with(HEADER) && unit.contains("\nExecStart=/usr/bin/chorusd\nRestart=on-failure\n"),
            "{unit}"
        );
    }
}
