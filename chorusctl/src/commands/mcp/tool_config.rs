//! The entry of the server in the configuration of a coding tool.

use serde_json::Value;

use super::toml_edit;
use super::tool::{NAME, Syntax, Tool};
use crate::coding_tools::config_file::{ConfigFile, user_home};
use crate::coding_tools::json_edit;
use crate::error::Error;

/// A configuration as it was read.
#[derive(Debug)]
pub(super) struct ToolConfig {
    tool: Tool,
    pub(super) file: ConfigFile,
}

impl ToolConfig {
    /// Reads the user's configuration of `tool`.
    ///
    /// # Errors
    /// The user's home is unknown, or the file cannot be read.
    pub(super) fn read(tool: Tool) -> Result<Self, Error> {
        let path = tool.config_file(&user_home()?, |name| std::env::var_os(name).filter(|value| !value.is_empty()));
        Ok(Self { tool, file: ConfigFile::read(path)? })
    }

    fn text(&self) -> &str {
        self.file.text().unwrap_or(self.tool.empty_config())
    }

    /// Returns the entry of the server, if there is one.
    ///
    /// # Errors
    /// The file is not valid.
    pub(super) fn entry(&self) -> Result<Option<Value>, Error> {
        let servers = self.tool.servers_key();
        let found = match self.tool.syntax() {
            Syntax::Json => {
                json_edit::parse(self.text()).map(|root| root.get(servers).and_then(|held| held.get(NAME)).cloned())
            }
            Syntax::Toml => toml_edit::parse(self.text()).map(|root| toml_edit::get(&root, servers, NAME)),
        };
        found.ok_or_else(|| {
            let syntax = if self.tool.syntax() == Syntax::Json { "JSON" } else { "TOML" };
            Error::failed(format!("{} is not valid {syntax}; nothing was changed", self.file.shown_path()))
                .with_hint(format!("repair it; {} cannot read it either", self.tool.title()))
        })
    }

    /// Returns the text with the entry; `None` if it cannot be added without touching the rest.
    pub(super) fn with_entry(&self, entry: &Value) -> Option<String> {
        match self.tool.syntax() {
            Syntax::Json => json_edit::set(self.text(), self.tool.servers_key(), NAME, entry),
            Syntax::Toml => toml_edit::set(self.text(), self.tool.servers_key(), NAME, entry),
        }
    }

    /// Returns the text without the entry; `None` if it cannot be removed without touching the rest.
    pub(super) fn without_entry(&self) -> Option<String> {
        match self.tool.syntax() {
            Syntax::Json => json_edit::remove(self.text(), self.tool.servers_key(), NAME),
            Syntax::Toml => toml_edit::remove(self.text(), self.tool.servers_key(), NAME),
        }
    }

    /// Returns the text of a configuration that has only the entry, to be copied by hand.
    pub(super) fn snippet(&self, entry: &Value) -> String {
        let servers = self.tool.servers_key();
        let text = match self.tool.syntax() {
            Syntax::Json => json_edit::set("", servers, NAME, entry),
            Syntax::Toml => toml_edit::set("", servers, NAME, entry),
        };
        text.unwrap_or_else(|| entry.to_string())
    }
}
