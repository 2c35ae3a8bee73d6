//! The tools of a server, with everything bounded that a model is shown.

use std::collections::HashSet;

use chorus_base::hex;
use rmcp::model::Tool;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// Prefix of the names under which a model sees these tools.
pub const TOOL_NAME_PREFIX: &str = "mcp__";

/// Limit on the tools of a server.
pub(crate) const MAX_TOOLS: usize = 64;
/// Limit on the characters of the name of a tool at its server.
const MAX_OWN_NAME_CHARS: usize = 128;
/// Limit on the characters of a name that a model sees, which the providers set.
const MAX_MODEL_NAME_CHARS: usize = 64;
/// Limit on the characters of a description.
const MAX_DESCRIPTION_CHARS: usize = 1024;
/// Limit on the bytes of a schema.
const MAX_SCHEMA_BYTES: usize = 8 << 10;
/// Hexadecimal digits that keep apart names that would be equal.
const NAME_HASH_DIGITS: usize = 8;

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct McpTool {
    pub server: String,
    /// Its name at the server.
    pub name: String,
    /// Its name for a model: `mcp__SERVER__TOOL`, unique among all tools.
    pub model_name: String,
    pub description: String,
    /// The JSON Schema of its parameters, an object.
    pub parameters: Value,
    /// SHA-256 of its full name, description and schema in hexadecimal digits. An approval holds for one definition.
    pub definition: String,
}

impl McpTool {
    /// Returns the action of a call.
    #[must_use]
    pub fn action(&self) -> String {
        format!("tool:mcp:{}.{}", self.server, self.name)
    }
}

/// The tools that a server offers.
#[derive(Debug, Default)]
pub(crate) struct ToolList {
    /// In the order of their names.
    pub tools: Vec<McpTool>,
    /// Tools that are not offered, because a limit is exceeded.
    pub left_out: usize,
}

impl ToolList {
    /// Bounds the tools that the server lists.
    pub(crate) fn new(server: &str, listed: Vec<Tool>) -> Self {
        let count = listed.len();
        let mut tools: Vec<McpTool> = listed.into_iter().filter_map(|tool| bounded_tool(server, tool)).collect();
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        tools.dedup_by(|one, other| one.name == other.name);
        tools.truncate(MAX_TOOLS);
        let mut names = HashSet::new();
        for tool in &mut tools {
            if !names.insert(tool.model_name.clone()) {
                tool.model_name = hashed_name(&tool.model_name, &tool.name);
                names.insert(tool.model_name.clone());
            }
        }
        Self { left_out: count - tools.len(), tools }
    }
}

/// Returns a tool within the limits; `None` if its name or schema exceeds them.
fn bounded_tool(server: &str, tool: Tool) -> Option<McpTool> {
    let name = tool.name.into_owned();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if name.is_empty() || name.len() > MAX_OWN_NAME_CHARS || !name.chars().all(is_plain) {
        return None;
    }
    let full = tool.description.or(tool.title.map(Into::into)).unwrap_or_default();
    let schema = Value::Object(tool.input_schema.as_ref().clone());
    let text = schema.to_string();
    if text.len() > MAX_SCHEMA_BYTES {
        return None;
    }
    let definition = definition_hash(&[&name, &full, &text]);
    let model_name = model_name(server, &name);
    let (description, parameters) = (bounded_description(&full), object_schema(schema));
    Some(McpTool { server: server.to_owned(), name, model_name, description, parameters, definition })
}

fn definition_hash(parts: &[&str]) -> String {
    let mut sum = Sha256::new();
    for part in parts {
        sum.update((part.len() as u64).to_be_bytes());
        sum.update(part);
    }
    hex(&sum.finalize())
}

/// Returns the name for a model: what is not allowed in it becomes `_`, and a long one is cut.
fn model_name(server: &str, name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    let whole = format!("{TOOL_NAME_PREFIX}{server}__{plain}");
    if whole.len() <= MAX_MODEL_NAME_CHARS { whole } else { hashed_name(&whole, name) }
}

/// Returns a name that differs for each `name` of a tool.
fn hashed_name(model_name: &str, name: &str) -> String {
    let hash = hex(&Sha256::digest(name));
    let begin: String = model_name.chars().take(MAX_MODEL_NAME_CHARS - NAME_HASH_DIGITS - 1).collect();
    format!("{begin}_{}", &hash[..NAME_HASH_DIGITS])
}

/// Cuts a description, and replaces what could disguise a part of it.
fn bounded_description(text: &str) -> String {
    let visible = |c: char| if c.is_control() && c != '\n' { ' ' } else { c };
    let mut text: String = text.trim().chars().map(visible).collect();
    if let Some((end, _)) = text.char_indices().nth(MAX_DESCRIPTION_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Adds what providers require of a schema, and removes what tells a model nothing.
fn object_schema(schema: Value) -> Value {
    let mut map = match schema {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    map.remove("$schema");
    map.insert("type".into(), "object".into());
    map.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, description: &str, schema: Value) -> Tool {
        serde_json::from_value(json!({"name": name, "description": description, "inputSchema": schema})).unwrap()
    }

    fn list(tools: Vec<Tool>) -> ToolList {
        ToolList::new("files", tools)
    }

    #[test]
    fn names_are_short_plain_and_unique() {
        let long = "x".repeat(100);
        let listed = ["read.file", "read/file", "read_file", &long, &format!("{long}y"), "a b", "", "ä"];
        let all = list(listed.iter().map(|name| tool(name, "", json!({}))).collect());
        let names: HashSet<_> = all.tools.iter().map(|tool| tool.model_name.clone()).collect();
        assert_eq!((all.tools.len(), names.len(), all.left_out), (5, 5, 3));
        assert!(names.contains("mcp__files__read_file"));
        let plain = |name: &String| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
        assert!(names.iter().all(|name| name.len() <= 64 && plain(name)), "{names:?}");
        assert_eq!(all.tools[0].action(), "tool:mcp:files.read.file");
    }

    #[test]
    fn what_a_server_says_of_its_tools_is_bounded() {
        let long = list(vec![tool("a", &format!("x\u{1b}[2J{}", "é".repeat(5000)), json!({"$schema": "x"}))]);
        let description = &long.tools[0].description;
        assert!(description.chars().count() == 1025 && !description.contains('\u{1b}'), "{description}");
        assert_eq!(long.tools[0].parameters, json!({"type": "object", "properties": {}}));
        let huge = json!({"properties": {"x": {"description": "y".repeat(9000)}}});
        let all =
            list((0..80).map(|n| tool(&format!("t{n}"), "", json!({}))).chain([tool("huge", "", huge)]).collect());
        assert_eq!((all.tools.len(), all.left_out), (MAX_TOOLS, 17));
    }

    #[test]
    fn a_definition_has_all_that_was_approved() {
        let hash = |description: &str, schema| list(vec![tool("a", description, schema)]).tools[0].definition.clone();
        let one = hash("reads a file", json!({"properties": {"path": {"type": "string"}}}));
        assert_eq!(one, hash("reads a file", json!({"properties": {"path": {"type": "string"}}})));
        assert_ne!(one, hash("reads a file ", json!({"properties": {"path": {"type": "string"}}})));
        assert_ne!(one, hash("reads a file", json!({"properties": {"path": {"type": "string", "default": "/"}}})));
        let cut = "x".repeat(2000);
        assert_ne!(hash(&cut, json!({})), hash(&format!("{cut}y"), json!({})), "also beyond what a model sees");
    }
}
