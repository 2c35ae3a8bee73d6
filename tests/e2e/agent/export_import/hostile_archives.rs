//! Archives that mean harm, or did not come whole: nothing is made of them.

use std::fs;
use std::path::Path;

use chorus_engine::agent_archive::{ArchiveWriter, ExportedAgent, Manifest, SCHEMA, SCHEMA_WITH_SCHEDULES};
use chorus_proto::{Client, ErrorKind};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::small_disk::SmallDisk;
use chorus_tests::{Daemon, Home};
use uuid::Uuid;

use super::{export, import};
use crate::home;
use crate::tools::git::git;

/// Nothing of an import is there.
#[track_caller]
fn nothing_was_made(home: &Home, client: &mut Client, why: &str) {
    let left: Vec<_> =
        fs::read_dir(home.path.join("agents")).expect("agents/").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["a"], "{why}");
    assert!(client.call::<chorus_proto::methods::agent::List>(&Default::default()).expect("a list").agents.len() == 1);
}

fn manifest(members: Vec<chorus_engine::agent_archive::Member>) -> Manifest {
    let agent = ExportedAgent { id: Uuid::from_u128(7), name: "b".into() };
    let exported_at = "2026-01-01T00:00:00Z".parse().expect("a time");
    Manifest { schema: SCHEMA, chorus: "0.1.0".into(), exported_at, agent, members }
}

const CONFIG: &str = r#"{"id":"00000000-0000-4000-8000-000000000007","name":"b","created_at":"2026-01-01T00:00:00Z"}"#;

/// An archive of these members, as an export would write it.
fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ArchiveWriter::new(Vec::new());
    for (path, bytes) in members {
        writer.add(path, bytes.len() as u64, *bytes).expect("a member");
    }
    writer.finish(manifest).expect("an archive")
}

/// Members behind each other, whatever they are, and no manifest.
fn raw(members: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, kind, bytes) in members {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_size(bytes.len() as u64);
        let name = &mut header.as_old_mut().name;
        name[..path.len()].copy_from_slice(path.as_bytes());
        if matches!(kind, tar::EntryType::Symlink | tar::EntryType::Link) {
            header.set_link_name("/etc/passwd").expect("a link");
        }
        header.set_cksum();
        builder.append(&header, *bytes).expect("a member");
    }
    builder.into_inner().expect("an archive")
}

#[test]
fn what_is_not_as_an_export_writes_it_is_refused_before_anything_is_written() {
    use tar::EntryType::{Block, Char, Continuous, Directory, Fifo, GNUSparse, Link, Regular, Symlink, XHeader};
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "hello");
    let whole = export(&mut client, "a").0;
    let mut cases: Vec<(String, Vec<u8>)> = Vec::new();
    for path in ["../x", "/etc/cron.d/x", "docs/../../x", "workspace/.git/config", "sessions/../agent.json", "tasks/1"]
    {
        cases.push((path.into(), raw(&[("agent.json", Regular, CONFIG.as_bytes()), (path, Regular, b"x")])));
    }
    for kind in [Link, Symlink, Char, Block, Directory, Fifo, Continuous, GNUSparse, XHeader] {
        cases.push((format!("{kind:?}"), raw(&[("docs/x", kind, b"")])));
    }
    cases.push(("twice".into(), raw(&[("agent.json", Regular, b"{}"), ("agent.json", Regular, b"{}")])));
    cases.push(("no manifest".into(), raw(&[("agent.json", Regular, CONFIG.as_bytes())])));
    cases.push(("nothing".into(), Vec::new()));
    cases.push(("text".into(), b"hello".repeat(1000)));
    cases.push(("gzip".into(), [&[0x1f, 0x8b, 8][..], &whole].concat()));
    for part in [whole.len() / 3, whole.len() / 2, whole.len() - 2048] {
        cases.push((format!("cut at {part}"), whole[..part].to_vec()));
    }
    // One bit, in what is hashed and in what is not.
    let at = whole.windows(5).position(|bytes| bytes == b"hello").expect("the message");
    let mut bent = whole.clone();
    bent[at] ^= 1;
    cases.push(("bent".into(), bent));
    let empty = |paths: &[&str]| archive(&paths.iter().map(|path| (*path, &b""[..])).collect::<Vec<_>>());
    cases.push(("no workspace".into(), archive(&[("agent.json", CONFIG.as_bytes())])));
    cases.push(("no configuration".into(), empty(&["workspace.bundle"])));
    cases.push((
        "no bundle".into(),
        archive(&[("agent.json", CONFIG.as_bytes()), ("workspace.bundle", b"# v2 git bundle\n")]),
    ));
    cases.push(("bad configuration".into(), archive(&[("agent.json", b"{\"id\":1}"), ("workspace.bundle", b"")])));
    let memory = format!("{{\"text\":\"{}\"}}\n", "x".repeat(3000));
    let members = [("agent.json", CONFIG.as_bytes()), ("memory.jsonl", memory.as_bytes()), ("workspace.bundle", b"")];
    cases.push(("bad memory".into(), archive(&members)));
    for (why, bytes) in cases {
        let kind = expect_error_kind(import(&mut client, &bytes, Some("b")));
        let told = [ErrorKind::InvalidParams, ErrorKind::InvalidConfig, ErrorKind::GitFailed, ErrorKind::StorageFailed];
        assert!(told.contains(&kind), "{why}: {kind:?}");
        nothing_was_made(&home, &mut client, &why);
    }
    import(&mut client, &whole, Some("b")).expect("the whole one comes in");
}

#[test]
fn an_archive_of_a_newer_version_is_refused_by_name() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let mut writer = ArchiveWriter::new(Vec::new());
    writer.add("agent.json", 2, &b"{}"[..]).expect("a member");
    let bytes = writer
        .finish(|members| Manifest { schema: SCHEMA_WITH_SCHEDULES + 1, ..manifest(members) })
        .expect("an archive");
    let file = home.temp_dir().join("newer.tar");
    fs::write(&file, bytes).expect("a file");
    let said = chorusctl(&home, ["agent", "import", file.to_str().expect("UTF-8"), "--as", "b"]);
    assert!(said.expect_failure_with_hint(1).contains("upgrade Chorus"), "{}", said.stderr);
    nothing_was_made(&home, &mut client, "newer");
}

/// A bundle of the repository at `dir` with what an import looks for.
fn bundle(dir: &Path, head: &str) -> Vec<u8> {
    let tree = git(dir, &["rev-parse", "HEAD^{tree}"]);
    for name in ["files", "index"] {
        let commit = git(dir, &["commit-tree", "-m", head, &tree]);
        git(dir, &["update-ref", &format!("refs/chorus/{name}"), &commit]);
    }
    git(dir, &["bundle", "create", "--quiet", "../b.bundle", "--all"]);
    fs::read(dir.join("../b.bundle")).expect("the bundle")
}

#[test]
fn a_bundle_brings_no_settings_and_nothing_that_runs_or_leads_out() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let dir = home.temp_dir().join("made");
    fs::create_dir(&dir).expect("a directory");
    git(&dir, &["init", "--quiet", "--initial-branch=main"]);
    let mark = home.temp_dir().join("ran");
    fs::write(dir.join(".gitattributes"), "* filter=evil diff=evil\n").expect("a file");
    fs::write(dir.join(".gitmodules"), "[submodule \"x\"]\n\tpath = x\n\turl = ext::touch ran\n").expect("a file");
    fs::create_dir_all(dir.join("hooks")).expect("a directory");
    fs::write(dir.join("hooks/post-checkout"), format!("#!/bin/sh\ntouch {}\n", mark.display())).expect("a file");
    std::os::unix::fs::symlink("../../..", dir.join("up")).expect("a link");
    git(&dir, &["add", "--all"]);
    git(&dir, &["commit", "--quiet", "--message=x"]);
    let with = |bundle: &[u8]| archive(&[("agent.json", CONFIG.as_bytes()), ("workspace.bundle", bundle)]);
    for head in ["refs/heads/main", "ref refs/heads/../../x", "ref refs/heads/--upload-pack=x y", "detached"] {
        let kind = expect_error_kind(import(&mut client, &with(&bundle(&dir, head)), None));
        assert_eq!(kind, ErrorKind::GitFailed, "{head}");
        nothing_was_made(&home, &mut client, head);
    }
    import(&mut client, &with(&bundle(&dir, "ref refs/heads/main")), None).expect("imported");
    let workspace = home.agent_dir("b").join("workspace");
    let config = fs::read_to_string(workspace.join(".git/config")).expect("the configuration");
    assert!(!config.contains("evil") && !config.contains("submodule"), "{config}");
    assert!(!workspace.join(".git/hooks").exists() && !mark.exists());
    assert!(workspace.join("up").symlink_metadata().expect("the link").is_symlink());
}

#[test]
fn files_that_do_not_fit_the_disk_are_refused_before_they_are_written() {
    let home = home();
    home.create();
    let Some(disk) = SmallDisk::mount(&home.path, 96 << 10) else { return };
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let dir = home.temp_dir().join("made");
    fs::create_dir(&dir).expect("a directory");
    git(&dir, &["init", "--quiet", "--initial-branch=main"]);
    fs::write(dir.join("bomb"), vec![0; 48 << 20]).expect("a file");
    git(&dir, &["add", "--all"]);
    git(&dir, &["commit", "--quiet", "--message=x"]);
    let bundle = bundle(&dir, "ref refs/heads/main");
    assert!(bundle.len() < 1 << 20, "it is small on the way");
    let before = disk.free_bytes();
    let bytes = archive(&[("agent.json", CONFIG.as_bytes()), ("workspace.bundle", &bundle)]);
    assert_eq!(expect_error_kind(import(&mut client, &bytes, None)), ErrorKind::DiskFull);
    nothing_was_made(&home, &mut client, "bomb");
    assert!(before - disk.free_bytes() < 2 << 20);
}
