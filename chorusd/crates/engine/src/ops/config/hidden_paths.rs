//! The paths that no command of an agent may see.

use std::path::{Path, PathBuf};

use chorus_config::Config;

/// Returns paths that commands must not see wherever they lie: the socket, the configuration, files with keys.
#[must_use]
pub fn hidden_paths(socket: &Path, file: &Path, config: &Config) -> Vec<PathBuf> {
    let keys = config.providers.values().filter_map(|provider| provider.key.file()).map(Path::to_owned);
    let token = config.discord.token.file().map(Path::to_owned);
    let servers = config.mcp.values().filter_map(|server| server.token_file()).map(Path::to_owned);
    let own = [socket.to_owned(), file.to_owned()];
    let store = [&config.store.url, &config.store.sessions.key].into_iter().filter_map(|source| source.file());
    let shared = config.store.sessions.path.iter().cloned();
    own.into_iter()
        .chain(config.cluster.key.clone())
        .chain(store.map(Path::to_owned))
        .chain(shared)
        .chain(config.cluster.workspace_root.clone())
        .chain(keys)
        .chain(token)
        .chain(servers)
        .chain(config.traces.headers.file().map(Path::to_owned))
        .collect()
}
