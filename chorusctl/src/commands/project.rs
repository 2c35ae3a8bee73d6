//! Projects on the command line: the path of a directory, or a name that agents have.

use std::path::Path;

use crate::app::App;
use crate::error::Error;

/// Returns the absolute path of a directory, without symbolic links, as programs record the one they run in. What is not the
/// path of a directory is the name of a project. A path that does not exist, or no longer, is only made absolute.
#[must_use]
pub fn absolute(project: &str) -> String {
    let is_path = project.contains('/') || matches!(project, "." | "..");
    if !is_path {
        return project.to_owned();
    }
    let path = std::fs::canonicalize(project).or_else(|_| std::path::absolute(Path::new(project)));
    path.ok().and_then(|path| path.into_os_string().into_string().ok()).unwrap_or_else(|| project.to_owned())
}

/// Returns a project as [`absolute`] does, for the machine of the daemon.
///
/// # Errors
/// The daemon is on another machine, and the path would be one of this machine.
pub fn of_daemon(project: Option<&str>, app: &App) -> Result<Option<String>, Error> {
    let Some(project) = project else { return Ok(None) };
    app.check_remote_path(project)?;
    Ok(Some(if app.is_remote() { project.to_owned() } else { absolute(project) }))
}

#[cfg(test)]
mod tests {
    use super::absolute;

    #[test]
    fn only_paths_become_absolute() {
        let here = std::env::current_dir().and_then(std::fs::canonicalize).expect("a directory");
        assert_eq!(absolute("."), here.to_str().expect("UTF-8"));
        assert_eq!(absolute("shop"), "shop");
        assert_eq!(absolute("/nothing/like/it"), "/nothing/like/it");
    }
}
