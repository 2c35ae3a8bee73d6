//! The files for other coding agents, read as these programs read them: the texts that they send to their model.

use std::collections::HashMap;

use serde_json::Value;

use super::windows::{Texts, add_strings};

/// Programs whose files `chorusctl export` writes.
pub const TOOLS: [&str; 4] = ["claude-code", "codex", "gemini", "opencode"];

/// Returns the texts of the file's conversation.
pub fn read(tool: &str, file: &str) -> Texts {
    let lines = || file.lines().map(|line| serde_json::from_str(line).expect("a line of JSON"));
    let sent = match tool {
        "claude-code" => read_claude_code(lines()),
        "codex" => read_codex(lines()),
        "gemini" => read_gemini(lines()),
        _ => read_opencode(serde_json::from_str(file).expect("a document")),
    };
    let mut texts = Texts::new();
    sent.iter().for_each(|value| add_strings(value, &mut texts));
    texts
}

/// The branch that ends with the last line, back to the last compaction, which has no parent.
fn read_claude_code(lines: impl Iterator<Item = Value>) -> Vec<Value> {
    let lines: Vec<Value> = lines.filter(|line| line["uuid"].is_string()).collect();
    let by_id: HashMap<_, _> = lines.iter().filter_map(|line| Some((line["uuid"].as_str()?, line))).collect();
    let parent = |line: &&Value| line["parentUuid"].as_str().and_then(|id| by_id.get(id).copied());
    let branch = std::iter::successors(lines.last(), parent);
    let mut sent: Vec<Value> = branch.map(|line| line["message"]["content"].clone()).collect();
    sent.reverse();
    sent
}

/// Of what is before a compaction, it sends the messages of the user, and the summary.
fn read_codex(lines: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut sent = Vec::new();
    for mut line in lines {
        match line["type"].as_str() {
            Some("response_item") => sent.push(line["payload"].take()),
            Some("compacted") => {
                sent.retain(|item: &Value| item["role"] == "user");
                sent.push(line["payload"]["message"].take());
            }
            _ => {}
        }
    }
    sent
}

/// A compaction sets all messages so far.
fn read_gemini(lines: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut sent = Vec::new();
    for mut line in lines {
        if let Value::Array(messages) = line["$set"]["messages"].take() {
            sent = messages;
        } else if matches!(line["type"].as_str(), Some("user" | "gemini")) {
            sent.push(line);
        }
    }
    let part = |message: &Value| {
        let calls = message["toolCalls"].as_array().into_iter().flatten();
        let calls: Vec<Value> = calls.flat_map(|call| [call["args"].clone(), call["result"].clone()]).collect();
        Value::Array(vec![message["content"].clone(), Value::Array(calls)])
    };
    sent.iter().map(part).collect()
}

/// It sends the last summary and the messages after it.
fn read_opencode(mut document: Value) -> Vec<Value> {
    let Value::Array(messages) = document["messages"].take() else { panic!("no messages") };
    let start = messages.iter().rposition(|message| message["info"]["summary"] == true).unwrap_or(0);
    let parts = messages[start..].iter().flat_map(|message| message["parts"].as_array().into_iter().flatten());
    let text = |part: &Value| {
        let state = &part["state"];
        Value::Array(vec![
            part["text"].clone(),
            state["input"].clone(),
            state["output"].clone(),
            state["error"].clone(),
        ])
    };
    parts.map(text).collect()
}
