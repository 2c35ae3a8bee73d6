//! The tool `git_merge_request`: opens a merge request with `gh` or `glab`, using the user's login. The program runs
//! outside the sandbox, where the login is. It therefore runs in an empty directory and gets nothing of the workspace
//! but its arguments.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_permissions::Action;
use schemars::JsonSchema;
use serde::Deserialize;

use super::remote_address::{push_url, strip_credentials};
use super::run::Git;
use super::{GitResult, host_command, ref_names};
use crate::tools::ToolContext;
use crate::tools::tool::{Tool, ToolOutcome};

pub(crate) struct GitMergeRequest;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    title: String,
    #[serde(default)]
    description: String,
    /// The target branch.
    target: String,
    /// Default `origin`.
    #[serde(default)]
    remote: Option<String>,
}

impl Tool for GitMergeRequest {
    const NAME: &'static str = "git_merge_request";
    const DESCRIPTION: &'static str =
        "Opens a merge request (pull request) for the current branch, which must be pushed first.";
    const CAN_APPROVE_ALWAYS: bool = false;
    const USES_WORKSPACE: bool = true;
    type Params = Params;

    fn action(params: &Params, _: &ToolContext) -> Result<String, String> {
        ref_names::check_branch(&params.target)?;
        params.remote.iter().try_for_each(|remote| ref_names::check_remote(remote))?;
        let title = params.title.trim();
        if title.is_empty() || title.len() > 256 || title.chars().any(char::is_control) {
            return Err("`title` must be one line of at most 256 bytes".into());
        }
        if params.description.len() > 32 << 10 || params.description.contains('\0') {
            return Err("`description` is longer than 32 KiB, or contains a NUL character".into());
        }
        Ok(Action::GitMergeRequest { target: &params.target }.to_string())
    }

    async fn effective_target(params: &Params, ctx: &ToolContext) -> Option<String> {
        let _alone = ctx.services.git_locks.lock(ctx.agent).await;
        let git = Git::new(ctx).await.ok()?;
        let branch = git.output(["symbolic-ref", "--quiet", "--short", "HEAD"]).await.ok()?;
        let url = push_url(&git, params.remote.as_deref().unwrap_or("origin")).await.ok()?;
        Some(describe_target(&branch, &Project::from_url(&url).ok()?))
    }

    async fn run(params: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        open_merge_request(&params, &ctx).await.map_or_else(ToolOutcome::error, ToolOutcome::success)
    }
}

async fn open_merge_request(params: &Params, ctx: &ToolContext) -> GitResult<String> {
    let remote = params.remote.as_deref().unwrap_or("origin");
    let (branch, url) = {
        let _alone = ctx.services.git_locks.lock(ctx.agent).await;
        let git = Git::new(ctx).await?;
        let branch = git.output(["symbolic-ref", "--quiet", "--short", "HEAD"]).await;
        (
            branch.map_err(|_| "no branch is checked out; switch to one with git_checkout".to_owned())?,
            push_url(&git, remote).await?,
        )
    };
    ref_names::check_branch(&branch)?;
    if branch == params.target {
        return Err(format!("the current branch {branch} is also the target; create another branch with git_checkout"));
    }
    let project = Project::from_url(&url)?;
    ctx.check_target_unchanged(&describe_target(&branch, &project))?;
    let (program, args) =
        project.create_command(&branch, params, &|name| find_program(name, std::env::var_os("PATH")))?;
    let (opened, said) = host_command::run(&program, args, ctx).await?;
    if !opened {
        return Err(format!("no merge request was opened: {said}"));
    }
    Ok(format!(
        "opened a merge request from {branch} into {} at {}/{}\n{said}",
        params.target, project.host, project.path
    ))
}

/// Describes the branch to merge and its repository.
fn describe_target(branch: &str, Project { host, path }: &Project) -> String {
    format!("from {branch} at {host}/{path}")
}

/// A repository on a server.
#[derive(Debug, PartialEq, Eq)]
struct Project {
    host: String,
    /// The owner, or the groups, and the name of the repository.
    path: String,
}

impl Project {
    /// Parses an https or ssh URL.
    fn from_url(url: &str) -> GitResult<Self> {
        let wrong = || format!("the address {} is not a repository on a server", strip_credentials(url));
        let web = ["https://", "ssh://"].iter().find_map(|scheme| url.strip_prefix(scheme));
        let (place, path) = match web {
            Some(rest) => rest.split_once('/'),
            None if url.contains("::") || url.contains("://") => None,
            None => url.split_once(':'),
        }
        .ok_or_else(wrong)?;
        let host = place.rsplit('@').next().unwrap_or(place).split(':').next().unwrap_or_default();
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let part = |part: &str| !part.is_empty() && !part.starts_with(['-', '.']) && part.chars().all(good);
        let whole = part(host) && path.split('/').count() >= 2 && path.split('/').all(part);
        if whole { Ok(Self { host: host.to_owned(), path: path.to_owned() }) } else { Err(wrong()) }
    }

    /// Returns the program that opens a merge request, with its arguments. `find` finds programs.
    fn create_command(
        &self,
        branch: &str,
        Params { title, description, target, .. }: &Params,
        find: &dyn Fn(&str) -> Option<PathBuf>,
    ) -> GitResult<(PathBuf, Vec<String>)> {
        let Self { host, path } = self;
        let known = |variable: &str, usual: &str| {
            let own = std::env::var(variable).is_ok_and(|own| own.trim_start_matches("https://") == *host);
            own || host == usual
        };
        let found = match (known("GITLAB_HOST", "gitlab.com"), known("GH_HOST", "github.com")) {
            (true, _) => find("glab").map(|program| (program, true)),
            (_, true) => find("gh").map(|program| (program, false)),
            // The workspace determines the host, but must not be able to send the user's login to a host of its choice.
            _ => {
                return Err(format!(
                    "{host} is not github.com, gitlab.com, or the daemon's GH_HOST or GITLAB_HOST; ask the user \
                     to open it: from {branch} into {target} at https://{host}/{path}"
                ));
            }
        };
        let (program, gitlab) = found.ok_or_else(|| {
            format!(
                "no program to open merge requests at {host} is installed (gh for GitHub, glab for GitLab); \
             ask the user to open it: from {branch} into {target} at https://{host}/{path}"
            )
        })?;
        let title = title.trim();
        let args = if gitlab {
            let to = ["mr".into(), "create".into(), format!("--repo=https://{host}/{path}"), "--yes".into()];
            let what = [format!("--source-branch={branch}"), format!("--target-branch={target}")];
            let text = [format!("--title={title}"), format!("--description={description}")];
            [&to[..], &what, &text].concat()
        } else {
            let to = ["pr".into(), "create".into(), format!("--repo={host}/{path}")];
            let what = [format!("--head={branch}"), format!("--base={target}")];
            let text = [format!("--title={title}"), format!("--body={description}")];
            [&to[..], &what, &text].concat()
        };
        Ok((program, args))
    }
}

/// Finds an executable in PATH.
fn find_program(name: &str, path: Option<OsString>) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let runs = |at: &Path| at.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    let path = path?;
    let mut all = std::env::split_paths(&path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name));
    all.find(|at| runs(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_to_one_repository() {
        let of = |url: &str| Project::from_url(url).map(|project| format!("{} {}", project.host, project.path));
        for (url, project) in [
            ("https://github.com/me/it.git", "github.com me/it"),
            ("https://me:secret@gitlab.com/a/b/c", "gitlab.com a/b/c"),
            ("git@github.com:me/it.git", "github.com me/it"),
            ("ssh://git@example.org:2222/me/it/", "example.org me/it"),
        ] {
            assert_eq!(of(url).as_deref(), Ok(project));
        }
        for url in [
            "",
            "/srv/it.git",
            "ext::sh -c x",
            "https://github.com/it",
            "https://-x/a/b",
            "https://a/-x/b",
            "https://a/b/../c",
            "http://a/b/c",
            "file:///a/b",
        ] {
            assert!(of(url).is_err(), "{url}");
        }
    }

    #[test]
    fn what_is_given_passes_for_no_option() {
        let params =
            Params { title: "--web".into(), description: "-x\n--y".into(), target: "main".into(), remote: None };
        let project = Project { host: "github.com".into(), path: "me/it".into() };
        let all = |name: &str| Some(PathBuf::from(format!("/bin/{name}")));
        let (program, args) = project.create_command("topic", &params, &all).unwrap();
        assert_eq!(program, Path::new("/bin/gh"));
        assert_eq!(
            args,
            [
                "pr",
                "create",
                "--repo=github.com/me/it",
                "--head=topic",
                "--base=main",
                "--title=--web",
                "--body=-x\n--y"
            ]
        );
        let elsewhere = Project { host: "evil.example".into(), ..project };
        assert!(elsewhere.create_command("topic", &params, &all).unwrap_err().contains("is not github.com"));
        let project = Project { host: "gitlab.com".into(), ..elsewhere };
        let (program, args) = project.create_command("topic", &params, &all).unwrap();
        assert_eq!((program.as_path(), args[2].as_str()), (Path::new("/bin/glab"), "--repo=https://gitlab.com/me/it"));
        let none = project.create_command("topic", &params, &|_| None).unwrap_err();
        assert!(none.contains("from topic into main at https://gitlab.com/me/it"), "{none}");
    }
}
