//! Attributes of spans.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};

/// The attributes of a span.
#[derive(Debug, Default)]
pub(crate) struct Attributes(Vec<KeyValue>);

impl Attributes {
    pub(crate) fn text(&mut self, key: &str, text: impl Into<String>) {
        self.push(key, Value::StringValue(text.into()));
    }

    pub(crate) fn number(&mut self, key: &str, number: impl TryInto<i64>) {
        self.push(key, Value::IntValue(number.try_into().unwrap_or(i64::MAX)));
    }

    /// Adds a number if there is one.
    pub(crate) fn count(&mut self, key: &str, count: Option<u64>) {
        if let Some(count) = count {
            self.number(key, count);
        }
    }

    pub(crate) fn amount(&mut self, key: &str, amount: f64) {
        self.push(key, Value::DoubleValue(amount));
    }

    /// Adds a list of one text.
    pub(crate) fn list(&mut self, key: &str, text: &str) {
        let values = vec![AnyValue { value: Some(Value::StringValue(text.to_owned())) }];
        self.push(key, Value::ArrayValue(ArrayValue { values }));
    }

    pub(crate) fn into_inner(self) -> Vec<KeyValue> {
        self.0
    }

    fn push(&mut self, key: &str, value: Value) {
        self.0.push(KeyValue {
            key: key.to_owned(),
            value: Some(AnyValue { value: Some(value) }),
            ..Default::default()
        });
    }
}
