//! Rows of buttons and select menus below a message.

use serde_json::Value;

use super::fields::Fields;
use crate::discord::api_error::{ApiError, FormErrors};

const MAX_ROWS: usize = 5;
const MAX_PER_ROW: usize = 5;

/// Checks the `components` of a body.
pub fn check(body: &Fields<'_>, errors: &mut FormErrors) {
    let mut ids: Vec<String> = Vec::new();
    for (path, row) in body.list("components", MAX_ROWS, errors) {
        let row = Fields::of(row, &path, &["type", "components", "id"], errors);
        if row.value["type"] != 1 {
            errors.add(&row.path_of("type"), "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (1,).");
        }
        let inside = row.list("components", MAX_PER_ROW, errors);
        if inside.is_empty() {
            errors.add(&row.path_of("components"), "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.");
        }
        for (path, component) in inside {
            check_component(component, &path, errors);
            let Some(id) = component["custom_id"].as_str() else { continue };
            if ids.iter().any(|known| known == id) {
                let message = "Component custom id cannot be duplicated";
                errors.add(&format!("{path}.custom_id"), "COMPONENT_CUSTOM_ID_DUPLICATED", message);
            }
            ids.push(id.to_owned());
        }
    }
}

/// Checks a form with text inputs.
///
/// # Errors
/// As Discord refuses it.
pub fn check_form(data: &Value) -> Result<(), ApiError> {
    let mut errors = FormErrors::default();
    let form = Fields::of(data, "data", &["custom_id", "title", "components"], &mut errors);
    form.required_text("custom_id", 1, 100, &mut errors);
    form.required_text("title", 1, 45, &mut errors);
    let rows = form.list("components", MAX_ROWS, &mut errors);
    if rows.is_empty() {
        errors.add("data.components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.");
    }
    for (path, row) in rows {
        let row = Fields::of(row, &path, &["type", "components", "id"], &mut errors);
        for (path, input) in row.list("components", 1, &mut errors) {
            let known =
                ["type", "custom_id", "style", "label", "required", "min_length", "max_length", "value", "placeholder"];
            let input = Fields::of(input, &path, &known, &mut errors);
            if input.value["type"] != 4 {
                errors.add(
                    &input.path_of("type"),
                    "UNION_TYPE_CHOICES",
                    "Value of field \"type\" must be one of (4,).",
                );
            }
            input.required_text("custom_id", 1, 100, &mut errors);
            input.required_text("label", 1, 45, &mut errors);
            input.text("placeholder", 0, 100, &mut errors);
            input.boolean("required", &mut errors);
        }
    }
    errors.finish()
}

fn check_component(value: &Value, path: &str, errors: &mut FormErrors) {
    match value["type"].as_u64() {
        Some(2) => check_button(value, path, errors),
        Some(3 | 5..=8) => check_select(value, path, errors),
        _ => errors.add(
            &format!("{path}.type"),
            "UNION_TYPE_CHOICES",
            "Value of field \"type\" is no component of a row.",
        ),
    }
}

fn check_button(value: &Value, path: &str, errors: &mut FormErrors) {
    let known = ["type", "id", "style", "label", "emoji", "custom_id", "sku_id", "url", "disabled"];
    let button = Fields::of(value, path, &known, errors);
    button.text("label", 0, 80, errors);
    button.boolean("disabled", errors);
    if button.get("label").is_none() && button.get("emoji").is_none() {
        errors.add(path, "BUTTON_COMPONENT_INVALID_LABEL_EMOJI", "A button must have a label or an emoji.");
    }
    match button.required("style", errors).and_then(Value::as_u64) {
        Some(1..=4) => _ = button.required_text("custom_id", 1, 100, errors),
        Some(5) => {
            button.required_text("url", 1, 512, errors);
            if button.get("custom_id").is_some() {
                errors.add(&button.path_of("custom_id"), "COMPONENT_CUSTOM_ID_FORBIDDEN", "A link has no custom id.");
            }
        }
        _ => errors.add(&button.path_of("style"), "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3, 4, 5}."),
    }
}

fn check_select(value: &Value, path: &str, errors: &mut FormErrors) {
    let known = [
        "type",
        "id",
        "custom_id",
        "options",
        "channel_types",
        "placeholder",
        "default_values",
        "min_values",
        "max_values",
        "disabled",
    ];
    let select = Fields::of(value, path, &known, errors);
    select.required_text("custom_id", 1, 100, errors);
    select.text("placeholder", 0, 150, errors);
    for (path, option) in select.list("options", 25, errors) {
        let option = Fields::of(option, &path, &["label", "value", "description", "emoji", "default"], errors);
        option.required_text("label", 1, 100, errors);
        option.required_text("value", 1, 100, errors);
        option.text("description", 0, 100, errors);
    }
}
