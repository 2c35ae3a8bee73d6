//! The timer of the nightly export, and the service that it starts.

use std::path::Path;

use super::service::SERVICE_NAME;
use super::{HEADER, Instance, quote};

/// File names of the units.
pub(in super::super) const EXPORT_SERVICE_NAME: &str = "chorus-export.service";
pub(in super::super) const EXPORT_TIMER_NAME: &str = "chorus-export.timer";

/// Renders the service that exports every saved conversation to `directory`, an absolute path.
///
/// # Errors
/// A path or value contains characters that a unit cannot hold.
pub(in super::super) fn render_export_service(instance: &Instance<'_>, directory: &Path) -> Result<String, String> {
    let (client, socket) = (quote::program(instance.client)?, instance.socket_argument()?);
    let target = quote::argument(quote::path_str(directory)?)?;
    let environment = instance.environment_lines()?;
    Ok(format!(
        "\
{HEADER} To customize it, run:
# systemctl --user edit {EXPORT_SERVICE_NAME}

[Unit]
Description=Export of Chorus' saved conversations
Wants={SERVICE_NAME}
After={SERVICE_NAME}

[Service]
Type=oneshot
# Files that are up to date are not written again. A daemon that this started would end with this service.
ExecStart={client}{socket} --no-autostart session export --all-agents --output {target}
{environment}Nice=10
UMask=0077
# It talks to the daemon and writes files, nothing else.
NoNewPrivileges=yes
RestrictAddressFamilies=AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
"
    ))
}

/// Renders the timer.
pub(in super::super) fn render_export_timer() -> String {
    format!(
        "\
{HEADER} To customize it, run:
# systemctl --user edit {EXPORT_TIMER_NAME}

[Unit]
Description=Nightly export of Chorus' saved conversations

[Timer]
OnCalendar=*-*-* 03:30:00
RandomizedDelaySec=15min
# After a night in which the machine was off, the export runs when it is on again.
Persistent=true

[Install]
WantedBy=timers.target
"
    )
}
