//! Renders the systemd user unit.

use super::{HEADER, Instance, quote};

/// File name of the unit.
pub(in super::super) const SERVICE_NAME: &str = "chorusd.service";

/// Renders the unit, with the `--socket` of the command line and the environment variables of the instance.
///
/// # Errors
/// A path or value contains characters that a unit cannot hold.
pub(in super::super) fn render_service(instance: &Instance<'_>) -> Result<String, String> {
    let (daemon, socket) = (quote::program(instance.daemon)?, instance.socket_argument()?);
    let client = quote::program(instance.client)?;
    let variables = instance.environment_lines()?;
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
ExecStart={daemon}{socket}
{variables}Restart=on-failure
RestartSec=1
# Do not restart after invalid configuration (2), a refusal such as a moved home or database (6), or if another daemon
# is running (7): a retry would fail again, or start with an empty home.
RestartPreventExitStatus=2 6 7
# Reads config.toml again; fails and changes nothing if the file has an error.
ExecReload={client} config reload{socket}
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn render(daemon: &str, socket: Option<&str>, environment: &[(&str, String)]) -> Result<String, String> {
        let client = Path::new("/usr/bin/chorusctl");
        render_service(&Instance { daemon: Path::new(daemon), client, socket: socket.map(Path::new), environment })
    }

    #[test]
    fn strange_paths_are_quoted() {
        let environment = [("CHORUS_HOME", "/srv/$x 1".into())];
        let unit = render("/opt/100% new/$bin/chorusd", Some("/run/a \"$b\".sock"), &environment);
        let unit = unit.unwrap_or_default();
        for line in [
            r#"ExecStart="/opt/100%% new/$bin/chorusd" --socket "/run/a \"$$b\".sock""#,
            r#"Environment="CHORUS_HOME=/srv/$x 1""#,
            r#"ExecReload=/usr/bin/chorusctl config reload --socket "/run/a \"$$b\".sock""#,
        ] {
            assert!(unit.lines().any(|there| there == line), "{line}: {unit}");
        }
        assert!(render("/a\"b", None, &[]).is_err());
        assert!(render("/a\nExecStartPre=/bin/evil", None, &[]).is_err());
    }

    #[test]
    fn plain_paths_stay_plain() {
        let unit = render("/usr/bin/chorusd", None, &[]).unwrap_or_default();
        assert!(
            unit.starts_with(HEADER) && unit.contains("\nExecStart=/usr/bin/chorusd\nRestart=on-failure\n"),
            "{unit}"
        );
    }
}
