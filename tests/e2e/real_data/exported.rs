//! Every conversation leaves in every form and comes back with the same roles, texts, calls and times.

use std::fs;

use chorus_proto::Message;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, real_data};

use super::reading::{Said, of_chorus};
use crate::home;

/// Every byte of them, but for pictures, which Markdown only names.
fn whole(messages: &[Message]) -> Vec<String> {
    let line = |message: &Message| {
        let mut message = message.clone();
        message.attachments.iter_mut().for_each(|attachment| attachment.data = None);
        serde_json::to_string(&message).expect("serialises")
    };
    messages.iter().map(line).collect()
}

fn said(messages: &[Message]) -> (Vec<Said>, Vec<jiff::Timestamp>) {
    (of_chorus(messages), messages.iter().map(|message| message.timestamp).collect())
}

#[test]
fn every_conversation_survives_an_export_and_an_import() {
    let Some(folder) = real_data::data_dir() else { return };
    let paths = real_data::conversations(&folder);
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("from");
    let mut import = vec!["--agent", "from", "--quiet", "session", "import"];
    import.extend(paths.iter().map(|path| path.to_str().expect("a path")));
    chorusctl(&home, import).expect_success();
    let mut sessions = client.history("from");
    // As the files will stand.
    sessions.sort_by_key(|session| format!("{}.", session.header.session_id));
    assert!(sessions.len() >= paths.len(), "{}", sessions.len());
    for form in ["json", "jsonl", "md"] {
        let out = home.temp_dir().join(form);
        let to = out.to_str().expect("a path");
        chorusctl(&home, ["--agent", "from", "session", "export", "--as", form, "--output", to]).expect_success();
        client.init(form);
        let files: Vec<_> =
            real_data::files_with_extension(&out, form).iter().map(|path| path.display().to_string()).collect();
        assert_eq!(files.len(), sessions.len());
        let mut import = vec!["--agent", form, "--format", "jsonl", "session", "import"];
        import.extend(files.iter().map(String::as_str));
        let lines = chorusctl(&home, import);
        assert_eq!(lines.stderr, "", "nothing is skipped");
        let imported: Vec<String> = lines
            .expect_success()
            .lines()
            .map(|line| serde_json::from_str::<chorus_proto::Session>(line).expect("a session").header.id.to_string())
            .collect();
        assert_eq!(imported.len(), sessions.len());
        for (session, again) in sessions.iter().zip(imported) {
            let before = client.get_session("from", &session.header.id.to_string()).1;
            let after = client.get_session(form, &again).1;
            assert!(said(&before) == said(&after), "{} differs as {form}", session.header.session_id);
            assert!(whole(&before) == whole(&after), "{} lost something as {form}", session.header.session_id);
        }
        fs::remove_dir_all(out).expect("removed");
    }
}

#[test]
fn every_conversation_is_a_page_of_all_its_messages() {
    let Some(folder) = real_data::data_dir() else { return };
    let paths = [
        real_data::files_with_extension(&folder.join("swe-agent"), "json"),
        real_data::files_with_extension(&folder.join("claude-code"), "jsonl"),
    ]
    .concat();
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let mut import = vec!["--quiet", "session", "import"];
    import.extend(paths.iter().map(|path| path.to_str().expect("a path")));
    chorusctl(&home, import).expect_success();
    let out = home.temp_dir().join("pages");
    chorusctl(&home, ["session", "export", "--as", "html", "--output", out.to_str().expect("a path")]).expect_success();
    for session in client.history("a") {
        let page = out.join(format!("{}.html", session.header.session_id));
        let page = fs::read_to_string(page).expect("a page");
        assert_eq!(
            page.matches("\n<article ").count() as u64,
            session.header.message_count,
            "{}",
            session.header.session_id
        );
    }
}
