//! Bench: capture. The first run over transcripts of Claude Code and Codex, compared with reading and parsing them; how long a line
//! takes until it is durable; what it costs while nothing happens; the memory that one long transcript takes.
//!
//! `CHORUS_BENCH_CAPTURE_MB` sets the size of the transcripts, and of the long one (256 by default).

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use chorus_proto::Client;
use chorus_proto::methods::context::{History, HistoryParams};
use chorus_tests::ctl::chorusctl;
use chorus_tests::measure::{print_report, time};
use chorus_tests::{DEADLINE, Daemon, Home, home, wait_until};
use serde_json::{Value, json};

/// Lines of each transcript of the first run; about 3 MB.
const LINES: u64 = 1_000;
/// Lines that are written while a conversation grows.
const GROWTH: usize = 60;

/// Pseudo-random numbers from a seed, so that every run writes the same transcripts.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Words of a vocabulary of 30,000, so many that they have about `bytes`.
    fn words(&mut self, bytes: u64) -> String {
        let mut text = String::new();
        while (text.len() as u64) < bytes {
            let n = self.next();
            // Some words are frequent, as in real texts.
            let word = if n.is_multiple_of(3) { n % 97 } else { (n >> 8) % 30_000 };
            text.push_str(&format!("w{word} "));
            if n.is_multiple_of(13) {
                text.push('\n');
            }
        }
        text
    }

    /// Sizes as in real transcripts: most messages are short, and results of tools are long.
    fn size(&mut self, is_result: bool) -> u64 {
        let n = self.next() % 100;
        match (is_result, n) {
            (false, _) => 80 + self.next() % 900,
            (true, 0..80) => 300 + self.next() % 5_000,
            (true, _) => 8_000 + self.next() % 16_000,
        }
    }
}

/// A transcript of Claude Code to which lines are added: question, call of a tool, result, reply.
struct ClaudeCode {
    id: String,
    day: u64,
    lines: u64,
}

impl ClaudeCode {
    fn line(&mut self, random: &mut Random) -> String {
        let n = self.lines;
        self.lines += 1;
        let uuid = |n: u64| format!("{}-{n}", self.id);
        let role = if n.is_multiple_of(2) { "user" } else { "assistant" };
        let call = |n: u64| format!("toolu_{}_{n}", self.id);
        let text = random.size(n % 4 == 2);
        let text = random.words(text);
        let content = match n % 4 {
            1 => {
                json!([{"type": "text", "text": "Let me look."}, {"type": "tool_use", "id": call(n), "name": "Bash", "input": {"command": format!("grep -rn {} src", &text[..40])}}])
            }
            2 => json!([{"type": "tool_result", "tool_use_id": call(n - 1), "content": text}]),
            3 => json!([{"type": "text", "text": text}]),
            _ => json!(text),
        };
        let mut message = json!({"role": role, "content": content});
        if role == "assistant" {
            message["id"] = json!(format!("msg_{}_{n}", self.id));
            message["model"] = json!("claude-opus-5-5");
            message["usage"] = json!({"input_tokens": 4, "cache_creation_input_tokens": 900, "cache_read_input_tokens": 41_000, "output_tokens": 210});
        }
        let line = json!({
            "parentUuid": n.checked_sub(1).map(uuid), "isSidechain": false, "userType": "external", "cwd": "/srv/shop", "sessionId": self.id,
            "version": "2.1.332", "gitBranch": "main", "type": role, "message": message, "uuid": uuid(n),
            "timestamp": format!("2026-03-{:02}T{:02}:{:02}:{:02}.000Z", self.day, n / 3600 % 24, n / 60 % 60, n % 60),
        });
        format!("{line}\n")
    }
}

fn codex_line(id: &str, n: u64, random: &mut Random) -> String {
    let at = format!("2026-03-01T{:02}:{:02}:{:02}.000Z", n / 3600 % 24, n / 60 % 60, n % 60);
    let size = random.size(n % 4 == 3);
    let text = random.words(size);
    let payload = match n % 4 {
        _ if n == 0 => {
            let start = json!({"id": id, "timestamp": at, "cwd": "/srv/shop", "originator": "codex_cli_rs", "cli_version": "0.140.0"});
            return format!("{}\n", json!({"timestamp": at, "type": "session_meta", "payload": start}));
        }
        0 => json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}),
        1 => json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}),
        2 => {
            json!({"type": "function_call", "name": "shell", "arguments": "{\"command\":[\"ls\"]}", "call_id": format!("call_{n}")})
        }
        _ => json!({"type": "function_call_output", "call_id": format!("call_{}", n - 1), "output": text}),
    };
    format!("{}\n", json!({"timestamp": at, "type": "response_item", "payload": payload}))
}

fn id(n: u64) -> String {
    format!("{n:08x}-0000-4000-8000-000000000000")
}

fn claude_code_path(home: &Home, id: &str) -> PathBuf {
    let dir = home.user_home.join(".claude/projects/-srv-shop");
    fs::create_dir_all(&dir).expect("created");
    dir.join(format!("{id}.jsonl"))
}

/// Writes a transcript of Claude Code with about so many bytes, of this day of a month.
fn write_claude_code(home: &Home, (n, day): (u64, u64), bytes: u64, random: &mut Random) -> (PathBuf, ClaudeCode) {
    let mut talk = ClaudeCode { id: id(n), day, lines: 0 };
    let path = claude_code_path(home, &talk.id);
    let mut out = BufWriter::new(File::create(&path).expect("created"));
    let mut written = 0;
    while written < bytes {
        let line = talk.line(random);
        written += line.len() as u64;
        out.write_all(line.as_bytes()).expect("written");
    }
    (path, talk)
}

/// Writes transcripts of both programs, about so many bytes. Returns them.
fn write_transcripts(home: &Home, bytes: u64) -> Vec<PathBuf> {
    let mut random = Random(25);
    let (mut paths, mut written, mut n) = (Vec::new(), 0, 1_000);
    while written < bytes {
        n += 1;
        let path = if n % 3 == 0 {
            let dir = home.user_home.join(".codex/sessions/2026/03/01");
            fs::create_dir_all(&dir).expect("created");
            let path = dir.join(format!("rollout-2026-03-01T09-00-00-{}.jsonl", id(n)));
            let mut out = BufWriter::new(File::create(&path).expect("created"));
            (0..LINES)
                .for_each(|line| out.write_all(codex_line(&id(n), line, &mut random).as_bytes()).expect("written"));
            path
        } else {
            write_claude_code(home, (n, 1), 3_000_000, &mut random).0
        };
        written += path.metadata().expect("a file").len();
        paths.push(path);
    }
    paths
}

fn megabytes(paths: &[PathBuf]) -> f64 {
    paths.iter().map(|path| path.metadata().expect("a file").len() as f64 / 1e6).sum()
}

fn parse_all(paths: &[PathBuf]) {
    for path in paths {
        for line in BufReader::new(File::open(path).expect("a file")).lines() {
            std::hint::black_box(serde_json::from_str::<Value>(&line.expect("a line")).expect("JSON"));
        }
    }
}

/// Seconds of processor time that a process has used.
fn cpu_seconds(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("its state");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
    (ticks(11) + ticks(12)) / 100.0
}

/// Waits until a process does nothing, and returns the share of a core that it then uses in 20 s.
fn idle_share(pid: u32) -> f64 {
    loop {
        let before = cpu_seconds(pid);
        sleep(Duration::from_secs(3));
        if cpu_seconds(pid) - before < 0.02 {
            break;
        }
    }
    let before = cpu_seconds(pid);
    sleep(Duration::from_secs(20));
    (cpu_seconds(pid) - before) / 20.0
}

/// The peak of resident memory in megabytes since it was reset.
fn peak_megabytes(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kilobytes| kilobytes.parse::<f64>().ok()).unwrap_or_default() / 1024.0
}

fn messages_of(client: &mut Client, conversation: &str) -> u64 {
    let params = HistoryParams { all_agents: true, limit: Some(20), ..HistoryParams::default() };
    let found = client.call::<History>(&params).expect("the history").sessions;
    let is_it = |source: &chorus_proto::SessionSource| source.conversation == conversation;
    found
        .iter()
        .find(|session| session.header.source.as_ref().is_some_and(is_it))
        .map_or(0, |found| found.header.message_count)
}

/// Writes lines one at a time, and returns how long each took until it was in its session. Sorted.
fn growth(client: &mut Client, path: &Path, talk: &mut ClaudeCode, random: &mut Random) -> Vec<Duration> {
    let mut times: Vec<Duration> = (0..GROWTH)
        .map(|_| {
            let before = messages_of(client, &talk.id);
            let line = talk.line(random);
            let mut file = OpenOptions::new().append(true).open(path).expect("the transcript");
            file.write_all(line.as_bytes()).expect("written");
            let began = Instant::now();
            while messages_of(client, &talk.id) == before {
                assert!(began.elapsed() < Duration::from_secs(120), "the line never came");
                // Asking costs time of the processor, too.
                sleep(Duration::from_millis(10));
            }
            let took = began.elapsed();
            // As tools do, at any time.
            sleep(Duration::from_millis(random.next() % 300));
            took
        })
        .collect();
    times.sort();
    times
}

fn main() {
    let bytes = std::env::var("CHORUS_BENCH_CAPTURE_MB").ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(256)
        * 1_000_000;
    let home = home!();
    let paths = write_transcripts(&home, bytes);
    let size = megabytes(&paths);
    let floor = time(|| parse_all(&paths)).as_secs_f64();
    let daemon = Daemon::start(&home);
    let pid = daemon.pid;
    let took = time(|| drop(chorusctl(&home, ["capture", "on"]).expect_success())).as_secs_f64();
    print_report(format!(
        "first run, {size:.0} MB in {} transcripts: {:.1} MB/s; reading and parsing alone: {:.1} MB/s; ratio {:.2}",
        paths.len(),
        size / took,
        size / floor,
        took / floor,
    ));
    print_report(format!("while nothing happens: {:.3} % of a core", idle_share(pid) * 100.0));
    let mut client = daemon.client();
    let mut random = Random(26);
    for (n, bytes) in [(1, 300_000), (2, 3_000_000), (3, 20_000_000)] {
        let (path, mut talk) = write_claude_code(&home, (n, n + 1), bytes, &mut random);
        wait_until("the transcript", DEADLINE, || (messages_of(&mut client, &talk.id) > 0).then_some(()));
        let times = growth(&mut client, &path, &mut talk, &mut random);
        print_report(format!(
            "a line of a transcript of {:.1} MB is durable after p50 {:.2} s, p99 {:.2} s",
            bytes as f64 / 1e6,
            times[GROWTH / 2].as_secs_f64(),
            times[GROWTH - 1].as_secs_f64(),
        ));
    }
    drop(daemon);
    long_transcript(bytes);
}

/// Captures one long transcript. The index, whose memory is bounded by itself, is off.
fn long_transcript(bytes: u64) {
    let home = home!();
    home.write_config("[search]\nindex = false\n");
    let (path, talk) = write_claude_code(&home, (7, 1), bytes, &mut Random(27));
    let daemon = Daemon::start(&home);
    let pid = daemon.pid;
    let mut client = daemon.client();
    fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("the peak is reset");
    let before = peak_megabytes(pid);
    let took = time(|| drop(chorusctl(&home, ["capture", "on"]).expect_success())).as_secs_f64();
    assert!(messages_of(&mut client, &talk.id) > 0, "it was captured");
    print_report(format!(
        "one transcript of {:.0} MB: {:.1} MB/s, {:.1} MB of memory at the peak above {before:.1} MB",
        megabytes(std::slice::from_ref(&path)),
        megabytes(&[path]) / took,
        peak_megabytes(pid) - before,
    ));
}
