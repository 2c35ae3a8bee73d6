//! The tool `str_replace`: replaces text in a file.

use std::fmt::Write as _;
use std::sync::Arc;

use memchr::memmem;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Edit, EditKind, FileAccess, FileLocks, PathParam, Workspace, WorkspacePath, file_action, line_format, run_blocking,
};
use crate::tools::ToolContext;
use crate::tools::tool::{Tool, ToolOutcome};

/// Lines shown around a change, and the limit on the lines shown of it.
const CONTEXT_LINES: u64 = 3;
const MAX_SHOWN_LINES: u64 = 30;
/// Limit on the matches whose lines are listed.
const MAX_NAMED_MATCHES: usize = 20;

pub(crate) struct StrReplace;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    path: PathParam,
    /// The exact text, including spaces and newlines.
    old_str: String,
    new_str: String,
}

impl Tool for StrReplace {
    const NAME: &'static str = "str_replace";
    const DESCRIPTION: &'static str = "Replaces `old_str` in a file of the workspace. It must occur exactly once.";
    const IN_ORDER: bool = true;
    const USES_WORKSPACE: bool = true;
    type Params = Params;

    fn action(params: &Params, ctx: &ToolContext) -> Result<String, String> {
        file_action(Self::NAME, &params.path, ctx)
    }

    async fn run(Params { path, old_str, new_str }: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        run_blocking(path, ctx, async move |workspace, place, access| {
            workspace.str_replace_as(place, (&old_str, &new_str), access).await
        })
        .await
    }
}

impl Workspace {
    /// Replaces the only occurrence of `old` and returns the text for the model. Blocks.
    pub fn str_replace(&self, place: &WorkspacePath, texts: (&str, &str), locks: &FileLocks) -> Result<String, String> {
        chorus_runtime::block_on(self.str_replace_as(place, texts, &locks.into()))
    }

    /// Like [`Workspace::str_replace`], unless another conversation than that in `access` changed the file meanwhile.
    pub(super) async fn str_replace_as(
        &self,
        place: &WorkspacePath,
        (old, new): (&str, &str),
        access: &FileAccess<'_>,
    ) -> Result<String, String> {
        if old.is_empty() {
            return Err("old_str is empty; use create_file to write a whole file, or append_file to append".into());
        }
        if old == new {
            return Err("old_str and new_str are the same; nothing was changed".into());
        }
        // Check that the file exists first, because `run` creates missing folders.
        self.open_entry(place)?;
        let edit = Edit { workspace: self, path: place, access };
        edit.run(EditKind::Change, |file| {
            let Some(file) = file else { return Err(format!("{place} does not exist")) };
            let text = &file.bytes;
            let found: Vec<usize> = memmem::find_iter(text, old).take(MAX_NAMED_MATCHES + 1).collect();
            match found[..] {
                [] => Err(format!("old_str not found in {place}{}; nothing was changed", near_match_hint(text, old))),
                [at] => {
                    let rest = &text[at + old.len()..];
                    let bytes = [&text[..at], new.as_bytes(), rest].concat();
                    let told = show_change(place, &bytes, at, new);
                    Ok((bytes, told))
                }
                _ => {
                    let count = memmem::find_iter(text, old).count();
                    let named: Vec<_> = found
                        .iter()
                        .take(MAX_NAMED_MATCHES)
                        .map(|at| line_format::line_number_at(text, *at).to_string())
                        .collect();
                    let more = if count > MAX_NAMED_MATCHES { ", …" } else { "" };
                    Err(format!(
                        "old_str occurs {count} times in {place}, at lines {}{more}; nothing was changed; \
                         include more surrounding text",
                        named.join(", ")
                    ))
                }
            }
        })
        .await
    }
}

/// Returns the changed lines with the lines around them.
fn show_change(place: &WorkspacePath, bytes: &[u8], at: usize, new: &str) -> String {
    let first = line_format::line_number_at(bytes, at);
    let last = line_format::line_number_at(bytes, at + new.len());
    let (from, to) = (first.saturating_sub(CONTEXT_LINES).max(1), (last + CONTEXT_LINES).min(first + MAX_SHOWN_LINES));
    let mut text = format!("changed {place} at line {first}:\n");
    let all = bytes.split(|byte| *byte == b'\n').zip(1_u64..);
    let ends = bytes.ends_with(b"\n").then(|| line_format::count_lines(bytes));
    for (line, number) in all.skip_while(|(_, n)| *n < from).take_while(|(_, n)| *n <= to) {
        // There is no line after the last newline.
        if ends.is_none_or(|ends| number <= ends) {
            line_format::push_numbered_line(&mut text, number, line);
        }
    }
    if last + CONTEXT_LINES > to {
        let _ = writeln!(text, "[{} more changed lines]", last.saturating_sub(to));
    }
    text
}

/// Limits on the lines of `old_str`, and on the bytes of a file, for searching a near match.
const MAX_HINT_LINES: usize = 200;
const MAX_HINT_BYTES: usize = 256 << 10;

/// Returns a hint that follows "not found" if the text would match but for white space.
fn near_match_hint(text: &[u8], old: &str) -> String {
    if memmem::find(text, b"\r\n").is_some() && !old.contains('\r') {
        let old = old.replace('\n', "\r\n");
        if let Some(at) = memmem::find(text, old.as_bytes()) {
            let line = line_format::line_number_at(text, at);
            return format!(" exactly: the file has \\r\\n line endings, and with them it matches at line {line}");
        }
    }
    let wanted: Vec<&[u8]> =
        old.trim_matches('\n').split('\n').map(|line| line.as_bytes().trim_ascii()).take(MAX_HINT_LINES + 1).collect();
    // The search takes the product of both lengths, which a hint is not worth for large inputs.
    if wanted.iter().all(|line| line.is_empty()) || wanted.len() > MAX_HINT_LINES || text.len() > MAX_HINT_BYTES {
        return String::new();
    }
    let has: Vec<&[u8]> = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).collect();
    match has.windows(wanted.len()).position(|lines| lines == wanted) {
        Some(at) => format!(" exactly: it only differs in spaces at the ends of lines at line {}", at + 1),
        None => String::new(),
    }
}
