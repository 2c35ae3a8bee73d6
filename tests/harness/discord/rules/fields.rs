//! Access to the fields of a JSON object, with checks.

use serde_json::Value;

use crate::discord::api_error::FormErrors;

/// An object in a body, at a path such as `components.0`.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    pub value: &'a Value,
    pub path: String,
}

/// Returns a field; `None` if it is missing or null.
fn get_field<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    value.get(name).filter(|value| !value.is_null())
}

impl<'a> Fields<'a> {
    /// Reads an object. Adds an error if it is no object, or has unknown fields.
    pub fn of(value: &'a Value, path: &str, known: &[&str], errors: &mut FormErrors) -> Self {
        let fields = Self { value, path: path.to_owned() };
        match value.as_object() {
            Some(object) => {
                for name in object.keys().filter(|name| !known.contains(&name.as_str())) {
                    errors.add(&fields.path_of(name), "UNKNOWN_FIELD", "This field is not known.");
                }
            }
            None => errors.add(path, "DICT_TYPE_CONVERT", "Only dictionaries may be used in a DictType"),
        }
        fields
    }

    /// Returns the path of a field.
    pub fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    pub fn get(&self, name: &str) -> Option<&'a Value> {
        get_field(self.value, name)
    }

    /// Reads an optional text of `least` to `most` characters.
    pub fn text(&self, name: &str, least: usize, most: usize, errors: &mut FormErrors) -> Option<&'a str> {
        let value = self.get(name)?;
        let Some(text) = value.as_str() else {
            errors.add(&self.path_of(name), "STRING_TYPE_CONVERT", "Could not interpret as string.");
            return None;
        };
        // Discord counts code points.
        let length = text.chars().count();
        if length > most {
            let message = format!("Must be {most} or fewer in length.");
            errors.add(&self.path_of(name), "BASE_TYPE_MAX_LENGTH", message);
        } else if length < least {
            let message = format!("Must be between {least} and {most} in length.");
            errors.add(&self.path_of(name), "BASE_TYPE_BAD_LENGTH", message);
        }
        Some(text)
    }

    /// Reads a required text.
    pub fn required_text(&self, name: &str, least: usize, most: usize, errors: &mut FormErrors) -> Option<&'a str> {
        self.required(name, errors)?;
        self.text(name, least, most, errors)
    }

    /// Reads a required field.
    pub fn required(&self, name: &str, errors: &mut FormErrors) -> Option<&'a Value> {
        let found = self.get(name);
        if found.is_none() {
            errors.add(&self.path_of(name), "BASE_TYPE_REQUIRED", "This field is required");
        }
        found
    }

    /// Reads a list of at most `most` elements, with the path of each.
    pub fn list(&self, name: &str, most: usize, errors: &mut FormErrors) -> Vec<(String, &'a Value)> {
        let Some(value) = self.get(name) else { return Vec::new() };
        let Some(list) = value.as_array() else {
            errors.add(&self.path_of(name), "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType");
            return Vec::new();
        };
        if list.len() > most {
            let message = format!("Must be {most} or fewer in length.");
            errors.add(&self.path_of(name), "BASE_TYPE_MAX_LENGTH", message);
        }
        list.iter().enumerate().map(|(at, value)| (format!("{}.{at}", self.path_of(name)), value)).collect()
    }

    /// Reads a whole number up to `most`.
    pub fn number(&self, name: &str, most: u64, errors: &mut FormErrors) -> Option<u64> {
        let number = self.get(name)?.as_u64().filter(|number| *number <= most);
        if number.is_none() {
            errors.add(&self.path_of(name), "NUMBER_TYPE_COERCE", format!("Value is not one of 0 to {most}."));
        }
        number
    }

    pub fn boolean(&self, name: &str, errors: &mut FormErrors) -> Option<bool> {
        let value = self.get(name)?.as_bool();
        if value.is_none() {
            errors.add(&self.path_of(name), "BOOLEAN_TYPE_CONVERT", "Must be either true or false.");
        }
        value
    }

    /// Reads an id, which is a number in a string.
    pub fn snowflake(&self, name: &str, errors: &mut FormErrors) -> Option<u64> {
        let value = self.get(name)?;
        let number = value.as_str().and_then(|text| text.parse().ok()).or_else(|| value.as_u64());
        if number.is_none() {
            let message = format!("Value {value} is not snowflake.");
            errors.add(&self.path_of(name), "NUMBER_TYPE_COERCE", message);
        }
        number
    }
}
