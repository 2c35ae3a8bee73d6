//! JSON objects whose values keep their bytes.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of an object, in their order.
pub(crate) struct ObjectFields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl ObjectFields<'_> {
    /// Returns the object without some of its fields.
    pub(crate) fn without(&self, names: &[&str]) -> serde_json::Result<String> {
        let mut json = String::from("{");
        for (name, value) in self.0.iter().filter(|(name, _)| !names.contains(&name.as_ref())) {
            if json.len() > 1 {
                json.push(',');
            }
            json.push_str(&serde_json::to_string(name)?);
            json.push(':');
            json.push_str(value.get());
        }
        json.push('}');
        Ok(json)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for ObjectFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = ObjectFields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry::<Cow<'de, str>, &RawValue>()? {
                    fields.push(field);
                }
                Ok(ObjectFields(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}
