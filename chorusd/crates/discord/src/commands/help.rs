//! `/help`.

use chorus_base::error::Result;

use super::command_definition::{Command, Subcommand, Subcommands, read_only_command};
use super::command_table::{COMMANDS, is_direct};
use super::invocation::{Caller, Invocation};
use super::response::Response;
use super::text_format::inline_text;

pub(super) const COMMAND: Command =
    read_only_command("help", "Show what you can do here", &[], |call| Box::pin(help(call)));

async fn help(call: &Invocation) -> Result<Response> {
    let by = &call.caller;
    let place = if by.is_direct() { "here" } else { "in this channel" };
    let intro = match by.channel_agent() {
        Some(agent) => format!(
            "Write {place} to talk to **{}**; images and text files can be attached. While it works, its reply has a Stop \
             button. If it needs permission for something, it asks here, with buttons to allow or deny it.",
            inline_text(by, &agent.settings.name, 64)
        ),
        None => "This channel has no agent. To talk to an agent, write in its channel.".to_owned(),
    };
    let lines: Vec<String> = COMMANDS
        .iter()
        .filter(|command| !by.is_direct() || is_direct(command.name))
        .filter_map(|command| command_line(by, command))
        .collect();
    Ok(Response::new(format!("{intro}\n\nCommands that you can use:\n{}", lines.join("\n"))))
}

/// Formats a command with those of its subcommands that the caller may use; `None` if there are none.
fn command_line(by: &Caller, command: &Command) -> Option<String> {
    let subcommands = command.all_subcommands().iter();
    let allowed: Vec<&Subcommand> = subcommands.filter(|sub| by.check_right(sub.right).is_ok()).collect();
    let names: Vec<&str> = allowed.iter().map(|sub| sub.name).collect();
    let (suffix, description) = match (&command.subcommands, &*allowed) {
        (_, []) => return None,
        (Subcommands::One(_), _) => (String::new(), command.description),
        (Subcommands::Many(_), [only]) => (format!(" {}", only.name), only.description),
        (Subcommands::Many(_), _) => (format!(" {}", names.join(" | ")), command.description),
    };
    Some(format!("- `/{}{suffix}`: {description}", command.name))
}
