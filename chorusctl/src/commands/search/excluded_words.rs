//! Words of the query that look like options or like a subcommand: `chorusctl search redis -cache`.

use std::ffi::OsString;

use clap::Command;
use clap::error::ErrorKind;

use crate::unknown_command::{command_path, takes_value};

/// Returns the arguments of `search` with the words that exclude others behind `--`, so that they are no options. `None` if
/// `error`, with which the arguments were refused, has another reason. `arguments` are those of the program, with its name.
#[must_use]
pub fn separate_excluded_words(error: &clap::Error, tree: &Command, arguments: &[OsString]) -> Option<Vec<OsString>> {
    // `-nginx` is a wrong number, `-hash` asks for help.
    if !matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::ValueValidation | ErrorKind::DisplayHelp) {
        return None;
    }
    let words: Vec<String> = arguments.iter().map(|word| word.clone().into_string().ok()).collect::<Option<_>>()?;
    let (path, _) = command_path(tree, words.get(1..)?);
    if path != ["search"] {
        return None;
    }
    let search = tree.find_subcommand("search")?;
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (mut options, mut query, mut is_value) = (Vec::new(), Vec::new(), false);
    for word in &words[..end] {
        let is_excluded = !is_value && is_excluded_word(word);
        // An option without its value is an error.
        if is_value && is_excluded_word(word) {
            return None;
        }
        is_value = !is_excluded && takes_value(search, tree, word);
        if is_excluded { &mut query } else { &mut options }.push(word.clone());
    }
    if query.is_empty() {
        return None;
    }
    options.push("--".into());
    query.extend(words[end..].iter().skip(1).cloned());
    Some(options.into_iter().chain(query).map(OsString::from).collect())
}

/// Returns the arguments of `search` with a query that begins with the word `model` behind `--`, so that it is no subcommand: `chorusctl
/// search model loading`. `None` if `error` has another reason.
#[must_use]
pub fn separate_model_word(error: &clap::Error, tree: &Command, arguments: &[OsString]) -> Option<Vec<OsString>> {
    if !matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand) {
        return None;
    }
    let words: Vec<String> = arguments.iter().map(|word| word.clone().into_string().ok()).collect::<Option<_>>()?;
    let (path, _) = command_path(tree, words.get(1..)?);
    let model = words.iter().position(|word| word == "model")?;
    let next = words.get(model + 1).filter(|next| !next.starts_with('-'));
    if path != ["search", "model"] || next.is_none() {
        return None;
    }
    let mut separated = words;
    separated.insert(model, "--".into());
    Some(separated.into_iter().map(OsString::from).collect())
}

/// Returns true for one hyphen and at least two characters of which the first is a letter, or a quoted phrase.
fn is_excluded_word(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next() == Some('-')
        && chars.next().is_some_and(|c| c.is_alphabetic() || c == '"')
        && chars.next().is_some_and(|c| !c.is_ascii_digit())
}
