//! Resolves the address of a remote and checks that it may be accessed.

use std::path::{Path, PathBuf};

use super::GitResult;
use super::run::Git;

/// The address of a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RemoteAddress {
    /// An `https://` or `git://` URL.
    Network { scheme: &'static str, url: String },
    /// A repository in the workspace.
    File(PathBuf),
}

impl RemoteAddress {
    /// Returns the only protocol that git may use.
    #[must_use]
    pub(super) fn protocol(&self) -> &'static str {
        match self {
            Self::Network { scheme, .. } => scheme,
            Self::File(_) => "file",
        }
    }

    /// Returns the address for people, without credentials.
    #[must_use]
    pub(super) fn without_credentials(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Network { url, .. } => strip_credentials(url),
        }
    }
}

/// Removes the user and password from a URL.
pub(super) fn strip_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    // Only in the authority: a later `@` belongs to the path and must not make the rest pass for the host.
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://…@{host}{path}"),
        None => url.to_owned(),
    }
}

/// Returns the push URL of a remote as configured; rewriting by `insteadOf` is not applied.
///
/// # Errors
/// The remote does not exist or has several URLs.
pub(super) async fn push_url(git: &Git<'_>, remote: &str) -> GitResult<String> {
    let name = remote.replace('.', "\\.");
    for key in ["pushurl", "url"] {
        let said = git.run(["config", "--includes", "--get-regexp", &format!("^remote\\.{name}\\.{key}$")]).await?;
        let begin = format!("remote.{remote}.{key} ");
        let urls: Vec<&str> = said.text.lines().filter_map(|line| line.strip_prefix(&begin)).collect();
        match urls[..] {
            [] => {}
            [url] => return Ok(url.to_owned()),
            _ => return Err(format!("the remote {remote} has {} addresses; git tools support only one", urls.len())),
        }
    }
    let known = git.run(["remote"]).await?.text.lines().collect::<Vec<_>>().join(", ");
    let known = if known.is_empty() { "no remotes".to_owned() } else { format!("remotes: {known}") };
    Err(format!("remote {remote} does not exist ({known}); add it with `git remote add` in bash"))
}

/// Parses a remote's URL and checks that git tools support it.
pub(super) fn parse_address(url: &str, workspace: &Path) -> GitResult<RemoteAddress> {
    let shown = strip_credentials(url);
    let shown: String = shown.chars().take(200).collect();
    if url.is_empty() || url.len() > 1000 || !url.chars().all(|c| c.is_ascii_graphic()) || url.starts_with('-') {
        return Err(format!("unsupported address {shown:?}"));
    }
    for scheme in ["https", "git"] {
        if let Some(rest) = url.strip_prefix(scheme).and_then(|rest| rest.strip_prefix("://")) {
            let host = rest.split('/').next().unwrap_or_default();
            let host = host.rsplit('@').next().unwrap_or_default();
            if host.is_empty() || host.starts_with('-') || !rest.contains('/') {
                return Err(format!("the address {shown:?} has no host or no path"));
            }
            return Ok(RemoteAddress::Network { scheme, url: url.to_owned() });
        }
    }
    let local = url.strip_prefix("file://").unwrap_or(url);
    let scp = || url.split('/').next().is_some_and(|first| first.contains(':'));
    if url.starts_with("ssh://")
        || url.starts_with("git+ssh://")
        || (!url.contains("://") && !url.contains("::") && scp())
    {
        return Err(format!(
            "{shown} needs ssh, but agents have no access to ssh keys; ask the user to push, or set an https \
             address for the remote"
        ));
    }
    if local.contains("://") || local.contains("::") {
        return Err(format!("{shown} is not https, git, or a repository in the workspace"));
    }
    let inside = workspace.join(local).canonicalize().ok().zip(workspace.canonicalize().ok());
    match inside {
        Some((path, workspace)) if path.starts_with(&workspace) => Ok(RemoteAddress::File(path)),
        _ => Err(format!("{shown} is not a repository in the workspace")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_some_addresses_are_gone_to() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = dir.path().join("workspace");
        std::fs::create_dir_all(workspace.join("bare.git")).unwrap();
        std::fs::create_dir(dir.path().join("outside")).unwrap();
        std::os::unix::fs::symlink("../outside", workspace.join("link")).unwrap();
        let of = |url: &str| parse_address(url, &workspace);
        for good in ["https://example.org/a/b.git", "git://127.0.0.1:9418/a", "https://me:secret@example.org/a"] {
            assert!(matches!(of(good), Ok(RemoteAddress::Network { .. })), "{good}");
        }
        let inside = workspace.canonicalize().unwrap().join("bare.git");
        for good in ["bare.git", "./bare.git", &inside.display().to_string(), &format!("file://{}", inside.display())] {
            assert_eq!(of(good), Ok(RemoteAddress::File(inside.clone())), "{good}");
        }
        for bad in [
            "",
            "-x",
            "--upload-pack=x",
            "ext::sh -c x",
            "ext::sh",
            "fd::3",
            "http://example.org/a",
            "ssh://example.org/a",
            "git@example.org:a/b.git",
            "git+ssh://a/b",
            "ftp://a/b",
            "https://",
            "https:///a",
            "https://-x/a",
            "https://a",
            "link",
            "../outside",
            "/etc",
            "file:///etc",
            "missing.git",
            "https://a/\nb",
            "bare.git\u{202e}",
            "transport::https://a/b",
        ] {
            assert!(of(bad).is_err(), "{bad}");
        }
        let shown = of("https://me:secret@example.org/a").unwrap().without_credentials();
        assert_eq!(shown, "https://…@example.org/a");
        assert!(!of("ssh://me:secret@example.org/a").unwrap_err().contains("secret"));
    }
}
