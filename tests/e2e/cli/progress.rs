//! Long work: the bar on a terminal, `progress` for other clients, and Ctrl-C, which leaves everything whole and says how to continue.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};

use chorus_proto::methods::doctor::{Doctor, DoctorParams};
use chorus_proto::methods::search::{Search, SearchParams, SearchResult};
use chorus_proto::methods::trash::{Empty, EmptyParams};
use chorus_proto::{Client, Method};
use chorus_tests::bulk_data::copy_session;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, Daemon, Home, InteractiveCommand, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::home;

/// Sessions or files of a test: more than a moment's work, in a build for tests.
const MANY: usize = 600;

/// Writes transcripts of other programs; returns their directory.
fn write_transcripts(home: &Home) -> PathBuf {
    let dir = home.temp_dir().join("transcripts");
    fs::create_dir_all(&dir).expect("a directory");
    for number in 0..MANY {
        let line = json!({
            "type": "user", "uuid": format!("{number}"), "sessionId": format!("conversation-{number}"),
            "timestamp": "2026-03-02T15:10:04Z", "message": {"role": "user", "content": format!("question {number}")},
        });
        fs::write(dir.join(format!("{number}.jsonl")), format!("{line}\n")).expect("a transcript");
    }
    dir
}

/// Starts a daemon whose agent `a` has `MANY` sessions besides the first.
fn with_sessions() -> (Home, Daemon) {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "a plain question");
    let session = client.save("a", "first").header.session_id;
    daemon.terminate();
    copy_session(&home, "a", &session, MANY);
    let daemon = Daemon::start(&home);
    wait_until("the sessions", DEADLINE, || (session_count(&home) == MANY + 1).then_some(()));
    (home, daemon)
}

fn session_count(home: &Home) -> usize {
    let history = chorusctl(home, ["history", "--all-agents", "--json", "--limit", "1"]).expect_json();
    usize::try_from(history["total"].as_u64().expect("a number")).expect("small")
}

/// Starts a command on a terminal.
fn on_terminal(home: &Home, columns: u16, args: &[&str]) -> InteractiveCommand {
    let mut command = home.command(home.bins.chorusctl);
    command.env("NO_COLOR", "1").args(args);
    InteractiveCommand::on_terminal_of(&command, columns, 24)
}

/// Returns the texts that were drawn one over the other.
fn drawn(shown: &str) -> Vec<String> {
    let shown = shown.replace("\x1b[?7l", "").replace("\x1b[?7h", "");
    shown.replace('\x1b', "\r").split('\r').map(|line| line.trim_end_matches("^C").trim_end().to_owned()).collect()
}

/// Calls `M` and returns the progress that the daemon reported: done, total and unit.
fn progress_of<M: Method>(client: &mut Client, params: &M::Params) -> (Vec<(u64, u64, String)>, Value) {
    let mut reports = Vec::new();
    let raw = client.call_raw(M::NAME, params, &mut |at| reports.push((at.done, at.total, at.unit)));
    (reports, serde_json::from_str(raw.expect("an answer").get()).expect("JSON"))
}

#[test]
fn a_bar_shows_rate_and_time_left_and_ctrl_c_says_how_to_continue() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    let dir = write_transcripts(&home);
    let args = ["--agent", "a", "import", &*dir.to_string_lossy()];
    let mut import = on_terminal(&home, 80, &args);
    import.stdout.wait_for(" left");
    import.type_text("\x03");
    let (status, shown, _) = import.wait_for_exit();
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{shown}");
    let lines = drawn(&shown);
    let bar = lines.iter().rfind(|line| line.ends_with(" left")).unwrap_or_else(|| panic!("no bar in {lines:?}"));
    assert!(
        bar.contains("import  ")
            && bar.contains("─")
            && bar.contains(" %  importing 600 files, ")
            && bar.contains("/s, "),
        "{bar}"
    );
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:?}");
    let words = lines.iter().find_map(|line| line.strip_prefix("[Kinterrupted after ")).expect("its last words");
    let done: usize = words.strip_suffix(" of 600 files").expect("the total").parse().expect("a number");
    assert!(shown.contains("hint: run the same command again; nothing is imported twice"), "{shown}");
    // The file that was being imported may have been imported.
    let imported = session_count(&home);
    assert!(done > 0 && (done..=done + 1).contains(&imported), "{done} said, {imported} there");
    chorusctl(&home, args).expect_success();
    assert_eq!(session_count(&home), MANY);
}

#[test]
fn an_interrupted_export_leaves_whole_files_and_is_continued() {
    let (home, _daemon) = with_sessions();
    let dir = home.temp_dir().join("export");
    let args = ["--agent", "a", "session", "export", "--output", &*dir.to_string_lossy()];
    let export = on_terminal(&home, 80, &args);
    wait_until("some files", DEADLINE, || (files(&dir).len() > 3).then_some(()));
    export.interrupt();
    let (status, shown, _) = { export }.wait_for_exit();
    let written = files(&dir);
    if status.signal().is_some() {
        let advice = "hint: the files that are there are complete; the same command writes the rest";
        assert!(shown.contains("interrupted") && shown.replace("\r\n      ", " ").contains(advice), "{shown}");
    } else {
        assert_eq!(written.len(), MANY + 1, "it was interrupted too late: {shown}");
    }
    for file in &written {
        let text = fs::read_to_string(file).expect("a file");
        assert!(text.contains("a plain question") && text.ends_with('\n'), "{}", file.display());
    }
    chorusctl(&home, args).expect_success();
    assert_eq!(files(&dir).len(), MANY + 1);
}

/// Returns the files in a directory that have no dot at the start of their name.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let shown = entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
    shown.map(|entry| entry.path()).collect()
}

#[test]
fn an_interrupted_export_of_an_agent_leaves_no_part_of_a_file() {
    let (home, _daemon) = with_sessions();
    let file = home.temp_dir().join("a.agent.tar");
    fs::write(home.agent_dir("a").join("workspace/large"), vec![b'x'; 30 << 20]).expect("a large file");
    let args = ["agent", "export", "a", "--output", &*file.to_string_lossy()];
    let export = on_terminal(&home, 80, &args);
    let is_temporary = |name: &str| name.starts_with(".a.agent.tar.");
    let temporary = || {
        let names = fs::read_dir(home.temp_dir()).expect("a directory").flatten().map(|entry| entry.file_name());
        names.filter(|name| is_temporary(&name.to_string_lossy())).count()
    };
    wait_until("a part of the file", DEADLINE, || (temporary() > 0 || file.exists()).then_some(()));
    export.interrupt();
    let (status, shown, _) = { export }.wait_for_exit();
    assert_eq!(temporary(), 0, "{shown}");
    assert_eq!(file.exists(), status.signal().is_none(), "{status}: {shown}");
    chorusctl(&home, args).expect_success();
    assert!(file.exists());
}

#[test]
fn the_daemon_completes_a_backup_whose_client_is_interrupted() {
    let (home, _daemon) = with_sessions();
    let dir = home.temp_dir().join("backup");
    let mut backup = on_terminal(&home, 80, &["backup", &*dir.to_string_lossy()]);
    wait_until("a part of the backup", DEADLINE, || {
        (fs::read_dir(dir.join("objects")).is_ok_and(|objects| objects.count() > 3)).then_some(())
    });
    backup.type_text("\x03");
    let (_, shown, _) = backup.wait_for_exit();
    wait_until("a whole backup", DEADLINE, || {
        let verified = chorusctl(&home, ["backup", "verify", &*dir.to_string_lossy(), "--json"]);
        (verified.status == 0).then_some(())
    });
    assert!(!shown.contains("error"), "{shown}");
}

#[test]
fn the_daemon_reports_how_far_a_rebuild_and_the_trash_are() {
    let (home, daemon) = with_sessions();
    let mut client = daemon.client();
    let params = DoctorParams { rebuild: true, ..DoctorParams::default() };
    let (reports, result) = progress_of::<Doctor>(&mut client, &params);
    assert_eq!(result["rebuilt"]["sessions"], MANY + 1);
    assert_rising(&reports, MANY as u64 + 1, "sessions");
    for session in
        chorusctl(&home, ["history", "--all-agents", "--format", "jsonl", "--limit", "40"]).expect_success().lines()
    {
        let session: Value = serde_json::from_str(session).expect("JSON");
        chorusctl(&home, ["rm", session["id"].as_str().expect("an id")]).expect_success();
    }
    let (reports, result) = progress_of::<Empty>(&mut client, &EmptyParams::default());
    assert_eq!(result["entries"].as_array().map(Vec::len), Some(40));
    assert_rising(&reports, 40, "items");
}

/// Fails unless the reports come one after the other, below a total that does not change.
fn assert_rising(reports: &[(u64, u64, String)], total: u64, unit: &str) {
    assert!(reports.len() > 10, "{reports:?}");
    assert!(reports.is_sorted_by_key(|(done, ..)| *done), "{reports:?}");
    assert!(reports.iter().all(|at| at.0 <= total && at.1 == total && at.2 == unit), "{reports:?}");
}

#[test]
fn a_rebuild_without_a_daemon_ends_with_its_client_and_leaves_the_index() {
    let (home, daemon) = with_sessions();
    daemon.terminate();
    let rebuild = on_terminal(&home, 80, &["doctor", "--rebuild"]);
    wait_until("its process", DEADLINE, || child_of(rebuild.pid()));
    let child = child_of(rebuild.pid());
    rebuild.interrupt();
    let (status, shown, _) = { rebuild }.wait_for_exit();
    if status.signal().is_some() {
        assert!(shown.contains("hint: the index is as it was; run the same command again"), "{shown}");
    }
    if let Some(child) = child {
        wait_until("the end of its process", DEADLINE, || {
            (!Path::new(&format!("/proc/{child}/stat")).exists()).then_some(())
        });
    }
    let text = chorusctl(&home, ["doctor", "--rebuild"]).expect_success();
    assert!(text.contains("rebuilt: 1 agent, 601 sessions"), "{text}");
}

/// Returns a child of a process, which `setsid` has replaced by the command.
fn child_of(process: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

#[test]
fn a_search_waits_for_the_index_if_it_is_asked_to() {
    let (home, daemon) = with_sessions();
    daemon.terminate();
    fs::remove_dir_all(home.path.join("index")).expect("the index");
    let daemon = Daemon::start(&home);
    let params = SearchParams {
        query: "plain question".into(),
        agent: Some("a".into()),
        wait: true,
        limit: Some(100),
        ..SearchParams::default()
    };
    let (reports, result) = progress_of::<Search>(&mut daemon.client(), &params);
    let result: SearchResult = serde_json::from_value(result).expect("a result");
    assert!(result.index.indexed as usize > MANY && result.index.total == result.index.indexed, "{:?}", result.index);
    assert!(reports.iter().all(|at| at.0 <= at.1 && at.2 == "conversations"), "{reports:?}");
    let known = result.index.total;
    assert!(reports.iter().all(|at| at.1 <= known), "some are counted twice: {reports:?}");
    daemon.terminate();
    fs::remove_dir_all(home.path.join("index")).expect("the index");
    let _daemon = Daemon::start(&home);
    let found = chorusctl(&home, ["--agent", "a", "search", "plain", "question", "--wait", "--json"]).expect_json();
    assert_eq!(found["index"]["total"], found["index"]["indexed"], "{}", found["index"]);
    assert!(found["index"]["indexed"].as_u64() > Some(MANY as u64), "{}", found["index"]);
}

#[test]
fn the_bar_of_a_search_that_waits_is_there_from_the_start() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "a plain question");
    let mut search = on_terminal(&home, 80, &["--agent", "a", "search", "plain", "--wait"]);
    let (status, shown, _) = search.wait_for_exit();
    assert!(status.success() && shown.contains("plain question"), "{shown}");
    assert!(drawn(&shown).iter().any(|line| line.contains("search index  indexing")), "{shown}");
}

#[test]
fn a_narrower_terminal_keeps_no_pieces_of_a_bar() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    let dir = write_transcripts(&home);
    let mut import = on_terminal(&home, 80, &["--agent", "a", "import", &*dir.to_string_lossy()]);
    import.stdout.wait_for(" left");
    import.resize(30, 24);
    // The line of about 60 columns is on three rows now.
    let cleared = ["\r\x1b[1A\x1b[J", "\r\x1b[2A\x1b[J"];
    wait_until("the rows to be cleared", DEADLINE, || {
        let shown = import.stdout.text();
        cleared.iter().any(|cleared| shown.contains(cleared)).then_some(())
    });
    import.type_text("\x03");
    let (_, shown, _) = import.wait_for_exit();
    let at = cleared.iter().filter_map(|cleared| shown.find(cleared)).min().expect("the rows were cleared");
    let bars = drawn(&shown[at..]).into_iter().filter(|line| line.contains('━') || line.contains('─'));
    assert!(
        bars.clone().all(|line| line.trim_start_matches("[J").chars().count() < 30),
        "{:?}",
        bars.collect::<Vec<_>>()
    );
}
