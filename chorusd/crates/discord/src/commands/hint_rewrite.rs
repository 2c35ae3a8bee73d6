//! Rewrites texts for Discord: operations name `chorusctl` commands, which are replaced by slash commands. Pure.

use chorus_engine::ops::hints;

use super::agent::AGENT_CONFIG_KEYS;
use super::command_definition::{OptionKind, Subcommand};
use super::command_table::find_subcommand;
use super::terminal_terms::{is_for_owner, replace_terms};

/// Hints without a complete command, and their replacements in Discord.
const PHRASES: [(&str, &str); 6] = [
    (", or the owner at a terminal", ""),
    (" (`approvers` in [discord])", ""),
    (hints::LIST_PINNED_FACTS, "list them with their numbers: `/unpin`"),
    (hints::RESET_SETTING, "to reset the setting, choose the option `reset`"),
    (hints::APPROVE_ONCE, "it is still pending: press *Allow once*"),
    (hints::NAME_AGENT, "choose one with the option `agent`"),
];

/// `chorusctl` commands whose slash command has another name.
const RENAMED_COMMANDS: [(&[&str], &[&str]); 10] = [
    (&["models", "validate"], &["settings", "validate-keys"]),
    (&["agent", "show"], &["status"]),
    (&["context", "pin"], &["pin"]),
    (&["context", "unpin"], &["unpin"]),
    (&["permissions", "rules"], &["permissions", "show"]),
    (&["save"], &["context", "save"]),
    (&["history"], &["context", "history"]),
    (&["restore"], &["context", "restore"]),
    (&["resume"], &["context", "resume"]),
    (&["undo"], &["context", "rewind"]),
];

/// Flags without meaning in Discord: agent and conversation are those of the channel, and destructive commands ask for confirmation.
const IGNORED_FLAGS: [&str; 3] = ["--all", "--all-agents", "--yes"];

/// Begins a line of a list, such as a candidate, which is not Chorus's own text.
const LIST_INDENT: &str = "  ";

/// The hint in place of one that names commands for the terminal only.
const OWNER_ONLY: &str = "ask the owner; this needs access to the computer that runs Chorus";

const PROGRAM: &str = "chorusctl ";

/// Prefix of the id of a Discord user in the audit log.
const PERSON_PREFIX: &str = "discord:";

/// Rewrites a text that people wrote parts of: replaces its `chorusctl` commands by slash commands, and drops the clauses
/// with a command that has none. Of a text that begins with such a clause, the part before the command is kept.
#[must_use]
pub(super) fn rewrite_commands(text: &str) -> String {
    rewrite_clauses(text, text_before_command, |clause| !clause.has_command)
}

/// Rewrites an error, a warning or a note: like [`rewrite_commands`], and terms of the terminal become plain words. Behind
/// the first clause, which says what has happened, it names only what can be done in Discord.
#[must_use]
pub(crate) fn rewrite_message(text: &str) -> String {
    replace_terms(&rewrite_clauses(text, text_before_command, |clause| clause.is_first && !clause.has_command))
}

/// Rewrites a hint: like [`rewrite_message`], but it names only what can be done in Discord, or says that the owner has
/// to do it.
#[must_use]
pub(super) fn rewrite_hint(hint: &str) -> String {
    replace_terms(&rewrite_clauses(hint, |_| "", |_| false))
}

/// A clause, for the decision whether it is kept if it is for the owner.
#[derive(Debug, Clone, Copy)]
struct Clause {
    is_first: bool,
    has_command: bool,
}

/// Rewrites a text clause by clause. Of the clauses that are for the owner only those stay that `is_kept`. `fallback`
/// returns what is kept of the first clause if it has no replacement.
fn rewrite_clauses(text: &str, fallback: fn(&str) -> &str, is_kept: fn(Clause) -> bool) -> String {
    let text = PHRASES.iter().fold(text.to_owned(), |text, (there, here)| text.replace(there, here));
    let mut said = String::with_capacity(text.len());
    let (mut is_dropped, mut has_changed) = (false, false);
    for (at, clause) in split_clauses(&text).into_iter().enumerate() {
        let about = Clause { is_first: at == 0, has_command: clause.contains(PROGRAM) };
        let rewritten = match clause.starts_with(LIST_INDENT) {
            // What continues the list is a command of the terminal.
            true => Some(clause.split_once(": chorusctl ").map_or(clause, |(entry, _)| entry).to_owned()),
            false => rewrite_clause(clause).filter(|clause| is_kept(about) || !is_for_owner(clause)),
        };
        let kept = match &rewritten {
            Some(kept) if is_dropped => kept.strip_prefix("or ").unwrap_or(kept),
            Some(kept) => kept,
            None if said.is_empty() => fallback(clause),
            None => "",
        };
        is_dropped = rewritten.is_none();
        has_changed |= rewritten.as_deref() != Some(clause);
        said.push_str(kept);
    }
    if !has_changed {
        return text;
    }
    let said = said.trim_end_matches([' ', ';', '\n']);
    if said.is_empty() { OWNER_ONLY.to_owned() } else { said.to_owned() }
}

/// Splits a text after each semicolon, sentence and line.
fn split_clauses(text: &str) -> Vec<&str> {
    let mut clauses = Vec::new();
    for line in text.split_inclusive('\n') {
        // A title in an entry of a list may have any punctuation.
        match line.starts_with(LIST_INDENT) {
            true => clauses.push(line),
            false => clauses.extend(line.split_inclusive("; ").flat_map(|part| part.split_inclusive(". "))),
        }
    }
    clauses
}

/// Returns the part of a clause before its command, up to the last punctuation mark.
fn text_before_command(clause: &str) -> &str {
    let before = clause.find(PROGRAM).map_or(clause, |at| &clause[..at]);
    before.rfind([':', ',', '(']).map_or("", |end| before[..end].trim_end())
}

/// Replaces the commands in a clause; `None` if one of them has no slash command.
fn rewrite_clause(clause: &str) -> Option<String> {
    let mut rest = clause.to_owned();
    let mut said = String::with_capacity(rest.len());
    while let Some(at) = rest.find(PROGRAM) {
        let quoted = rest[..at].ends_with('`');
        said.push_str(rest[..at].strip_suffix('`').unwrap_or(&rest[..at]));
        let tail = rest.split_off(at);
        let end = if quoted { tail.find('`') } else { tail.find([';', ',', '(', '\n']) }.unwrap_or(tail.len());
        let command = tail[PROGRAM.len()..end].trim_end();
        said.push_str(&to_slash_command(command)?);
        // Keep the blank behind a command that is not quoted.
        let blank = if quoted { "" } else { &tail[PROGRAM.len() + command.len()..end] };
        said.push_str(blank);
        rest = tail[(end + usize::from(quoted)).min(tail.len())..].to_owned();
    }
    Some(said + &rest)
}

/// Replaces `discord:ID`, the form of the audit log, by a mention. Chorus's messages allow no mentions, so it notifies
/// nobody.
#[must_use]
pub(crate) fn mention_people(text: &str) -> String {
    let (mut said, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(PERSON_PREFIX) {
        let id = &rest[at + PERSON_PREFIX.len()..];
        let digits = id.bytes().take_while(u8::is_ascii_digit).count();
        let begins = !rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let taken = at + PERSON_PREFIX.len() + digits;
        match begins && digits > 0 {
            true => said.push_str(&format!("{}<@{}>", &rest[..at], &id[..digits])),
            false => said.push_str(&rest[..taken]),
        }
        rest = &rest[taken..];
    }
    said + rest
}

/// Converts a `chorusctl` command to a slash command; `None` if there is none.
fn to_slash_command(command: &str) -> Option<String> {
    let mut words: Vec<&str> = command.split_whitespace().filter(|word| !IGNORED_FLAGS.contains(word)).collect();
    for option in ["--agent", "-C"] {
        if let Some(at) = words.iter().position(|word| *word == option) {
            words.drain(at..(at + 2).min(words.len()));
        }
    }
    for (there, here) in RENAMED_COMMANDS {
        if words.starts_with(there) {
            drop(words.splice(..there.len(), here.iter().copied()));
        }
    }
    let (&name, given) = words.split_first()?;
    let (action, sub, given) = match find_subcommand(name, None) {
        Some(action) => (action, None, given),
        None => (find_subcommand(name, given.first().copied())?, given.first(), &given[1..]),
    };
    let sub = sub.map_or_else(String::new, |sub| format!(" {sub}"));
    Some(format!("`/{name}{sub}{}`", to_slash_options(action, given)?))
}

/// Converts the arguments of a command to slash command options; `None` if that is not possible.
fn to_slash_options(action: &Subcommand, given: &[&str]) -> Option<String> {
    let mut open = action.options.iter().filter(|option| option.kind != OptionKind::Bool);
    let mut said = String::new();
    for word in given {
        if let Some(flag) = word.strip_prefix("--") {
            let known = action.options.iter().find(|option| option.name == flag && option.kind == OptionKind::Bool)?;
            said.push_str(&format!(" {}:True", known.name));
            continue;
        }
        let option = open.next()?;
        match (option.kind, *word) {
            (OptionKind::OneOf(words), word) if words == AGENT_CONFIG_KEYS && !AGENT_CONFIG_KEYS.contains(&word) => {
                return None;
            }
            (_, "\"\"") => said.push_str(" reset:True"),
            (_, word) => said.push_str(&format!(" {}:{word}", option.name)),
        }
    }
    Some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_mentioned() {
        for (there, due) in [
            ("k7 was approved already, by discord:81", "k7 was approved already, by <@81>"),
            ("(discord:81)", "(<@81>)"),
            ("discord:x xdiscord:1 discord:", "discord:x xdiscord:1 discord:"),
            ("", ""),
        ] {
            assert_eq!(mention_people(there), due);
        }
    }

    #[test]
    fn commands_of_the_terminal_are_those_that_there_are_here() {
        for (there, due) in [
            ("`chorusctl context history` shows them", "`/context history` shows them"),
            ("run `chorusctl context history` first, or use its name", "run `/context history` first, or use its name"),
            (
                "`chorusctl --agent maps context restore k7mq2x` has every message",
                "`/context restore session:k7mq2x` has every message",
            ),
            ("clear it: chorusctl --agent maps -C review cancel", "clear it: `/cancel`"),
            ("continue with it: chorusctl restore k7mq2x", "continue with it: `/context restore session:k7mq2x`"),
            ("`chorusctl context compact --undo` shows them again", "`/context compact undo:True` shows them again"),
            ("list tasks: `chorusctl tasks list --all-agents`", "list tasks: `/tasks list`"),
            (
                "`chorusctl models` lists them; `chorusctl agent config maps model NAME` chooses one",
                "`/models` lists them; `/agent config name:maps key:model value:NAME` chooses one",
            ),
            (
                "`chorusctl agent config maps channel_id \"\"` frees it",
                "`/agent config name:maps key:channel_id reset:True` frees it",
            ),
            ("check the key, then `chorusctl models validate`", "check the key, then `/settings validate-keys`"),
            ("`chorusctl agent show maps`, or choose another", "`/status agent:maps`, or choose another"),
            ("make one: chorusctl agent init NAME", "make one: `/agent init name:NAME`"),
            (
                "wait for its end, or end it with `chorusctl cancel maps`",
                "wait for its end, or end it with `/cancel agent:maps`",
            ),
            ("try again in a moment", "try again in a moment"),
            ("an open ` and `chorusctl ping", "an open ` and `/ping`"),
            ("", ""),
        ] {
            assert_eq!((&*rewrite_commands(there), &*rewrite_hint(there)), (due, due));
        }
    }

    #[test]
    fn a_hint_for_the_terminal_only_is_left_out() {
        for (there, due) in [
            (
                "use the ID:\n  k7  Ports; and more. Later\n  … and 2 more: chorusctl history ports",
                "use the ID:\n  k7  Ports; and more. Later\n  … and 2 more",
            ),
            (hints::LIST_PINNED_FACTS, "list them with their numbers: `/unpin`"),
            (hints::RESET_SETTING, "to reset the setting, choose the option `reset`"),
            (hints::APPROVE_ONCE, "it is still pending: press *Allow once*"),
            (hints::NAME_AGENT, "choose one with the option `agent`"),
            ("see `chorusctl context show`", OWNER_ONLY),
            ("see `chorusctl agent config maps project NAME`", OWNER_ONLY),
            ("list presets: chorusctl permissions list; or fix it", "fix it"),
            ("use its name; list agents: chorusctl agent list", "use its name; list agents: `/agent list`"),
            ("try again; see the log: `chorusctl daemon logs`", "try again"),
            ("at the terminal, run `chorusctl agent init maps`; or choose another name", "choose another name"),
        ] {
            assert_eq!(rewrite_hint(there), due);
        }
        for (there, due) in [
            ("the files were kept: see `chorusctl trash list`", "the files were kept"),
            ("It is long. Show it: `chorusctl context show`\nDecided: x", "It is long. Decided: x"),
            ("see `chorusctl context show`", OWNER_ONLY),
        ] {
            assert_eq!(rewrite_commands(there), due);
        }
    }
}
