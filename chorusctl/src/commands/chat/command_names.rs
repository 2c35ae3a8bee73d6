//! Names commands in texts as they are typed in a chat: `chorusctl undo --redo` is `/undo --redo`.

use super::slash::{self, Action};

const PROGRAM: &str = "chorusctl ";

/// Replaces the commands in `text` for which there is a slash command.
pub(super) fn rename(text: &str) -> String {
    let mut parts = text.split(PROGRAM);
    let mut renamed = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match slash_name(part) {
            Some(slash) => renamed.push_str(&slash),
            None => renamed.push_str(&format!("{PROGRAM}{part}")),
        }
    }
    renamed
}

/// Replaces the name of the command that `text` starts with by that of its slash command; `None` if it has none.
#[must_use]
pub(super) fn slash_name(text: &str) -> Option<String> {
    find(text).map(|(name, rest)| format!("{name}{rest}"))
}

/// Returns the slash command for the longest command that `text` begins with, and the rest of the text.
fn find(text: &str) -> Option<(&'static str, &str)> {
    let named = slash::all().filter_map(|command| {
        let path = match command.action {
            Action::Run(path, _) | Action::Switch(path, _) => path,
            Action::Show => "show",
            Action::Help | Action::New | Action::Exit => return None,
        };
        // The agent of the chat is not typed.
        let path = path.split(" {agent}").next().unwrap_or(path);
        if path == "agent config" {
            return None;
        }
        let rest = text.strip_prefix(path)?;
        let whole = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_');
        whole.then_some((path.len(), command.name, rest))
    });
    named.max_by_key(|(length, ..)| *length).map(|(_, name, rest)| (name, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_named_as_they_are_typed_in_a_chat() {
        for (text, renamed) in [
            (
                "removed the last 2 messages (1 left); redo: chorusctl undo --redo",
                "removed the last 2 messages (1 left); redo: /undo --redo",
            ),
            ("`chorusctl context pin TEXT`, chorusctl approvals", "`/pin TEXT`, /approvals"),
            ("chorusctl show --at 16", "/show --at 16"),
            ("`chorusctl show 9f1c --around 16`, chorusctl search x", "`/show 9f1c --around 16`, /search x"),
            ("chorusctl daemon logs, or chorusctl shower", "chorusctl daemon logs, or chorusctl shower"),
            ("chorusctl agent config a model x", "chorusctl agent config a model x"),
        ] {
            assert_eq!(rename(text), renamed);
        }
    }
}
