//! The operations `settings.*`.

mod effective_config;
pub mod set;
pub mod show;

use chorus_config::{Config, Origin};
use chorus_proto::methods::settings::{From, Setting};
use serde_json::Value;

pub use effective_config::EffectiveConfig;

/// Converts a key into its form in the protocol.
fn to_setting(config: &Config, key: String, value: Value) -> Setting {
    let (from, place) = match config.origins.get(&key) {
        None => (From::Default, None),
        Some(Origin::File(path)) => (From::File, Some(path.to_string_lossy().into_owned())),
        Some(Origin::Environment(variable)) => (From::Environment, Some(variable.clone())),
        Some(Origin::Settings) => (From::Settings, None),
    };
    Setting { key, value, from, place }
}
