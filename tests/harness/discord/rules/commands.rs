//! Commands that are registered, and autocomplete choices.

use serde_json::Value;

use super::fields::Fields;
use crate::discord::api_error::{ApiError, FormErrors};

/// Commands of a guild at most.
const MAX_COMMANDS: usize = 100;
const MAX_OPTIONS: usize = 25;
/// Characters of a command's names, descriptions and values together.
const MAX_COMMAND_CHARS: usize = 8000;

const KNOWN_FIELDS: [&str; 15] = [
    "id",
    "name",
    "name_localizations",
    "description",
    "description_localizations",
    "options",
    "default_member_permissions",
    "dm_permission",
    "default_permission",
    "integration_types",
    "contexts",
    "type",
    "nsfw",
    "version",
    "handler",
];
const KNOWN_OPTION_FIELDS: [&str; 15] = [
    "type",
    "name",
    "name_localizations",
    "description",
    "description_localizations",
    "required",
    "choices",
    "options",
    "channel_types",
    "min_value",
    "max_value",
    "min_length",
    "max_length",
    "autocomplete",
    "default",
];

/// Checks a list of commands.
pub fn check(list: &Value) -> Result<(), ApiError> {
    let mut errors = FormErrors::default();
    let Some(commands) = list.as_array() else {
        errors.add("", "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType");
        return errors.finish();
    };
    if commands.len() > MAX_COMMANDS {
        return Err(ApiError::violation(400, 30_032, "Maximum number of application commands reached (100)."));
    }
    check_unique_names(commands.iter(), "", &mut errors);
    for (at, command) in commands.iter().enumerate() {
        let fields = Fields::of(command, &at.to_string(), &KNOWN_FIELDS, &mut errors);
        if command["type"].as_u64().unwrap_or(1) == 1 {
            check_name(&fields, &mut errors);
        } else {
            errors.add(&fields.path_of("type"), "BASE_TYPE_CHOICES", "The fake knows commands that are typed.");
        }
        if let Some(permissions) = fields.get("default_member_permissions")
            && permissions.as_str().and_then(|bits| bits.parse::<u64>().ok()).is_none()
        {
            errors.add(
                &fields.path_of("default_member_permissions"),
                "NUMBER_TYPE_COERCE",
                "It is a number in a text.",
            );
        }
        check_options(&fields, 0, &mut errors);
        if count_chars(command) > MAX_COMMAND_CHARS {
            let message = "Command exceeds maximum size (8000)";
            errors.add(&at.to_string(), "APPLICATION_COMMAND_TOO_LARGE", message);
        }
    }
    errors.finish()
}

/// Checks a name (lower case letters, digits, `-` and `_`; 1 to 32) and a description.
fn check_name(fields: &Fields<'_>, errors: &mut FormErrors) {
    fields.required_text("description", 1, 100, errors);
    let Some(name) = fields.required_text("name", 1, 32, errors) else { return };
    let letters = name.chars().all(|c| (c.is_alphanumeric() && !c.is_uppercase()) || "-_'".contains(c));
    if !letters {
        errors.add(&fields.path_of("name"), "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid");
    }
}

fn check_options(fields: &Fields<'_>, depth: usize, errors: &mut FormErrors) {
    let list = fields.list("options", MAX_OPTIONS, errors);
    check_unique_names(list.iter().map(|(_, option)| *option), &fields.path_of("options"), errors);
    let mut optional = false;
    let subs = list.iter().filter(|(_, option)| matches!(option["type"].as_u64(), Some(1 | 2))).count();
    if subs > 0 && subs < list.len() {
        let message = "Sub-command and sub-command group option types are mutually exclusive to all other types";
        errors.add(&fields.path_of("options"), "APPLICATION_COMMAND_OPTIONS_TYPE_INVALID", message);
    }
    for (path, option) in list {
        let option = Fields::of(option, &path, &KNOWN_OPTION_FIELDS, errors);
        check_name(&option, errors);
        match option.required("type", errors).and_then(Value::as_u64) {
            Some(kind @ (1 | 2)) => {
                if depth + usize::from(kind == 1) > 2 || kind == 2 && depth > 0 {
                    errors.add(
                        &option.path_of("type"),
                        "APPLICATION_COMMAND_OPTIONS_TYPE_INVALID",
                        "It is nested too deep.",
                    );
                }
                check_options(&option, depth + 1, errors);
            }
            Some(3..=11) => check_value_option(&option, errors),
            _ => errors.add(&option.path_of("type"), "BASE_TYPE_CHOICES", "Value must be one of 1 to 11."),
        }
        let required = option.boolean("required", errors).unwrap_or(false);
        if required && optional {
            let message = "Required options must be placed before non-required options";
            errors.add(&path, "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", message);
        }
        optional |= !required;
    }
}

fn check_value_option(option: &Fields<'_>, errors: &mut FormErrors) {
    let offered = option.list("choices", MAX_OPTIONS, errors);
    let completed = option.boolean("autocomplete", errors).unwrap_or(false);
    if completed && !offered.is_empty() {
        errors.add(
            &option.path_of("autocomplete"),
            "APPLICATION_COMMAND_OPTIONS_AUTOCOMPLETE",
            "It has choices already.",
        );
    }
    if completed && !matches!(option.value["type"].as_u64(), Some(3 | 4 | 10)) {
        errors.add(&option.path_of("autocomplete"), "APPLICATION_COMMAND_OPTIONS_AUTOCOMPLETE", "Not for this type.");
    }
    check_unique_names(offered.iter().map(|(_, choice)| *choice), &option.path_of("choices"), errors);
    check_choices(offered, errors);
}

/// Checks autocomplete choices.
pub fn check_completion(data: &Value) -> Result<(), ApiError> {
    let mut errors = FormErrors::default();
    let fields = Fields::of(data, "data", &["choices"], &mut errors);
    fields.required("choices", &mut errors);
    let offered = fields.list("choices", MAX_OPTIONS, &mut errors);
    check_choices(offered, &mut errors);
    errors.finish()
}

fn check_choices(offered: Vec<(String, &Value)>, errors: &mut FormErrors) {
    for (path, choice) in offered {
        let choice = Fields::of(choice, &path, &["name", "name_localizations", "value"], errors);
        choice.required_text("name", 1, 100, errors);
        if choice.required("value", errors).is_some_and(Value::is_string) {
            choice.text("value", 0, 100, errors);
        }
    }
}

fn check_unique_names<'a>(values: impl Iterator<Item = &'a Value>, path: &str, errors: &mut FormErrors) {
    let mut names: Vec<&str> = Vec::new();
    for name in values.filter_map(|value| value["name"].as_str()) {
        if names.contains(&name) {
            errors.add(path, "APPLICATION_COMMANDS_DUPLICATE_NAME", "Names must be unique");
        }
        names.push(name);
    }
}

fn count_chars(value: &Value) -> usize {
    let own = ["name", "description", "value"].iter().filter_map(|name| value[name].as_str());
    let inside = ["options", "choices"].iter().filter_map(|name| value[name].as_array()).flatten();
    own.map(|text| text.chars().count()).sum::<usize>() + inside.map(count_chars).sum::<usize>()
}
