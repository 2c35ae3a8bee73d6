//! Threads that are created without a message.

use serde_json::Value;

use super::fields::Fields;
use crate::discord::api_error::{ApiError, FormErrors};
use crate::discord::objects::THREAD_CHANNEL;

const MAX_NAME_CHARS: usize = 100;

const KNOWN_FIELDS: [&str; 5] = ["name", "type", "auto_archive_duration", "invitable", "rate_limit_per_user"];

/// Minutes after which Discord archives a quiet thread.
const ARCHIVE_DURATIONS: [u64; 4] = [60, 1440, 4320, 10_080];

pub fn check(body: &Value) -> Result<(), ApiError> {
    let mut errors = FormErrors::default();
    let fields = Fields::of(body, "", &KNOWN_FIELDS, &mut errors);
    fields.required("name", &mut errors);
    fields.text("name", 1, MAX_NAME_CHARS, &mut errors);
    // Without a type the thread is private.
    fields.required("type", &mut errors);
    if fields.number("type", 16, &mut errors).is_some_and(|kind| kind != THREAD_CHANNEL) {
        errors.add("type", "BASE_TYPE_CHOICES", "The fake knows public threads.");
    }
    let duration = fields.number("auto_archive_duration", 10_080, &mut errors);
    if duration.is_some_and(|minutes| !ARCHIVE_DURATIONS.contains(&minutes)) {
        errors.add("auto_archive_duration", "BASE_TYPE_CHOICES", "Value must be one of (60, 1440, 4320, 10080).");
    }
    errors.finish()
}
