//! The operations `settings.*`.

mod effective_config;
pub mod set;
pub mod show;

use chorus_config::{Config, Origin};
use chorus_proto::methods::settings::{From, Setting};
use serde_json::Value;

pub use effective_config::{ConfigReader, EffectiveConfig};

/// Converts a key into its form in the protocol.
pub(super) fn to_setting(config: &Config, key: String, value: Value) -> Setting {
    let (from, place, line) = match config.origins.get(&key) {
        None => (From::Default, None, None),
        Some(Origin::File { path, line }) => {
            (From::File, Some(path.to_string_lossy().into_owned()), Some(*line as u64).filter(|line| *line > 0))
        }
        Some(Origin::Environment(variable)) => (From::Environment, Some(variable.clone()), None),
        Some(Origin::Settings) => (From::Settings, None, None),
    };
    Setting { key, value, from, place, line }
}
