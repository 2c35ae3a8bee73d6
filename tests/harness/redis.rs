//! Redis with `appendfsync always`, which syncs before it answers: a well-known program that keeps what it is sent.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::{kill, wait_for_exit};
use crate::{DEADLINE, wait_until};

/// A server with a directory of its own; it is killed when it is dropped.
#[derive(Debug)]
pub struct Redis {
    server: Child,
    socket: PathBuf,
}

/// A connection.
#[derive(Debug)]
pub struct RedisClient {
    input: BufReader<UnixStream>,
}

impl Redis {
    /// Starts a server that loads the log in `dir`, if there is one; `None` if `redis-server` is not installed.
    #[must_use]
    pub fn start(dir: &Path) -> Option<Self> {
        std::fs::create_dir_all(dir).expect("a directory");
        let socket = dir.join("redis.sock");
        let _ = std::fs::remove_file(&socket);
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--appendonly", "yes", "--appendfsync", "always", "--save", ""]);
        // Rewriting its log would be work that an append does not ask for.
        command.args(["--auto-aof-rewrite-percentage", "0", "--unixsocket"]).arg(&socket).arg("--dir").arg(dir);
        let server = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        let redis = Self { server, socket };
        wait_until("Redis", DEADLINE, || redis.try_connect());
        Some(redis)
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.server.id()
    }

    /// Connects.
    #[must_use]
    pub fn client(&self) -> RedisClient {
        self.try_connect().expect("a connection")
    }

    fn try_connect(&self) -> Option<RedisClient> {
        let stream = UnixStream::connect(&self.socket).ok()?;
        Some(RedisClient { input: BufReader::new(stream) })
    }

    /// Kills the server and starts it again. Returns the time until it has loaded its log and answers.
    pub fn time_reload(&mut self) -> Duration {
        let dir = self.socket.parent().expect("its directory").to_owned();
        kill(self.pid());
        wait_for_exit(&mut self.server, "Redis");
        let begun = Instant::now();
        *self = Self::start(&dir).expect("Redis");
        wait_until("the loaded log", DEADLINE, || (!self.client().push("ready", "x").starts_with('-')).then_some(()));
        begun.elapsed()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl RedisClient {
    /// Appends `text` to a list. Returns the answer.
    pub fn push(&mut self, list: &str, text: &str) -> String {
        self.push_all(list, text, 1)
    }

    /// Appends `text` as often as `count`, a thousand times in one request. Returns the last answer.
    pub fn push_all(&mut self, list: &str, text: &str, count: usize) -> String {
        const MOST: usize = 1000;
        let word = |word: &str| format!("${}\r\n{word}\r\n", word.len());
        let mut answer = String::new();
        for done in (0..count).step_by(MOST) {
            let texts = MOST.min(count - done);
            let command = format!("*{}\r\n{}{}", texts + 2, word("RPUSH"), word(list));
            self.input.get_mut().write_all((command + &word(text).repeat(texts)).as_bytes()).expect("sent");
            answer.clear();
            self.input.read_line(&mut answer).expect("an answer");
        }
        answer
    }
}
