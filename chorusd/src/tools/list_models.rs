//! `list_models`: which models there are.

use std::fmt::Write as _;

use serde_json::json;

use super::Outcome;
use crate::llm::{Models, ToolSpec};

pub const NAME: &str = "list_models";

pub fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.into(),
        description: "Lists the models that can be used here, as provider/model, with their context length in tokens where it is known.".into(),
        parameters: json!({"type": "object", "properties": {}, "additionalProperties": false}),
    }
}

pub fn run(models: &Models) -> Outcome {
    let mut text = String::new();
    for provider in models.available().providers {
        for model in &provider.models {
            let _ = write!(text, "{}/{}", provider.name, model.id);
            if let Some(length) = model.context_length {
                let _ = write!(text, " ({length} tokens)");
            }
            text.push('\n');
        }
        if let Some(problem) = &provider.problem {
            let _ = writeln!(text, "{}: {problem}", provider.name);
        }
    }
    for (alias, meant) in models.aliases() {
        let _ = writeln!(text, "{alias} = {meant}");
    }
    if text.is_empty() {
        text.push_str("no provider has listed its models");
    }
    Outcome { text, is_error: false }
}
