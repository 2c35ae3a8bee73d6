//! The JSON schema of the answer.

use serde_json::{Value, json};

/// Returns the schema as strict servers require it: every property is required, and others are not allowed.
#[must_use]
pub fn answer_schema() -> Value {
    let object = |properties: Value| {
        let required: Vec<&String> = properties.as_object().into_iter().flat_map(|fields| fields.keys()).collect();
        json!({"type": "object", "required": required, "additionalProperties": false, "properties": properties})
    };
    let item = object(json!({
        "text": {"type": "string", "description": "one short sentence, as plain text"},
        "source": {"type": "integer", "description": "the number of the message that says it"},
    }));
    let list = |what: &str| json!({"type": "array", "description": what, "items": item});
    let conflict = object(json!({"earlier": item, "later": item}));
    object(json!({
        "background": {"type": "string", "description": "the topic and current state, in 1 to 3 sentences"},
        "topics": list("topics that were discussed"),
        "decisions": list("what was decided"),
        "pending": list("what is still open"),
        "done": {
            "type": "array",
            "description": "tasks that were pending and are now done: their line numbers in the known items",
            "items": {"type": "integer"},
        },
        "facts": list("names, numbers, places and limits that still apply and may be needed again"),
        "files": list("paths of files that were read or changed; only the path"),
        "conflicts": {
            "type": "array",
            "description": "contradictions between a message and an earlier one, or the known items",
            "items": conflict,
        },
    }))
}
