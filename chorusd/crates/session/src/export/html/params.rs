//! Renders the parameters of a tool call, each with its name.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::text::{escape, truncate_line};

/// Number of characters of the first parameter that a collapsed call shows.
const PREVIEW_CHARS: usize = 80;

/// The parameters as an object, in their order and with numbers as written.
struct OrderedObject<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for OrderedObject<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = OrderedObject<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderedObject<'de>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(OrderedObject(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// Returns the contents of a string, and any other value as JSON.
fn display_text(value: &RawValue) -> String {
    serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| value.get().to_owned())
}

/// Returns the start of the first parameter as HTML.
pub(super) fn preview(params: &RawValue) -> String {
    let first = match serde_json::from_str::<OrderedObject<'_>>(params.get()) {
        Ok(OrderedObject(pairs)) => pairs.first().map(|(_, value)| display_text(value)).unwrap_or_default(),
        Err(_) => display_text(params),
    };
    escape(&truncate_line(&first, PREVIEW_CHARS))
}

/// Renders all parameters as HTML.
pub(super) fn list(params: &RawValue) -> String {
    match serde_json::from_str::<OrderedObject<'_>>(params.get()) {
        Ok(OrderedObject(pairs)) if pairs.is_empty() => "<p class=\"none\">no parameters</p>\n".to_owned(),
        Ok(OrderedObject(pairs)) => {
            let pair = |(name, value): &(String, &RawValue)| {
                format!("<dt>{}</dt><dd><pre>{}</pre></dd>\n", escape(name), escape(&display_text(value)))
            };
            format!("<dl class=\"params\">\n{}</dl>\n", pairs.iter().map(pair).collect::<String>())
        }
        Err(_) => format!("<pre>{}</pre>\n", escape(&display_text(params))),
    }
}
