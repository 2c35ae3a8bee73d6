//! Embeds: boxes of formatted text.

use serde_json::Value;

use super::fields::Fields;
use crate::discord::api_error::FormErrors;

const MAX_EMBEDS: usize = 10;
/// Characters in all embeds of a message together.
const MAX_EMBED_CHARS: usize = 6000;

/// Checks the `embeds` of a body.
pub fn check(body: &Fields<'_>, errors: &mut FormErrors) {
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
    for (path, embed) in body.list("embeds", MAX_EMBEDS, errors) {
        let embed = Fields::of(embed, &path, &known, errors);
        count(embed.text("title", 0, 256, errors));
        count(embed.text("description", 0, 4096, errors));
        if let Some(footer) = embed.get("footer") {
            let footer = Fields::of(footer, &embed.path_of("footer"), &["text", "icon_url"], errors);
            count(footer.required_text("text", 1, 2048, errors));
        }
        if let Some(author) = embed.get("author") {
            let author = Fields::of(author, &embed.path_of("author"), &["name", "url", "icon_url"], errors);
            count(author.required_text("name", 1, 256, errors));
        }
        for (path, field) in embed.list("fields", 25, errors) {
            let field = Fields::of(field, &path, &["name", "value", "inline"], errors);
            count(field.required_text("name", 1, 256, errors));
            count(field.required_text("value", 1, 1024, errors));
        }
        if embed.value.as_object().is_some_and(|fields| fields.values().all(Value::is_null)) {
            errors.add(&path, "MISSING_REQUIRED", "An embed has something in it.");
        }
    }
    if together > MAX_EMBED_CHARS {
        let message = "Embed size exceeds maximum size of 6000";
        errors.add(&body.path_of("embeds"), "MAX_EMBED_SIZE_EXCEEDED", message);
    }
}
