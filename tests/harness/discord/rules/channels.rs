//! Channels that are created or modified.

use serde_json::Value;

use super::fields::Fields;
use crate::discord::api_error::{ApiError, FormErrors};
use crate::discord::objects::{CATEGORY_CHANNEL, TEXT_CHANNEL};

const MAX_NAME_CHARS: usize = 100;
const MAX_TOPIC_CHARS: usize = 1024;

const KNOWN_FIELDS: [&str; 10] = [
    "name",
    "type",
    "topic",
    "position",
    "permission_overwrites",
    "parent_id",
    "nsfw",
    "rate_limit_per_user",
    "default_auto_archive_duration",
    "flags",
];

/// Checks a body; a `new` channel needs a name.
pub fn check(body: &Value, new: bool) -> Result<(), ApiError> {
    let mut errors = FormErrors::default();
    let fields = Fields::of(body, "", &KNOWN_FIELDS, &mut errors);
    if new {
        fields.required("name", &mut errors);
    }
    fields.text("name", 1, MAX_NAME_CHARS, &mut errors);
    fields.text("topic", 0, MAX_TOPIC_CHARS, &mut errors);
    fields.snowflake("parent_id", &mut errors);
    fields.list("permission_overwrites", 100, &mut errors);
    let kind = fields.number("type", 16, &mut errors).unwrap_or(TEXT_CHANNEL);
    if ![TEXT_CHANNEL, CATEGORY_CHANNEL].contains(&kind) {
        errors.add("type", "BASE_TYPE_CHOICES", "The fake knows text channels and categories.");
    }
    if kind == CATEGORY_CHANNEL && fields.get("parent_id").is_some() {
        errors.add("parent_id", "CHANNEL_PARENT_INVALID_TYPE", "Categories cannot have subcategories");
    }
    errors.finish()
}
