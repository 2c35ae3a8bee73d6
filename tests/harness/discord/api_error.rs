//! What Discord answers instead of doing it.

use serde_json::{Map, Value, json};

/// A status, Discord's code and message, and for a form what is wrong in it.
#[derive(Debug, Clone)]
pub struct ApiError {
    pub status: u16,
    pub code: u64,
    pub message: String,
    pub errors: Option<Value>,
    /// Only a mistake of the application leads to it.
    pub is_violation: bool,
}

impl ApiError {
    pub fn new(status: u16, code: u64, message: &str) -> Self {
        Self { status, code, message: message.to_owned(), errors: None, is_violation: false }
    }

    /// The same for what a correct application never brings about.
    pub fn violation(status: u16, code: u64, message: &str) -> Self {
        Self { is_violation: true, ..Self::new(status, code, message) }
    }

    pub fn unknown_channel() -> Self {
        Self::new(404, 10_003, "Unknown Channel")
    }

    pub fn unknown_message() -> Self {
        Self::new(404, 10_008, "Unknown Message")
    }

    pub fn unknown_webhook() -> Self {
        Self::new(404, 10_015, "Unknown Webhook")
    }

    pub fn missing_access() -> Self {
        Self::new(403, 50_001, "Missing Access")
    }

    pub fn missing_permissions() -> Self {
        Self::new(403, 50_013, "Missing Permissions")
    }

    pub fn to_json(&self) -> Value {
        let mut body = json!({"message": self.message, "code": self.code});
        if let Some(errors) = &self.errors {
            body["errors"] = errors.clone();
        }
        body
    }
}

/// What is wrong in a form: paths such as `components.0.label`, a code and a message for each.
#[derive(Debug, Default)]
pub struct FormErrors(Vec<(String, &'static str, String)>);

impl FormErrors {
    pub fn add(&mut self, path: &str, code: &'static str, message: impl Into<String>) {
        self.0.push((path.to_owned(), code, message.into()));
    }

    /// The refusal of the form, where anything is wrong in it.
    pub fn finish(self) -> Result<(), ApiError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut tree = Value::Object(Map::new());
        for (path, code, message) in self.0 {
            let mut at = &mut tree;
            for part in path.split('.').filter(|part| !part.is_empty()) {
                at = &mut at[part];
            }
            match at["_errors"].as_array_mut() {
                Some(list) => list.push(json!({"code": code, "message": message})),
                None => at["_errors"] = json!([{"code": code, "message": message}]),
            }
        }
        Err(ApiError { errors: Some(tree), ..ApiError::violation(400, 50_035, "Invalid Form Body") })
    }
}
