//! Channels that are made or changed.

use serde_json::Value;

use super::fields::Fields;
use crate::discord::refusal::{Errors, Refusal};
use crate::discord::world::{CATEGORY, TEXT};

const NAME: usize = 100;
const TOPIC: usize = 1024;

const KNOWN: [&str; 10] = [
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

/// Checks a body; a `new` one needs a name.
pub fn check(body: &Value, new: bool) -> Result<(), Refusal> {
    let mut errors = Errors::default();
    let fields = Fields::of(body, "", &KNOWN, &mut errors);
    if new {
        fields.due("name", &mut errors);
    }
    fields.text("name", 1, NAME, &mut errors);
    fields.text("topic", 0, TOPIC, &mut errors);
    fields.snowflake("parent_id", &mut errors);
    fields.list("permission_overwrites", 100, &mut errors);
    let kind = fields.number("type", 16, &mut errors).unwrap_or(TEXT);
    if ![TEXT, CATEGORY].contains(&kind) {
        errors.add("type", "BASE_TYPE_CHOICES", "The fake knows text channels and categories.");
    }
    if kind == CATEGORY && fields.get("parent_id").is_some() {
        errors.add("parent_id", "CHANNEL_PARENT_INVALID_TYPE", "Categories cannot have subcategories");
    }
    errors.done()
}
