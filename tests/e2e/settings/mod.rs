//! `settings show` and `settings set`: what is in force, where it comes from, and what changes at once.

mod set;
mod show;

use chorus_proto::Client;
use chorus_proto::methods::settings::{Set, SetParams, SetResult, Setting, Show, ShowParams};

pub(crate) fn set(client: &mut Client, key: &str, value: &str) -> SetResult {
    client.call::<Set>(&SetParams { key: key.into(), value: value.into(), command: None }).expect("settings.set")
}

fn shown(client: &mut Client) -> Vec<Setting> {
    client.call::<Show>(&ShowParams {}).expect("settings.show").settings
}

/// One key of what is shown.
pub(crate) fn one(client: &mut Client, key: &str) -> Setting {
    shown(client).into_iter().find(|setting| setting.key == key).unwrap_or_else(|| panic!("{key} is not shown"))
}
