//! What agents may do: the engine by a corpus and by chance, the verbs through the socket.

mod bash;
mod canaries;
mod commands;
mod corpus;
mod git_dir;
pub mod locale;
mod profiles;
mod quoting;
mod random_commands;
mod spellings;

use std::collections::BTreeMap;

use chorus_permissions::{Profile, ProfileSpec, Profiles};
use serde_json::Value;

use crate::tidy::source::root;

/// The profiles of tests/fixtures/permissions/profiles.json.
fn own_profiles() -> BTreeMap<String, Profile> {
    let text = std::fs::read_to_string(root().join("tests/fixtures/permissions/profiles.json")).expect("profiles");
    let all: BTreeMap<String, Value> = serde_json::from_str(&text).expect("JSON");
    let compiled = |(name, profile): (String, Value)| {
        let spec = ProfileSpec::from_json(profile.as_object().expect("an object")).expect("a profile");
        (name, Profile::new(spec).expect("a profile"))
    };
    all.into_iter().map(compiled).collect()
}

/// Those, and the presets.
fn profiles() -> BTreeMap<String, Profile> {
    let presets = Profiles::default();
    let presets = presets.iter().map(|(name, profile)| (name.to_owned(), Profile::clone(profile)));
    own_profiles().into_iter().chain(presets).collect()
}

/// A command as an action.
fn action(command: &str) -> String {
    chorus_permissions::Action::Bash { command }.to_string()
}
