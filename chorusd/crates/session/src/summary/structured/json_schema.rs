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
        "background": {"type": "string", "description": "what it is about and how it stands, in 1 to 3 sentences"},
        "topics": list("what was talked about"),
        "decisions": list("what was decided"),
        "pending": list("what is still open"),
        "done": {
            "type": "array",
            "description": "what was pending already and is done now: the numbers of those lines of what is known",
            "items": {"type": "integer"},
        },
        "facts": list("names, numbers, places and limits that hold and may be needed again"),
        "files": list("paths of files that were looked at or changed: the path alone"),
        "conflicts": {
            "type": "array",
            "description": "where one message says otherwise than an earlier one, or than what is known already",
            "items": conflict,
        },
    }))
}
