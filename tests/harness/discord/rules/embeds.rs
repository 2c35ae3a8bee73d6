//! Boxes of formatted text.

use serde_json::Value;

use super::fields::Fields;
use crate::discord::refusal::Errors;

const EMBEDS: usize = 10;
/// Characters in all embeds of a message together.
const TOGETHER: usize = 6000;

/// Checks `embeds` of a body.
pub fn check(body: &Fields<'_>, errors: &mut Errors) {
    let known = [
        "title",
        "type",
        "description",
        "url",
        "timestamp",
        "color",
        "footer",
        "image",
        "thumbnail",
        "author",
        "fields",
    ];
    let mut together = 0;
    let mut count = |text: Option<&str>| together += text.map_or(0, |text| text.chars().count());
    for (path, embed) in body.list("embeds", EMBEDS, errors) {
        let embed = Fields::of(embed, &path, &known, errors);
        count(embed.text("title", 0, 256, errors));
        count(embed.text("description", 0, 4096, errors));
        if let Some(footer) = embed.get("footer") {
            let footer = Fields::of(footer, &embed.at("footer"), &["text", "icon_url"], errors);
            count(footer.due_text("text", 1, 2048, errors));
        }
        if let Some(author) = embed.get("author") {
            let author = Fields::of(author, &embed.at("author"), &["name", "url", "icon_url"], errors);
            count(author.due_text("name", 1, 256, errors));
        }
        for (path, field) in embed.list("fields", 25, errors) {
            let field = Fields::of(field, &path, &["name", "value", "inline"], errors);
            count(field.due_text("name", 1, 256, errors));
            count(field.due_text("value", 1, 1024, errors));
        }
        if embed.value.as_object().is_some_and(|fields| fields.values().all(Value::is_null)) {
            errors.add(&path, "MISSING_REQUIRED", "An embed has something in it.");
        }
    }
    if together > TOGETHER {
        let message = "Embed size exceeds maximum size of 6000";
        errors.add(&body.at("embeds"), "MAX_EMBED_SIZE_EXCEEDED", message);
    }
}
