//! Finds paths of files in the parameters of tool calls and in text.

use serde_json::Value;

/// Length of the longest path, in bytes.
const MAX_PATH_BYTES: usize = 200;

/// Depth to which nested parameters are searched.
const MAX_PARAM_DEPTH: usize = 8;

/// A name without a folder counts as a file if it has one of these extensions.
const FILE_EXTENSIONS: &[&str] = &[
    "c", "cc", "cfg", "conf", "cpp", "cs", "css", "csv", "go", "h", "hpp", "html", "ini", "ipynb", "java", "js",
    "json", "jsonl", "jsx", "kt", "lock", "md", "php", "proto", "py", "rb", "rs", "scss", "sh", "sql", "swift", "toml",
    "ts", "tsx", "txt", "xml", "yaml", "yml",
];

/// Calls `found` with each path in a text.
pub(super) fn for_each_in_text(text: &str, mut found: impl FnMut(&str)) {
    for token in text.split(|c: char| c.is_whitespace() || "\"'`()[]{}<>|,;=".contains(c)) {
        let token = token.trim_end_matches(['.', ':', '!', '?', '*']).trim_start_matches('*');
        // `src/lib.rs:42` refers to a line of the file.
        let token = token
            .split_once(':')
            .map_or(token, |(path, line)| if line.starts_with(|c: char| c.is_ascii_digit()) { path } else { token });
        if is_path(token) {
            found(token);
        }
    }
}

/// Calls `found` with each path in the parameters of a tool call: the values of parameters that are named after paths
/// or files, and whatever looks like a path in the others.
pub(super) fn for_each_in_params(params: &str, mut found: impl FnMut(&str)) {
    if let Ok(params) = serde_json::from_str::<Value>(params) {
        walk_params(&params, false, MAX_PARAM_DEPTH, &mut found);
    }
}

fn walk_params(value: &Value, named: bool, depth: usize, found: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) if named && is_possible_path(text) => found(text),
        Value::String(text) if !named && text.len() < MAX_PATH_BYTES * 4 => for_each_in_text(text, found),
        Value::Array(all) if depth > 0 => all.iter().for_each(|value| walk_params(value, named, depth - 1, found)),
        Value::Object(fields) if depth > 0 => {
            for (name, value) in fields {
                walk_params(value, is_path_parameter(name), depth - 1, found);
            }
        }
        _ => {}
    }
}

/// Returns whether a parameter of that name contains a path: `path`, `filename` and `notebook_path` do, `file_text` and
/// `profile` do not.
fn is_path_parameter(name: &str) -> bool {
    let name = name.to_lowercase();
    let name = name.strip_suffix('s').unwrap_or(&name);
    matches!(name, "path" | "file" | "filename" | "file_name" | "filepath")
        || name.ends_with("_path")
        || name.ends_with("_file")
}

/// Returns whether the value of such a parameter can be a path.
fn is_possible_path(text: &str) -> bool {
    !text.trim().is_empty() && text.len() <= MAX_PATH_BYTES && !text.chars().any(char::is_control)
}

fn is_path(token: &str) -> bool {
    let legal = |c: char| c.is_alphanumeric() || "/._-+@~".contains(c);
    if token.len() < 3 || token.len() > MAX_PATH_BYTES || !token.chars().all(legal) || token.contains("//") {
        return false;
    }
    if !token.chars().any(char::is_alphabetic) {
        return false;
    }
    let (folder, name) = token.rsplit_once('/').map_or((None, token), |(folder, name)| (Some(folder), name));
    let ending =
        name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty() || folder.is_some()).map(|(_, ending)| ending);
    match folder {
        // `/usr/bin/env`, `./run` and `~/notes` are paths; `and/or` is not.
        Some(_) if token.starts_with(['/', '~']) || token.starts_with("./") || token.starts_with("../") => {
            token.trim_start_matches(['/', '.', '~']).len() > 1
        }
        Some(_) => ending
            .is_some_and(|ending| (1..=5).contains(&ending.len()) && ending.chars().all(|c| c.is_ascii_alphanumeric())),
        None => ending.is_some_and(|ending| FILE_EXTENSIONS.contains(&ending)),
    }
}
