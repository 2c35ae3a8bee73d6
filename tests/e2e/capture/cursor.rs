//! Transcripts of Cursor's agent. They have no ids, no project and mostly no times: these are told by where and when they were written.

use std::fs::FileTimes;
use std::time::{Duration, SystemTime};

use chorus_tests::{DEADLINE, Daemon, wait_until};

use super::*;

const ID: &str = "7d444840-9dc0-41d1-b245-5ffdce74fad2";

const SUBAGENT: &str = "39297bd7-7b95-4d7c-9d48-64bcd97e4e82";

/// 2026-03-01T09:00:00Z.
const WRITTEN: Duration = Duration::from_secs(1_772_355_600);

fn lines(of: &[(&str, &str)]) -> String {
    let line =
        |(role, text): &(&str, &str)| json!({"role": role, "message": {"content": [{"type": "text", "text": text}]}});
    of.iter().map(|said| format!("{}\n", line(said))).collect()
}

/// Writes a transcript of a project, as of [`WRITTEN`].
fn write(home: &Home, project: &str, name: &str, text: &str) -> PathBuf {
    let path = home.user_home.join(".cursor/projects").join(project).join("agent-transcripts").join(name);
    fs::create_dir_all(path.parent().expect("a directory")).expect("created");
    fs::write(&path, text).expect("written");
    let file = File::options().write(true).open(&path).expect("the transcript");
    file.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + WRITTEN)).expect("the time");
    path
}

/// The name that Cursor gives to the directory of a project.
fn name_of(project: &Path) -> String {
    let parts = project.to_str().expect("UTF-8").split(|c: char| !c.is_ascii_alphanumeric());
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

fn wait_for(client: &mut Client, conversation: &str) -> Session {
    wait_until(conversation, DEADLINE, || {
        captured(client)
            .into_iter()
            .find(|session| session.header.source.as_ref().is_some_and(|of| of.conversation == conversation))
    })
}

#[test]
fn subagents_are_linked_and_times_are_those_of_the_file() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    // The subagent wrote last: that it is read later does not depend on times.
    write(&home, "srv-shop", &format!("{ID}/{ID}.jsonl"), &lines(&[("user", "Count them"), ("assistant", "Three.")]));
    let of_subagent = format!("{ID}/subagents/{SUBAGENT}.jsonl");
    let subagent = write(&home, "srv-shop", &of_subagent, &lines(&[("user", "Count"), ("assistant", "three")]));
    File::options().write(true).open(subagent).and_then(|file| file.set_modified(SystemTime::now())).expect("the time");
    chorusctl(&home, ["capture", "on", "cursor"]).expect_success();
    let main = wait_for(&mut client, ID).header;
    assert_eq!((main.started_at.to_string(), main.id.to_string()), ("2026-03-01T09:00:00Z".into(), ID.into()));
    assert_eq!(main.source.expect("a source").ended_at.to_string(), "2026-03-01T09:00:00Z");
    let child = wait_for(&mut client, &format!("{ID}/{SUBAGENT}")).header;
    assert_eq!((child.parent_id, child.id.to_string()), (Some(main.id), SUBAGENT.into()));
    assert_eq!(captured(&mut client).len(), 2);
}

#[test]
fn a_project_that_is_excluded_is_known_by_the_name_of_its_directory() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let dir = home.temp_dir().canonicalize().expect("a path");
    let (shop, diary) = (dir.join("my.shop"), dir.join("diary"));
    for project in [&shop, &diary] {
        fs::create_dir_all(project).expect("created");
    }
    let talk = lines(&[("user", "Count them"), ("assistant", "Three.")]);
    write(&home, &name_of(&diary), &format!("{SUBAGENT}/{SUBAGENT}.jsonl"), &talk);
    // An early version had no directory for each conversation.
    let flat = write(&home, &name_of(&shop), &format!("{ID}.jsonl"), &talk);
    chorusctl(&home, ["capture", "exclude", diary.to_str().expect("UTF-8")]).expect_success();
    chorusctl(&home, ["capture", "on", "cursor"]).expect_success();
    let session = wait_for(&mut client, ID);
    assert_eq!(session.header.source.expect("a source").project.map(PathBuf::from), Some(shop));
    // The conversation goes on in a file of its own.
    let whole = lines(&[("user", "Count them"), ("assistant", "Three."), ("user", "Thanks")]);
    let name = flat.parent().and_then(Path::parent).and_then(Path::file_name).expect("a name");
    write(&home, name.to_str().expect("UTF-8"), &format!("{ID}/{ID}.jsonl"), &whole);
    wait_until("the conversation to grow", DEADLINE, || {
        let [grown] = &captured(&mut client)[..] else { panic!("one conversation") };
        (grown.header.id == session.header.id && grown.header.message_count == 3).then_some(())
    });
}
