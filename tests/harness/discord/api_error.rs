//! Errors of the REST API.

use serde_json::{Map, Value, json};

/// Status, code and message of Discord, and for an invalid form the errors of its fields.
#[derive(Debug, Clone)]
pub struct ApiError {
    pub status: u16,
    pub code: u64,
    pub message: String,
    pub errors: Option<Value>,
    /// Only a bug of the application leads to this error.
    pub is_violation: bool,
}

impl ApiError {
    pub fn new(status: u16, code: u64, message: &str) -> Self {
        Self { status, code, message: message.to_owned(), errors: None, is_violation: false }
    }

    /// Creates an error that a correct application never causes.
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

/// Errors in a form: for each a path such as `components.0.label`, a code and a message.
#[derive(Debug, Default)]
pub struct FormErrors(Vec<(String, &'static str, String)>);

impl FormErrors {
    pub fn add(&mut self, path: &str, code: &'static str, message: impl Into<String>) {
        self.0.push((path.to_owned(), code, message.into()));
    }

    /// Returns an error if anything in the form is wrong.
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
