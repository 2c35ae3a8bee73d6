//! Changes one table in a TOML text and leaves every other byte as it is.

use serde_json::{Map, Value};
use toml::Table;

/// Parses a text.
pub(super) fn parse(text: &str) -> Option<Table> {
    toml::from_str(text).ok()
}

/// Returns `servers.name`, if it is in the text.
pub(super) fn get(table: &Table, servers: &str, name: &str) -> Option<Value> {
    serde_json::to_value(table.get(servers)?.get(name)?).ok()
}

/// Sets the table `servers.name` to `entry` and returns the new text; `None` if that cannot be done safely.
pub(super) fn set(text: &str, servers: &str, name: &str, entry: &Value) -> Option<String> {
    let mut due = parse(text)?;
    let section = section(servers, name, entry.as_object()?)?;
    let edited = match find_section(text, servers, name) {
        Some((start, end)) => format!("{}{section}{}", &text[..start], &text[end..]),
        None => {
            let gap = match text {
                "" => "",
                _ if text.ends_with("\n\n") => "",
                _ if text.ends_with('\n') => "\n",
                _ => "\n\n",
            };
            format!("{text}{gap}{section}")
        }
    };
    let held = due.entry(servers).or_insert_with(|| toml::Value::Table(Table::new()));
    held.as_table_mut()?.insert(name.to_owned(), toml::Value::try_from(entry).ok()?);
    (parse(&edited)? == due).then_some(edited)
}

/// Removes the table `servers.name`; `None` if that cannot be done safely.
pub(super) fn remove(text: &str, servers: &str, name: &str) -> Option<String> {
    let mut due = parse(text)?;
    let (start, end) = find_section(text, servers, name)?;
    let mut before = &text[..start];
    // The empty line above it, unless that separates what is left.
    if end == text.len() && before.ends_with("\n\n") {
        before = &before[..before.len() - 1];
    }
    let edited = format!("{before}{}", &text[end..]);
    let held = due.get_mut(servers)?.as_table_mut()?;
    held.remove(name)?;
    let is_emptied = held.is_empty();
    let parsed = parse(&edited)?;
    if is_emptied && parsed != due {
        due.remove(servers);
    }
    (parsed == due).then_some(edited)
}

/// Returns the start and the end of the table, in the usual spelling, with its subtables and without empty lines and
/// comments at its end.
fn find_section(text: &str, servers: &str, name: &str) -> Option<(usize, usize)> {
    let (header, below) = (format!("[{servers}.{name}]"), format!("[{servers}.{name}."));
    let (mut start, mut end, mut at) = (None, 0, 0);
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if trimmed.starts_with(&header) && start.is_none() {
            start = Some(at);
        } else if trimmed.starts_with('[') && !trimmed.starts_with(&below) && start.is_some() {
            break;
        }
        at += line.len();
        if start.is_some() && !trimmed.is_empty() && !trimmed.starts_with('#') {
            end = at;
        }
    }
    start.map(|start| (start, end))
}

/// Formats the table.
fn section(servers: &str, name: &str, entry: &Map<String, Value>) -> Option<String> {
    let mut text = format!("[{servers}.{name}]\n");
    for (key, value) in entry {
        let value = toml::Value::try_from(value).ok()?;
        text.push_str(&format!("{key} = {value}\n"));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SECTION: &str = "[mcp_servers.chorus]\ncommand = \"/bin/chorusctl\"\nargs = [\"mcp\"]\n";

    fn entry() -> Value {
        json!({"command": "/bin/chorusctl", "args": ["mcp"]})
    }

    #[test]
    fn what_was_added_is_removed_without_a_trace() {
        for text in [
            "",
            "model = \"x\"\n",
            "# top\nmodel = 'x' # y\n\n[mcp_servers.other]\ncommand = \"z\"\n\n[projects.\"/a b\"]\ntrust_level = \"trusted\"\n",
            "text = \"\"\"\n[mcp_servers.other]\n\"\"\"\n",
        ] {
            let with = set(text, "mcp_servers", "chorus", &entry()).expect(text);
            assert!(with.starts_with(text) && with.ends_with(SECTION), "{with}");
            assert_eq!(get(&parse(&with).expect(text), "mcp_servers", "chorus"), Some(entry()));
            assert_eq!(remove(&with, "mcp_servers", "chorus").as_deref(), Some(text));
            let changed =
                set(&with, "mcp_servers", "chorus", &json!({"command": "y", "env": {"A": "b \" c"}})).expect(&with);
            assert!(changed.contains("env = { A = ") && !changed.contains("args"), "{changed}");
            assert_eq!(remove(&changed, "mcp_servers", "chorus").as_deref(), Some(text));
        }
    }

    #[test]
    fn a_table_in_the_middle_is_changed_in_its_place() {
        let text = format!("a = 1\n\n{SECTION}\n[mcp_servers.chorus.env]\nA = \"b\"\n\n# next\n[b]\nc = 1\n");
        let changed = set(&text, "mcp_servers", "chorus", &entry()).expect("it is possible");
        assert_eq!(changed, format!("a = 1\n\n{SECTION}\n# next\n[b]\nc = 1\n"));
        assert_eq!(remove(&text, "mcp_servers", "chorus").as_deref(), Some("a = 1\n\n\n# next\n[b]\nc = 1\n"));
    }

    #[test]
    fn what_is_not_understood_is_not_changed() {
        for text in [
            "a = ",
            "mcp_servers = 1\n",
            "mcp_servers.chorus = {command = \"x\"}\n",
            "mcp_servers = {chorus = {command = \"x\"}}\n",
            "text = \"\"\"\n[mcp_servers.chorus]\n\"\"\"\n[mcp_servers.chorus]\ncommand = \"x\"\n",
        ] {
            assert_eq!(set(text, "mcp_servers", "chorus", &entry()), None, "{text}");
            assert_eq!(remove(text, "mcp_servers", "chorus"), None, "{text}");
        }
    }
}
