//! One line that says what a tool call does, and the lines that an edit changes.

use serde::Deserialize;
use serde_json::Value;

use crate::message::ToolCall;
use crate::methods::send::ToolOutput;

/// The limit on characters of a gist.
const MAX_GIST_CHARS: usize = 200;
/// The limits on the lines and bytes of an output that are sent along.
const MAX_LINES: usize = 40;
const MAX_BYTES: usize = 4 << 10;
/// Longer parameters are not compared line by line.
const MAX_COMPARED_BYTES: usize = 1 << 20;

/// The parameters that a gist is made of.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Params {
    command: Option<String>,
    background: bool,
    path: Option<String>,
    start_line: Option<u64>,
    end_line: Option<u64>,
    content: Option<String>,
    old_str: Option<String>,
    new_str: Option<String>,
}

/// Returns the name of a tool as people see it: `edit` for `str_replace`.
#[must_use]
pub fn display_name(tool: &str) -> &str {
    match tool {
        "str_replace" => "edit",
        "create_file" => "write",
        "append_file" => "append",
        other => other,
    }
}

/// Returns one line that says what a call does: the command, or the file and the number of lines added and removed, such
/// as `src/main.rs +3 -1`; for other tools their first parameter. At most 200 characters; empty without parameters.
#[must_use]
pub fn gist(call: &ToolCall) -> String {
    let params: Params = serde_json::from_str(call.params.get()).unwrap_or_default();
    let path = params.path.as_deref().unwrap_or_default();
    let added = |text: &Option<String>| text.as_deref().map_or(0, |text| text.lines().count());
    let gist = match (&*call.name, &params.command) {
        ("bash", Some(command)) if params.background => format!("{command} &"),
        ("bash", Some(command)) => command.clone(),
        ("view", _) => match (params.start_line, params.end_line) {
            (None, None) => path.to_owned(),
            (start, end) => {
                let number = |line: Option<u64>| line.map(|line| line.to_string()).unwrap_or_default();
                format!("{path}:{}-{}", number(start), number(end))
            }
        },
        ("create_file" | "append_file", _) => format!("{path} +{}", added(&params.content)),
        ("str_replace", _) => {
            let (removed, added) = changed_lines(&params);
            format!("{path} +{} -{}", added.len(), removed.len())
        }
        _ => first_text(call.params.get()),
    };
    one_line(&gist)
}

/// Returns the first text among the parameters, else all of them as JSON.
fn first_text(params: &str) -> String {
    let Ok(Value::Object(map)) = serde_json::from_str(params) else { return String::new() };
    if map.is_empty() {
        return String::new();
    }
    map.values().find_map(Value::as_str).map_or_else(|| params.to_owned(), str::to_owned)
}

fn one_line(text: &str) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = line.char_indices().nth(MAX_GIST_CHARS) {
        line.truncate(cut);
        line.push('…');
    }
    line
}

/// Returns the lines of an edit that differ: those removed and those added.
fn changed_lines(params: &Params) -> (Vec<&str>, Vec<&str>) {
    let (old, new) = (params.old_str.as_deref().unwrap_or_default(), params.new_str.as_deref().unwrap_or_default());
    if old.len() + new.len() > MAX_COMPARED_BYTES {
        return (Vec::new(), Vec::new());
    }
    let (mut old, mut new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let common_start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    old.drain(..common_start);
    new.drain(..common_start);
    let common_end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    old.truncate(old.len() - common_end);
    new.truncate(new.len() - common_end);
    (old, new)
}

/// Returns the first lines of the output of a call, and of a successful edit the lines that it changed.
#[must_use]
pub fn output_head(call: &ToolCall, output: &str, is_error: bool) -> ToolOutput {
    let edit: Option<Params> =
        (call.name == "str_replace" && !is_error).then(|| serde_json::from_str(call.params.get()).ok()).flatten();
    let diff = edit.map(|params| {
        let (removed, added) = changed_lines(&params);
        let lines = removed.iter().map(|line| format!("-{line}")).chain(added.iter().map(|line| format!("+{line}")));
        head(&lines.collect::<Vec<_>>().join("\n")).to_owned()
    });
    ToolOutput {
        text: head(output).to_owned(),
        lines: output.trim_end().lines().count() as u64,
        diff: diff.filter(|diff| !diff.is_empty()),
    }
}

/// Returns the beginning of a text, up to the limits.
fn head(text: &str) -> &str {
    let text = text.trim_end();
    let end = text.match_indices('\n').nth(MAX_LINES - 1).map_or(text.len(), |(at, _)| at);
    let mut end = end.min(MAX_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    fn call(name: &str, params: &Value) -> ToolCall {
        ToolCall { id: "c".into(), name: name.into(), params: to_raw_value(params).expect("JSON") }
    }

    #[test]
    fn a_gist_names_the_command_or_the_file() {
        let gist_of = |name, params| gist(&call(name, &params));
        assert_eq!(gist_of("bash", json!({"command": "cargo test\n -p api"})), "cargo test -p api");
        assert_eq!(gist_of("bash", json!({"command": "make", "background": true})), "make &");
        assert_eq!(gist_of("view", json!({"path": "a.rs"})), "a.rs");
        assert_eq!(gist_of("view", json!({"path": "a.rs", "start_line": 3, "end_line": 9})), "a.rs:3-9");
        assert_eq!(gist_of("create_file", json!({"path": "a", "content": "x\ny\n"})), "a +2");
        let edit = json!({"path": "src/main.rs", "old_str": "a\nb\nz", "new_str": "a\nc\nd\ne\nz"});
        assert_eq!(gist_of("str_replace", edit), "src/main.rs +3 -1");
        assert_eq!(gist_of("git_branch", json!({"name": "fix"})), "fix");
        assert_eq!(gist_of("git_log", json!({"count": 3})), "{\"count\":3}");
        assert_eq!(gist_of("list_models", json!({})), "");
        assert_eq!(gist_of("bash", json!({"command": "x".repeat(300)})).chars().count(), 201);
    }

    #[test]
    fn the_head_of_an_output_is_bounded_and_an_edit_has_its_lines() {
        let long = "line\n".repeat(100);
        let head = output_head(&call("bash", &json!({"command": "x"})), &long, false);
        assert_eq!((head.text.lines().count(), head.lines, head.diff), (40, 100, None));
        let wide = "é".repeat(5000);
        assert!(output_head(&call("bash", &json!({})), &wide, true).text.len() <= MAX_BYTES);
        let edit = call("str_replace", &json!({"path": "a", "old_str": "a\nb", "new_str": "a\nc"}));
        assert_eq!(output_head(&edit, "done", false).diff.as_deref(), Some("-b\n+c"));
        assert_eq!(output_head(&edit, "not found", true).diff, None);
    }
}
