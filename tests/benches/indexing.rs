//! Bench: others while the search index is built: appends of another client, and the heartbeats to Discord.

use std::fs;
use std::time::{Duration, Instant};

use chorus_proto::Client;
use chorus_proto::methods::context::{Append, AppendParams};
use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::discord::FakeDiscord;
use chorus_tests::measure::{median, print_report, time};
use chorus_tests::{Daemon, home, wait_until};

/// Conversations, and messages of each. All are different.
const CONVERSATIONS: usize = 250;
const MESSAGES: usize = 1_000;
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Appends that are measured while nothing is indexed.
const ALONE: usize = 2_000;
/// How long the import and its index may take.
const PREPARATION: Duration = Duration::from_secs(900);

fn transcript(number: usize) -> String {
    let mut text = String::new();
    for message in 0..MESSAGES {
        let role = if message % 2 == 0 { "user" } else { "assistant" };
        let words: String =
            (0..30).map(|word| format!("w{} ", (number * 7919 + message * 104_729 + word * 613) % 50_021)).collect();
        text.push_str(&format!("{{\"role\":\"{role}\",\"content\":\"{number} {message} {words}\"}}\n"));
    }
    text
}

fn append(client: &mut Client) -> Duration {
    let params = AppendParams { agent: Some("a".into()), text: Some("x".repeat(1024)), ..AppendParams::default() };
    time(|| drop(client.call::<Append>(&params).expect("appended")))
}

/// Returns whether all saved conversations are indexed; the one to which is added never is.
fn is_indexed(client: &mut Client) -> bool {
    let params = StatusParams { limit: Some(0), ..StatusParams::default() };
    let status = client.call::<Status>(&params).expect("a status");
    status.search.is_some_and(|index| index.total >= CONVERSATIONS as u64 && index.indexed + 1 >= index.total)
}

fn main() {
    let (discord, home) = (FakeDiscord::start(), home!());
    discord.set_heartbeat(HEARTBEAT);
    let transcripts = home.temp_dir().join("transcripts");
    fs::create_dir(&transcripts).expect("created");
    let files: Vec<String> = (0..CONVERSATIONS)
        .map(|number| {
            let path = transcripts.join(format!("{number}.jsonl"));
            fs::write(&path, transcript(number)).expect("written");
            path.to_string_lossy().into_owned()
        })
        .collect();
    let config = discord.config_toml();
    let daemon = Daemon::start_with(&home, &config);
    daemon.client().init("a");
    for files in files.chunks(50) {
        let import = ["session", "import"].into_iter().chain(files.iter().map(String::as_str));
        chorusctl(&home, import).expect_success();
    }
    let mut client = daemon.client();
    wait_until("the index", PREPARATION, || is_indexed(&mut client).then_some(()));
    discord.take_longest_heartbeat_gap();
    let alone = median((0..ALONE).map(|_| append(&mut client)).collect());
    let beat_alone = discord.take_longest_heartbeat_gap();
    drop(client);
    assert!(daemon.terminate().success());
    fs::remove_dir_all(home.path.join("index")).expect("the index");
    let daemon = Daemon::start_with(&home, &config);
    let mut client = daemon.client();
    let (begun, mut times) = (Instant::now(), Vec::new());
    // In batches, so that the question how far the index is costs nothing.
    while !is_indexed(&mut client) {
        times.extend((0..100).map(|_| append(&mut client)));
    }
    let (took, count) = (begun.elapsed(), times.len());
    let (beat, meanwhile) = (discord.take_longest_heartbeat_gap(), median(times));
    let ratio = meanwhile.as_secs_f64() / alone.as_secs_f64();
    let verdict = |met| if met { "met" } else { "MISSED" };
    print_report(format_args!("{} messages indexed in {took:.1?} beside {count} appends", CONVERSATIONS * MESSAGES));
    print_report(format_args!(
        "append 1 KB: alone {alone:.1?}, meanwhile {meanwhile:.1?}, ratio {ratio:.2}  target 1.5  {}",
        verdict(ratio <= 1.5)
    ));
    let late = |gap: Duration| gap.saturating_sub(HEARTBEAT);
    print_report(format_args!(
        "latest heartbeat to Discord: alone {:.1?}, meanwhile {:.1?}  target 1 s  {}",
        late(beat_alone),
        late(beat),
        verdict(late(beat) <= Duration::from_secs(1))
    ));
}
