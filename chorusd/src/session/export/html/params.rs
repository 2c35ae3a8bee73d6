//! The parameters of a call, each under its name.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::text::{escape, truncate_line};

/// Characters of the first parameter that a folded call shows.
const PREVIEW_CHARS: usize = 80;

/// Parameters that are an object, in order, digit for digit.
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

/// A value as a person reads it: a string by what it says, anything else as it stands.
fn display_text(value: &RawValue) -> String {
    serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| value.get().to_owned())
}

/// The beginning of the first parameter.
pub(super) fn preview(params: &RawValue) -> String {
    let first = match serde_json::from_str::<OrderedObject<'_>>(params.get()) {
        Ok(OrderedObject(pairs)) => pairs.first().map(|(_, value)| display_text(value)).unwrap_or_default(),
        Err(_) => display_text(params),
    };
    escape(&truncate_line(&first, PREVIEW_CHARS))
}

/// All of them.
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
