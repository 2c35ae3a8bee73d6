//! A hash by which nodes compare their permission profiles.

use chorus_base::error::Result;
use chorus_permissions::Profiles;
use chorus_store::Store;
use sha2::{Digest as _, Sha256};

/// Tells the other nodes the hash of the profiles of this one.
pub async fn publish_profile_hash(store: &Store, profiles: &Profiles) -> Result<()> {
    match &store.ownership {
        Some(ownership) => ownership.publish_profiles(hash_profiles(profiles)).await,
        None => Ok(()),
    }
}

/// Returns the hash of all profiles with their names.
fn hash_profiles(profiles: &Profiles) -> String {
    let mut hash = Sha256::new();
    for (name, profile) in profiles.iter() {
        hash.update(serde_json::json!([name, profile.spec().to_json()]).to_string());
        hash.update("\n");
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use chorus_permissions::ProfileSpec;

    use super::*;

    #[test]
    fn profiles_with_other_names_or_rules_have_another_hash() {
        let with = |name: &str, json: serde_json::Value| {
            let mut profiles = Profiles::default();
            let spec = ProfileSpec::from_json(json.as_object().expect("an object")).expect("a profile");
            profiles.add(name, spec).expect("a profile");
            hash_profiles(&profiles)
        };
        let one = || serde_json::json!({"default": "deny"});
        assert_eq!(with("a", one()), with("a", one()));
        let all = [hash_profiles(&Profiles::default()), with("a", one()), with("b", one())];
        assert!(all[0] != all[1] && all[1] != all[2]);
        assert_ne!(with("a", one()), with("a", serde_json::json!({"default": "ask"})));
    }
}
