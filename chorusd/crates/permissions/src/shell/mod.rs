//! Splits a shell command into the parts that a profile judges.

mod command_kinds;
mod command_runners;
mod delegating_options;
mod git_dir;
mod hidden_chars;
mod named_output_files;
mod normalize;
mod paths;
mod plain_commands;
mod safe_programs;
mod strict_parser;
mod syntax_tree;
mod unnamed_output_files;
mod variables;

use super::action::{Action, BASH_PREFIX};
pub(crate) use command_kinds::kind_len;
use paths::PossibleDirectories;
pub use paths::WorkspacePaths;
pub(crate) use safe_programs::check as reviewed;
use strict_parser::{RefusalReason, SimpleCommand, Word};

/// Longest command that is parsed, in bytes.
const MAX_COMMAND_LEN: usize = 64 << 10;

/// Limit on the substitutions that are searched for in addition to those that the parser finds.
const MAX_SUBSTITUTIONS: usize = 256;
/// Length of each that is examined, in bytes.
const MAX_SUBSTITUTION_LEN: usize = 4 << 10;

/// If a command names more files than this, the files are no longer listed for each directory that it may have changed
/// to.
const MAX_NAMED_FILES: usize = 256;

const TOO_LONG: &str = "it is too long to be parsed";
const AMBIGUOUS: &str = "it is ambiguous";

/// The result of analysing a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandAnalysis {
    /// The parts that are judged separately.
    pub parts: Vec<CommandPart>,
    /// Actions that the command may amount to, which only rules that deny or ask see.
    pub possible_actions: Vec<String>,
    /// The reason why the command as a whole is never better than `ask`; a text that continues "it is asked about
    /// because".
    pub ask_reason: Option<String>,
}

/// One action of a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommandPart {
    /// The action string that all rules see.
    pub action: String,
    /// Other spellings of the action, which only rules that deny or ask see.
    pub alternatives: Vec<String>,
    /// The reason why this part is never better than `ask`.
    pub ask_reason: Option<String>,
    /// The words that a rule must spell out to allow the part; `None` if it is not a command.
    pub invocation: Option<Invocation>,
}

/// A command as seen by rules that allow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Invocation {
    pub words: Vec<String>,
    /// Byte offset of the end of the program name in the command.
    pub program_end: usize,
    /// Byte offset of the end of the last delegating word, with the reason for it.
    pub delegation: Option<(usize, String)>,
}

/// Analyses a command that runs in `workspace`. A command without an `ask_reason` does exactly what its parts say.
#[must_use]
pub(crate) fn analyze(command: &str, workspace: &WorkspacePaths) -> CommandAnalysis {
    if command.len() > MAX_COMMAND_LEN {
        return analyze_unparsed(command, TOO_LONG, workspace);
    }
    let simple = strict_parser::parse(command);
    let mut script = match simple {
        Ok(simple) if plain_commands::are_plain(command) => analyze_plain(command, simple, workspace),
        simple => match syntax_tree::find_commands(command) {
            Ok(found) => analyze_with_both(command, simple, &found, workspace),
            Err(why) => return analyze_unparsed(command, why, workspace),
        },
    };
    // Add the text between the parts too. Without quoting, normalising would yield the text as typed.
    if command.contains(['\'', '"', '\\', '$', '`', '{']) || script.ask_reason.is_some() {
        script.possible_actions.push([BASH_PREFIX, &normalize::normalize_command(command)].concat());
    }
    script
}

/// Analyses a command by what both parsers found in it. Only if they agree can it be allowed.
fn analyze_with_both(
    command: &str,
    simple: Result<Vec<SimpleCommand>, RefusalReason>,
    found: &syntax_tree::CommandSpans,
    workspace: &WorkspacePaths,
) -> CommandAnalysis {
    match simple {
        Ok(simple) if simple.iter().filter_map(|simple| simple.span.clone()).eq(found.commands.iter().cloned()) => {
            analyze_plain(command, simple, workspace)
        }
        Ok(simple) => {
            let mut script = analyze_syntax_tree(command, found, AMBIGUOUS, workspace);
            let other = analyze_plain(command, simple, workspace);
            script.possible_actions.extend(other.possible_actions);
            script
                .possible_actions
                .extend(other.parts.into_iter().flat_map(|piece| [vec![piece.action], piece.alternatives]).flatten());
            script
        }
        Err(why) => analyze_syntax_tree(command, found, why, workspace),
    }
}

/// Analyses a command that both parsers understood alike.
fn analyze_plain(text: &str, commands: Vec<SimpleCommand>, workspace: &WorkspacePaths) -> CommandAnalysis {
    let mut script = CommandAnalysis::default();
    let (mut moved, mut named) = (false, 0);
    let mut from = PossibleDirectories::in_workspace(workspace);
    for simple in commands {
        let words: Vec<&str> = simple.words.iter().map(|word| &*word.value).collect();
        moved |= command_runners::changes_directory(&words);
        let raw = simple.span.clone().and_then(|span| text.get(span)).unwrap_or_default();
        let git_dir = git_dir::ask_reason(words.iter().copied().chain(simple.read_files()));
        let mut also = Vec::new();
        if !simple.redirections.is_empty() || simple.full_span.len() > raw.len() {
            redirected_actions(text, &simple, &mut also);
        }
        if raw.is_empty() {
            script.ask_reason = script.ask_reason.or(git_dir);
            script.possible_actions.append(&mut also);
        } else {
            let guard = variables::ask_reason(&simple.assignments)
                .or_else(|| command_runners::ask_reason(&words))
                .or_else(|| unnamed_output_files::ask_reason(&words))
                .or(git_dir)
                .or_else(|| command_runners::changed_directory_reason(&words).filter(|_| moved))
                .or_else(|| simple.words.first().and_then(obscured_name_reason));
            let action = match simple.words.is_empty() {
                true => raw.to_owned(),
                false => simple.words.iter().map(|word| quote_word(&word.value)).collect::<Vec<_>>().join(" "),
            };
            let call = build_invocation(&simple.words, &words);
            let runs_others = guard.is_some() || call.as_ref().is_some_and(|call| call.delegation.is_some());
            let mut forms = alternative_actions(&action, raw, runs_others);
            let action = Action::Bash { command: &action }.to_string();
            forms.extend(also.into_iter().filter(|form| *form != action));
            script.parts.push(CommandPart { action, alternatives: forms, ask_reason: guard, invocation: call });
        }
        let outputs = named_output_files::written_files(&words);
        named += simple.redirections.len() + outputs.len();
        if moved && named > MAX_NAMED_FILES {
            from.mark_incomplete();
        }
        for path in simple.read_files() {
            push_read_actions(path, &from, &mut script.possible_actions);
            script.ask_reason = script.ask_reason.or_else(|| from.ask_reason(path).map(str::to_owned));
        }
        let writes = simple.written_files().map(str::to_owned).chain(outputs);
        script
            .parts
            .extend(writes.filter_map(|path| written_file_part(&path, &from, moved.then_some(WRITES_AFTER_CD))));
        from.track_directory_change(&words);
    }
    script
}

/// Adds a command with its redirections: as written, and with the redirections moved behind its words.
fn redirected_actions(text: &str, simple: &SimpleCommand, out: &mut Vec<String>) {
    push_possible_actions(text.get(simple.full_span.clone()).unwrap_or_default(), normalize::push_name_forms, out);
    let words = simple.words.iter().map(|word| quote_word(&word.value));
    let files = simple.redirections.iter().flat_map(|file| [file.operator.to_owned(), quote_word(&file.path)]);
    let behind = words.chain(files).collect::<Vec<_>>().join(" ");
    let behind = [BASH_PREFIX, &behind].concat();
    if !out.contains(&behind) {
        out.push(behind);
    }
}

/// Returns the parts of a command that a rule must spell out.
fn build_invocation(words: &[Word], values: &[&str]) -> Option<Invocation> {
    let to = |at: usize| words.iter().take(at + 1).map(|word| quote_word(&word.value).len() + 1).sum::<usize>() - 1;
    let hands_over = delegating_options::find_last(values).map(|found| (to(found.word_index), found.reason));
    let words: Vec<String> = values.iter().map(|word| (*word).to_owned()).collect();
    (!words.is_empty()).then(|| Invocation { program_end: to(0), words, delegation: hands_over })
}

/// Analyses a command that only the tree-sitter parser understood: rules can deny its parts, but nothing of it is
/// allowed.
fn analyze_syntax_tree(
    text: &str,
    found: &syntax_tree::CommandSpans,
    why: &str,
    workspace: &WorkspacePaths,
) -> CommandAnalysis {
    let mut script = CommandAnalysis { ask_reason: Some(why.to_owned()), ..CommandAnalysis::default() };
    let mut from = PossibleDirectories::unknown(workspace);
    let read = |span: &std::ops::Range<usize>| text.get(span.clone()).unwrap_or_default();
    let mut named = found.writes.len() + found.reads.len();
    for raw in found.commands.iter().map(read) {
        let loose = normalize::normalize_command(raw);
        let words: Vec<&str> = loose.split(' ').collect();
        let runs_others =
            command_runners::ask_reason(&words).is_some() || delegating_options::find_last(&words).is_some();
        let forms = alternative_actions(raw, raw, runs_others);
        script.parts.push(CommandPart {
            action: Action::Bash { command: raw }.to_string(),
            alternatives: forms,
            ask_reason: None,
            invocation: None,
        });
        let outputs = named_output_files::written_files(&words);
        named += outputs.len();
        if named > MAX_NAMED_FILES {
            from.mark_incomplete();
        }
        script.parts.extend(outputs.iter().filter_map(|path| written_file_part(path, &from, Some(why))));
        from.track_directory_change(&words);
    }
    if named > MAX_NAMED_FILES {
        from.mark_incomplete();
    }
    script.parts.extend(
        found
            .writes
            .iter()
            .filter_map(|span| written_file_part(&normalize::normalize_command(read(span)), &from, Some(why))),
    );
    found.reads.iter().for_each(|span| {
        push_read_actions(&normalize::normalize_command(read(span)), &from, &mut script.possible_actions)
    });
    // These spans may contain pipes: each command in them is examined.
    found
        .redirected
        .iter()
        .for_each(|span| push_possible_actions(read(span), normalize::push_tail_forms, &mut script.possible_actions));
    // tree-sitter joins a line that starts with a backslash to the line before.
    let lines = if text.contains("\n\\") { MAX_SUBSTITUTIONS } else { 0 };
    text.lines().take(lines).for_each(|line| {
        push_possible_actions(
            normalize::truncate(line, MAX_SUBSTITUTION_LEN),
            normalize::push_tail_forms,
            &mut script.possible_actions,
        )
    });
    // tree-sitter takes some substitutions for text, for example in `${x:-…}`.
    let inner =
        text.match_indices(['`', '(']).take(MAX_SUBSTITUTIONS).filter_map(|(at, mark)| text.get(at + mark.len()..));
    for piece in inner.filter_map(|rest| rest.split([';', '|', '&', '\n', ')', '`']).next()) {
        push_possible_actions(
            normalize::truncate(piece, MAX_SUBSTITUTION_LEN),
            normalize::push_name_forms,
            &mut script.possible_actions,
        );
    }
    script
}

/// Analyses a command that no parser understood by splitting it wherever another command may start.
fn analyze_unparsed(text: &str, why: &str, workspace: &WorkspacePaths) -> CommandAnalysis {
    let mut script = CommandAnalysis { ask_reason: Some(why.to_owned()), ..CommandAnalysis::default() };
    let from = PossibleDirectories::unknown(workspace);
    let action = Action::Bash { command: text }.to_string();
    script.parts.push(CommandPart { action, alternatives: Vec::new(), ask_reason: None, invocation: None });
    let text = normalize::truncate(text, MAX_COMMAND_LEN);
    push_possible_actions(text, normalize::push_name_forms, &mut script.possible_actions);
    for piece in text.split([';', '|', '&', '\n', '(', ')', '{', '}', '`', '<', '>']) {
        push_possible_actions(piece, normalize::push_tail_forms, &mut script.possible_actions);
    }
    let target = |text: &str| {
        let target = normalize::normalize_command(text.trim_start_matches(['<', '>', '|', '&', ' ']));
        target.split([' ', ';', '|', '&']).next().unwrap_or_default().to_owned()
    };
    for written in text.split('>').skip(1).map(target) {
        script.possible_actions.extend(file_actions("create_file", &written, &from));
    }
    for read in text.split('<').skip(1).map(target) {
        push_read_actions(&read, &from, &mut script.possible_actions);
    }
    script
}

/// Adds the actions for reading a file. No rule has to allow reading, but a rule for `view` may deny it or ask.
fn push_read_actions(path: &str, from: &PossibleDirectories<'_>, hidden: &mut Vec<String>) {
    hidden.extend(file_actions("view", path, from));
}

/// Returns the actions of a file tool for every name of a path, the name as spelled first.
fn file_actions(tool: &str, path: &str, from: &PossibleDirectories<'_>) -> impl Iterator<Item = String> {
    from.alternative_paths(path).into_iter().map(move |path| Action::File { tool, path: &path }.to_string())
}

/// Adds the actions that a piece of a command may amount to.
fn push_possible_actions(piece: &str, called: fn(&str, &mut Vec<String>), hidden: &mut Vec<String>) {
    let mut forms = Vec::new();
    called(&normalize::normalize_command(piece), &mut forms);
    hidden.extend(forms.into_iter().map(|form| format!("{BASH_PREFIX}{form}")));
}

/// Returns the other spellings of `action`, as actions.
fn alternative_actions(action: &str, raw: &str, runs_others: bool) -> Vec<String> {
    let mut forms = Vec::new();
    let loose = normalize::normalize_command(raw);
    if runs_others {
        normalize::push_tail_forms(&loose, &mut forms);
    } else {
        normalize::push_name_forms(&loose, &mut forms);
    }
    if !forms.iter().any(|form| form == raw) {
        forms.push(raw.to_owned());
    }
    forms.into_iter().filter(|form| form != action).map(|form| [BASH_PREFIX, &form].concat()).collect()
}

/// Returns the reason to ask if the name of a command is quoted or has unusual characters.
fn obscured_name_reason(name: &Word) -> Option<String> {
    let plain = !name.quoted && !name.value.is_empty() && name.value.chars().all(|c| c.is_ascii_graphic());
    (!plain).then(|| "a command name in it is not literal".to_owned())
}

/// Quotes a word as action strings do: in single quotes unless it is one plain word.
pub(crate) fn quote_word(value: &str) -> String {
    let safe = |c: char| c.is_alphanumeric() || "_@%+=:,./^-~[]".contains(c);
    if !value.is_empty() && value.chars().all(safe) && !value.starts_with('~') {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// Reason to ask about a file that may be another than its path says.
const WRITES_AFTER_CD: &str = "it writes a file after changing the directory";

/// Returns the part for a file that is written, or `None` if the file keeps no data. `elsewhere` is the reason why it
/// may be another file than its path says.
fn written_file_part(path: &str, from: &PossibleDirectories<'_>, elsewhere: Option<&str>) -> Option<CommandPart> {
    if ["/dev/null", "/dev/stdout", "/dev/stderr"].contains(&path) {
        return None;
    }
    let (clean, guard) = paths::clean_path(path);
    let guard = guard.or(elsewhere);
    let action = Action::File { tool: "create_file", path: &clean }.to_string();
    let forms = file_actions("create_file", path, from).filter(|form| *form != action).collect();
    Some(CommandPart { action, alternatives: forms, ask_reason: guard.map(str::to_owned), invocation: None })
}
