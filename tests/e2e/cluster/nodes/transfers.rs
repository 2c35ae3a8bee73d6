//! Imports and exports by a client of another node.

use std::fs;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;

use super::{Cluster, start_all};

#[test]
fn an_agent_of_another_node_is_exported_and_transcripts_are_imported_to_it() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let daemons = start_all(&homes);
    let mut a = daemons[0].client();
    a.init("x");
    a.append("x", "the message in the file");
    a.save("x", "kept");
    let files = tempfile::tempdir().expect("a directory");
    let archive = files.path().join("x.tar");
    let path = archive.display().to_string();
    chorusctl(&homes[1], ["agent", "export", "x", "--output", &path]).expect_success();
    assert!(fs::metadata(&archive).expect("the archive").len() > 500);
    let transcript = files.path().join("chat.json");
    fs::write(
        &transcript,
        r#"[{"role":"user","content":"imported words"},{"role":"assistant","content":"an answer"}]"#,
    )
    .expect("a transcript");
    let path = transcript.display().to_string();
    chorusctl(&homes[1], ["import", &path, "--agent", "x"]).expect_success();
    assert_eq!(a.history("x").len(), 2);
}

#[test]
fn the_name_of_an_agent_is_taken_though_nobody_has_it_and_its_directory_is_here() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, b] = start_all(&homes);
    let mut client = a.client();
    client.init("x");
    client.append("x", "one");
    drop(client);
    assert!(a.terminate().success());
    fs::create_dir_all(homes[1].agent_dir("x").join("docs")).expect("a directory that is left over");
    let said = chorusctl(&homes[1], ["agent", "init", "x"]);
    let said = said.expect_failure(7);
    assert!(said.contains("already exists"), "{said}");
    assert_eq!(b.client().message_texts("x"), ["one"]);
}

#[test]
fn a_name_is_free_as_soon_as_its_agent_was_destroyed_through_another_node() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let _daemons = start_all(&homes);
    chorusctl(&homes[0], ["agent", "init", "x"]).expect_success();
    chorusctl(&homes[1], ["agent", "destroy", "x", "--yes"]).expect_success();
    chorusctl(&homes[1], ["agent", "init", "x"]).expect_success();
}
