//! The named profiles: presets and those of config.toml.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::presets::{PRESET_NAMES, preset};
use super::profile::Profile;
use super::profile_spec::{ProfileError, ProfileSpec};

/// All named profiles, sorted by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Profiles {
    named: BTreeMap<String, Arc<Profile>>,
}

impl Default for Profiles {
    /// The presets only.
    fn default() -> Self {
        let compiled = |name: &&str| {
            // A preset that does not compile would be skipped here; the test `presets_compile` guards against that.
            let profile = Profile::new(preset(name)?).ok()?;
            Some(((*name).to_owned(), Arc::new(profile)))
        };
        Self { named: PRESET_NAMES.iter().filter_map(compiled).collect() }
    }
}

impl Profiles {
    /// Returns true if `name` is one of the presets.
    #[must_use]
    pub fn is_preset(name: &str) -> bool {
        PRESET_NAMES.contains(&name)
    }

    /// Adds a profile of the configuration.
    pub fn add(&mut self, name: &str, spec: ProfileSpec) -> Result<(), ProfileError> {
        let whole = |what: &str| ProfileError { location: None, message: what.to_owned() };
        if Self::is_preset(name) {
            return Err(whole("is a preset; choose another name"));
        }
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > 64 || !name.chars().all(good) || name == "custom" {
            return Err(whole(
                "is not a valid profile name: use lower-case letters, digits, `-` and `_`, but not `custom`",
            ));
        }
        self.named.insert(name.to_owned(), Arc::new(Profile::new(spec)?));
        Ok(())
    }

    /// Returns the profile called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Profile>> {
        self.named.get(name)
    }

    /// Iterates over the presets first, then over the other profiles by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<Profile>)> {
        let presets = PRESET_NAMES.into_iter().filter_map(|name| Some((name, self.named.get(name)?)));
        let own = self.named.iter().filter(|(name, _)| !Self::is_preset(name));
        presets.chain(own.map(|(name, profile)| (name.as_str(), profile)))
    }

    /// Resolves the `permissions` of an agent: a profile's name or an inline profile.
    ///
    /// # Errors
    /// A text that continues "has `permissions` that cannot be used: ".
    pub fn resolve(&self, permissions: &Value) -> Result<Arc<Profile>, String> {
        match permissions {
            Value::String(name) => self.get(name).cloned().ok_or_else(|| {
                let names: Vec<&str> = self.iter().map(|(name, _)| name).collect();
                let meant = chorus_base::closest_match(name, names.iter().copied());
                let meant = meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
                format!("unknown permission profile `{name}` ({}){meant}", names.join(", "))
            }),
            Value::Object(map) => {
                ProfileSpec::from_json(map).and_then(Profile::new).map(Arc::new).map_err(|problem| problem.to_string())
            }
            _ => Err("not a profile name or a profile".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_compile() {
        let names: Vec<String> = Profiles::default().iter().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, PRESET_NAMES);
    }

    #[test]
    fn a_profile_is_named_or_inline_or_refused_with_its_place() {
        let profiles = Profiles::default();
        assert!(profiles.resolve(&"locked".into()).is_ok());
        assert!(profiles.resolve(&"lokced".into()).unwrap_err().contains("did you mean `locked`?"));
        assert!(profiles.resolve(&serde_json::json!({"allow": ["tool:view:.*"]})).is_ok());
        let wrong = profiles.resolve(&serde_json::json!({"allow": ["a", "("]})).unwrap_err();
        assert!(wrong.starts_with("`allow[1]` is not a valid regular expression: "), "{wrong}");
        assert!(profiles.resolve(&3.into()).is_err());
        let mut profiles = profiles;
        assert!(profiles.add("open", ProfileSpec::default()).is_err());
        assert!(profiles.add("a b", ProfileSpec::default()).is_err());
        assert!(profiles.add("careful", ProfileSpec::default()).is_ok());
    }
}
