//! Bodies of messages.

use serde_json::Value;

use super::fields::Fields;
use super::{components, embeds};
use crate::discord::api_error::{ApiError, FormErrors};

/// Characters of a message at most.
pub const MAX_CONTENT_CHARS: usize = 2000;
/// Bytes of all files of a message together.
const MAX_FILE_BYTES: usize = 10 << 20;
/// Files of a message at most.
const MAX_FILES: usize = 10;

/// The kind of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    /// A new message.
    Create,
    /// An edit of one of the application's own messages.
    Edit,
    /// The initial response to an interaction.
    Callback,
    /// An edit of such a response.
    EditResponse,
    /// A follow-up response.
    Followup,
}

impl BodyKind {
    const fn known_fields(self) -> &'static [&'static str] {
        match self {
            Self::Create => &[
                "content",
                "nonce",
                "enforce_nonce",
                "tts",
                "embeds",
                "allowed_mentions",
                "message_reference",
                "components",
                "sticker_ids",
                "attachments",
                "flags",
                "poll",
            ],
            Self::Edit => &["content", "embeds", "flags", "allowed_mentions", "components", "attachments"],
            Self::Callback => {
                &["tts", "content", "embeds", "allowed_mentions", "flags", "components", "attachments", "poll"]
            }
            Self::EditResponse => {
                &["content", "embeds", "flags", "allowed_mentions", "components", "attachments", "poll"]
            }
            Self::Followup => {
                &["content", "tts", "embeds", "allowed_mentions", "flags", "components", "attachments", "poll"]
            }
        }
    }

    /// The bits of `flags` that it may set.
    const fn allowed_flags(self) -> u64 {
        match self {
            // Bits 2 and 12 suppress link embeds and notifications; bit 6 makes the response to an interaction
            // ephemeral.
            Self::Create => 1 << 2 | 1 << 12,
            Self::Edit | Self::EditResponse => 1 << 2,
            Self::Callback | Self::Followup => 1 << 2 | 1 << 6 | 1 << 12,
        }
    }
}

/// Checks a body at `path`, with files of the sizes `files`.
pub fn check(body: &Value, path: &str, kind: BodyKind, files: &[usize]) -> Result<(), ApiError> {
    let mut errors = FormErrors::default();
    let fields = Fields::of(body, path, kind.known_fields(), &mut errors);
    fields.text("content", 0, MAX_CONTENT_CHARS, &mut errors);
    embeds::check(&fields, &mut errors);
    components::check(&fields, &mut errors);
    if let Some(flags) =
        fields.number("flags", u64::from(u32::MAX), &mut errors).filter(|flags| flags & !kind.allowed_flags() != 0)
    {
        errors.add(&fields.path_of("flags"), "BASE_TYPE_CHOICES", format!("Flags {flags} cannot be set here."));
    }
    if let Some(reference) = fields.get("message_reference") {
        let known = ["type", "message_id", "channel_id", "guild_id", "fail_if_not_exists"];
        let reference = Fields::of(reference, &fields.path_of("message_reference"), &known, &mut errors);
        reference.required("message_id", &mut errors);
        reference.snowflake("message_id", &mut errors);
        reference.snowflake("channel_id", &mut errors);
    }
    check_attachments(&fields, files.len(), &mut errors);
    if let Some(nonce) = fields.get("nonce") {
        let fits = nonce.is_u64() || nonce.as_str().is_some_and(|nonce| nonce.chars().count() <= 25);
        if !fits {
            errors.add(&fields.path_of("nonce"), "NONCE_TYPE_TOO_LONG", "Must be 25 or fewer in length.");
        }
    }
    check_promises(&fields, kind, &mut errors);
    errors.finish()?;
    if files.len() > MAX_FILES {
        return Err(ApiError::violation(400, 30_015, "Maximum number of attachments in a message reached (10)"));
    }
    if files.iter().sum::<usize>() > MAX_FILE_BYTES {
        return Err(ApiError::violation(413, 40_005, "Request entity too large"));
    }
    Ok(())
}

/// Checks that each new file is named by its index, and each kept one by its id.
fn check_attachments(fields: &Fields<'_>, files: usize, errors: &mut FormErrors) {
    for (path, attachment) in fields.list("attachments", MAX_FILES, errors) {
        let known = ["id", "filename", "description", "duration_secs", "waveform"];
        let attachment = Fields::of(attachment, &path, &known, errors);
        attachment.required("id", errors);
        let id = attachment.snowflake("id", errors);
        attachment.text("description", 0, 1024, errors);
        // Small ids are those of files in this request.
        if id.is_some_and(|id| id < 1 << 22 && id >= files as u64) {
            let message = "Attachment data not found";
            errors.add(&path, "ATTACHMENT_NOT_FOUND", message);
        }
    }
}

/// Checks what Chorus promises beyond Discord's rules: no message is posted twice, and nobody is notified.
fn check_promises(fields: &Fields<'_>, kind: BodyKind, errors: &mut FormErrors) {
    if kind == BodyKind::Create {
        fields.required("nonce", errors);
        if fields.value["enforce_nonce"] != true {
            errors.add(&fields.path_of("enforce_nonce"), "CHORUS_PROMISE", "A new message enforces its nonce.");
        }
    }
    let known = ["parse", "roles", "users", "replied_user"];
    let mentions = fields.path_of("allowed_mentions");
    match fields.get("allowed_mentions") {
        None => errors.add(&mentions, "CHORUS_PROMISE", "Every body that can mention says whom."),
        Some(value) => {
            let allowed = Fields::of(value, &mentions, &known, errors);
            let calls =
                ["parse", "roles", "users"].iter().any(|name| !value[name].as_array().is_none_or(Vec::is_empty));
            if calls || value["replied_user"] == true || !value["parse"].is_array() {
                errors.add(&allowed.path_of("parse"), "CHORUS_PROMISE", "Nobody is called.");
            }
        }
    }
}
