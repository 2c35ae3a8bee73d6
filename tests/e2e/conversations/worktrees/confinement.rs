//! Access of a command of a conversation with a worktree to the repository, with the real git.

use std::fs;
use std::os::unix::fs::symlink;

use chorus_proto::methods::agent::{Config, ConfigParams};

use chorus_proto::methods::context::{Save, SaveParams};

use super::*;
use crate::sandbox::each_sandbox;

/// Starts the agent `a` with the conversation `review`, by each sandbox that this machine has.
fn each_fixture() -> Vec<Fixture> {
    let started = each_sandbox();
    for fixture in &started {
        prepare(fixture);
        open(&mut fixture.client(), "review");
    }
    started
}

#[test]
fn a_command_commits_on_its_branch_and_reaches_nothing_else_of_the_repository() {
    for fixture in each_fixture() {
        write(&fixture, "main", "f", "of main\n");
        commit(&fixture, "main", "First");
        let workspace = fixture.workspace("a");
        let before = head(&fixture, "main");
        let (config, hooks) = (fs::read(workspace.join(".git/config")).expect("a file"), workspace.join(".git/hooks"));
        let commit = "echo of the review >f && git commit -qam 'In the sandbox' && git log -1 --format=%s && \
                      git branch conversation/review/second && git status --porcelain";
        assert_eq!(bash(&fixture, "review", commit).0, "In the sandbox\n[exit status 0]");
        assert_eq!(git(&workspace, &["log", "-1", "--format=%s", "conversation/review/work"]), "In the sandbox");
        let common = workspace.join(".git");
        let common = common.display();
        for forbidden in [
            "git update-ref refs/heads/main HEAD".to_owned(),
            "git branch -f main HEAD".to_owned(),
            "git branch topic".to_owned(),
            "git tag v1".to_owned(),
            "git branch conversation/other/work".to_owned(),
            "git config user.name x".to_owned(),
            "git worktree add ../second".to_owned(),
            "git pack-refs --all".to_owned(),
            format!("echo x >{common}/config"),
            "git gc -q".to_owned(),
            format!("mv x {common}/config || git config --unset core.bare"),
            format!("mv {common} {common}-away"),
            format!("echo $(git rev-parse HEAD) >{common}/refs/heads/main"),
            format!("touch {common}/HEAD"),
            format!("mv {common}/refs/heads {common}/refs/away"),
            format!("rm {common}/index"),
        ] {
            let (text, is_error) = bash(&fixture, "review", &forbidden);
            assert!(is_error, "{forbidden}: {text}");
        }
        // What is written beside the parts is gone with the command.
        bash(
            &fixture,
            "review",
            &format!("mkdir -p {common}/hooks && touch {common}/hooks/post-commit {common}/shallow"),
        );
        bash(&fixture, "review", &format!("echo y >{}/f", workspace.display()));
        assert!(!workspace.join(".git/shallow").exists());
        assert_eq!(read(&workspace.join("f")).as_deref(), Some("of main\n"));
        assert_eq!(head(&fixture, "main"), before);
        assert_eq!(fs::read(workspace.join(".git/config")).expect("a file"), config);
        assert!(!hooks.join("post-commit").exists());
        assert_eq!(status(&fixture), "");
        assert_eq!(
            bash(&fixture, "review", &format!("ls {}", workspace.display())).0,
            "[exit status 0]",
            "files of main"
        );
        let refs = git(&workspace, &["for-each-ref", "--format=%(refname)"]);
        assert_eq!(refs, "refs/heads/conversation/review/second\nrefs/heads/conversation/review/work\nrefs/heads/main");
        git(&workspace, &["fsck", "--strict"]);
    }
}

#[test]
fn git_works_on_the_branch_as_in_any_repository() {
    for fixture in each_fixture() {
        write(&fixture, "main", "f", "1\n");
        commit(&fixture, "main", "One");
        let run = |command: &str| {
            let (text, is_error) = bash(&fixture, "review", command);
            assert!(!is_error && !text.contains("error:") && !text.contains("fatal:"), "{command}: {text}");
        };
        run("echo 2 >f && git commit -qam two");
        run("git checkout -q -b conversation/review/b HEAD~1 && echo 3 >f && git commit -qam three");
        // A cherry-pick and a rebase, each with a conflict.
        run(
            "! git cherry-pick conversation/review/work 2>/dev/null && echo x >f && git add f && git commit -qm picked",
        );
        run("test ! -e $(git rev-parse --git-dir)/CHERRY_PICK_HEAD && git checkout -q conversation/review/work");
        run("! git rebase -q conversation/review/b 2>/dev/null && echo y >f && git add f && \
             GIT_EDITOR=true git rebase --continue && git status --porcelain");
        run("git update-ref -d refs/heads/conversation/review/b && git merge -q main && git reset -q --hard HEAD~1");
        let refs = git(&fixture.workspace("a"), &["for-each-ref", "--format=%(refname)"]);
        assert_eq!(refs, "refs/heads/conversation/review/work\nrefs/heads/main");
        // References that are packed meanwhile stay, and so do those that a command packs.
        git(&fixture.workspace("a"), &["pack-refs", "--all"]);
        run("git log -1 --format=%s && git commit -q --allow-empty -m after && git show-ref --verify refs/heads/main");
        bash(&fixture, "review", "git pack-refs --all");
        assert_eq!(git(&fixture.workspace("a"), &["log", "-1", "--format=%s", "conversation/review/work"]), "after");
    }
}

#[test]
fn a_link_that_the_workspace_puts_into_the_repository_is_not_followed() {
    for fixture in each_fixture() {
        assert!(!bash(&fixture, "review", "git commit -q --allow-empty -m x").1);
        let (repository, outside) = (fixture.workspace("a").join(".git"), fixture.home.temp_dir().join("outside"));
        fs::create_dir_all(&outside).expect("a directory");
        let outside = outside.canonicalize().expect("a path");
        for part in ["refs/heads/conversation/review", "logs/refs/heads/conversation", "objects", "worktrees/review"] {
            let (path, aside) = (repository.join(part), repository.join("aside"));
            fs::rename(&path, &aside).expect("renamed");
            symlink(&outside, &path).expect("a link");
            let (text, is_error) = bash(&fixture, "review", &format!("touch {}/x", path.display()));
            assert!(is_error, "{part}: {text}");
            assert_eq!(fs::read_dir(&outside).expect("a directory").count(), 0, "{part}");
            fs::remove_file(&path).expect("removed");
            fs::rename(&aside, &path).expect("renamed");
        }
        assert_eq!(bash(&fixture, "review", "git commit -q --allow-empty -m y").0, "[exit status 0]");
    }
}

#[test]
fn a_link_that_a_conversation_puts_into_its_git_directory_is_not_followed() {
    for fixture in each_fixture() {
        let config =
            ConfigParams { name: "a".into(), key: Some("checkpoint_workspace".into()), value: Some("true".into()) };
        fixture.client().call::<Config>(&config).expect("agent.config");
        write(&fixture, "main", "f", "of main\n");
        commit(&fixture, "main", "First");
        assert!(!bash(&fixture, "review", "git commit -q --allow-empty -m x").1);
        let repository = fixture.workspace("a").join(".git");
        let files = || ["config", "refs/heads/main"].map(|file| fs::read(repository.join(file)).expect("a file"));
        let before = files();
        // The next call repairs the worktree.
        let plant = "G=$(git rev-parse --git-dir) && ln -sf ../../refs/heads/main $G/locked && \
                     ln -sf ../../config $G/gitdir && ln -sf ../../config $G/commondir && \
                     rm .git && ln -s ../../workspace/.git/config .git";
        let (text, is_error) = bash(&fixture, "review", plant);
        assert!(!is_error, "{text}");
        let link = worktree(&fixture, "review").join(".git");
        assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
        assert_eq!(bash(&fixture, "review", "git status --porcelain").0, "[exit status 0]");
        assert!(files() == before, "the conversation wrote to the repository");
        // The next save commits.
        let plant =
            "ln -sf ../../refs/chorus/checkpoints/planted $(git rev-parse --git-dir)/COMMIT_EDITMSG && echo x >f";
        assert!(!bash(&fixture, "review", plant).1);
        let params =
            SaveParams { agent: Some("a".into()), conversation: Some("review".into()), ..SaveParams::default() };
        let saved = fixture.client().call::<Save>(&params).expect("context.save");
        let is_refused = |warning: &String| warning.contains("COMMIT_EDITMSG");
        assert!(saved.warnings.iter().any(is_refused), "git opens the message: {:?}", saved.warnings);
        assert_eq!(saved.session.header.workspace_commit, None);
        assert!(!repository.join("refs/chorus/checkpoints/planted").exists());
        git(&fixture.workspace("a"), &["fsck", "--strict"]);
    }
}
