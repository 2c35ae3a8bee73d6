//! Reads `[permission_grants]` of config.toml.

use chorus_base::closest_match;
use toml::de::{DeTable, DeValue};

use super::Config;
use super::named_tables::{GRANTS_TABLE, TableError};

/// Reads who may grant which profiles. All profiles must have been read before.
pub(crate) fn read_grants(config: &mut Config, table: &DeTable<'_>) -> Result<(), TableError> {
    let example = || "for example: admin = [\"open\", \"standard\", \"locked\"]".to_owned();
    for (label, value) in table {
        let role = label.get_ref().as_ref();
        let DeValue::Array(list) = value.get_ref() else {
            let what = format!("`{GRANTS_TABLE}.{role}` must be a list of permission profiles");
            return Err((label.span().start, what, example()));
        };
        let mut profiles = Vec::new();
        for (index, entry) in list.iter().enumerate() {
            let (at, place) = (entry.span().start, format!("`{GRANTS_TABLE}.{role}[{index}]`"));
            let DeValue::String(name) = entry.get_ref() else {
                return Err((at, format!("{place} must be the name of a permission profile"), example()));
            };
            if config.profiles.get(name).is_none() {
                let names: Vec<&str> = config.profiles.iter().map(|(name, _)| name).collect();
                let hint = match closest_match(name, names.iter().copied()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("profiles: {}", names.join(", ")),
                };
                return Err((at, format!("{place} names the unknown profile `{name}`"), hint));
            }
            profiles.push(name.to_string());
        }
        config.grants.add(role, profiles);
    }
    Ok(())
}
