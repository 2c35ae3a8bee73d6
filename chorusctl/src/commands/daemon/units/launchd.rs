//! The property list for launchd, the service manager of macOS.

use super::{HEADER, Instance, quote};

/// Label of the service.
const LABEL: &str = "chorusd";

/// File name of the property list in `~/Library/LaunchAgents`.
pub(in super::super) const PLIST_NAME: &str = "chorusd.plist";

/// Renders the property list (launchd.plist(5)).
///
/// # Errors
/// A path or value contains characters that XML cannot hold.
pub(in super::super) fn render_plist(instance: &Instance<'_>) -> Result<String, String> {
    let mut program = vec![string(quote::path_str(instance.daemon)?)?];
    if let Some(socket) = instance.socket {
        program.extend([string("--socket")?, string(quote::path_str(socket)?)?]);
    }
    let program: String = program.iter().map(|argument| format!("    {argument}\n")).collect();
    let mut variables = String::new();
    for (name, value) in instance.environment {
        variables.push_str(&format!("    <key>{name}</key>\n    {}\n", string(value)?));
    }
    let variables = if variables.is_empty() {
        String::new()
    } else {
        format!("  <key>EnvironmentVariables</key>\n  <dict>\n{variables}  </dict>\n")
    };
    let header = HEADER.trim_start_matches("# ");
    Ok(format!(
        "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<!-- {header} -->
<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">
<plist version=\"1.0\">
<dict>
  <key>Label</key>
  <string>{LABEL}</string>
  <key>ProgramArguments</key>
  <array>
{program}  </array>
{variables}  <key>RunAtLoad</key>
  <true/>
  <!-- Started again after a failure, not after `chorusctl daemon stop`. -->
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <!-- Longer than `stop_timeout` (10s), during which every conversation is saved. -->
  <key>ExitTimeOut</key>
  <integer>30</integer>
  <!-- 077: new files are private to their owner. -->
  <key>Umask</key>
  <integer>63</integer>
</dict>
</plist>
"
    ))
}

/// Returns the element for a text.
fn string(text: &str) -> Result<String, String> {
    if let Some(c) = text.chars().find(|c| c.is_control()) {
        return Err(format!("{text:?} contains {c:?}, which a property list does not allow"));
    }
    Ok(format!("<string>{}</string>", text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")))
}
