//! Polls the file tools of several conversations in every order of their await points, on a real file and catalog.

use std::cell::Cell;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use chorus_base::{Durability, new_id};
use chorus_redact::Redactor;
use chorus_runtime::block_on;
use chorus_session::conversation::ConversationKey;
use chorus_store::Store;
use jiff::Timestamp;
use tempfile::TempDir;
use uuid::Uuid;

use super::{ConversationNames, FileVersions};
use crate::tools::files::{FileAccess, FileLocks, LineRange, Workspace, WorkspacePath};

/// Each agent has several conversations.
#[derive(Debug)]
struct Names;

impl ConversationNames for Names {
    fn has_several(&self, _: Uuid) -> bool {
        true
    }

    fn name(&self, key: ConversationKey) -> Option<String> {
        Some(key.id.to_string())
    }
}

/// A workspace, and a catalog for its conversations.
struct Bench {
    folder: TempDir,
    _store: Store,
    versions: Arc<FileVersions>,
    locks: FileLocks,
    workspace: Workspace,
    place: WorkspacePath,
}

impl Bench {
    fn new() -> Self {
        // In memory where that can be had: each write is synced.
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder = TempDir::with_prefix_in("chorus", place).unwrap();
        for name in [chorus_store::DB_DIR, "workspace"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let on_fatal: chorus_store::OnFatal = Arc::new(|failure| panic!("{failure}"));
        let redactor = Arc::new(Redactor::new(|| [0; 32]));
        let store = Store::open(folder.path(), Durability::Always, &on_fatal, Timestamp::UNIX_EPOCH, redactor).unwrap();
        let root = folder.path().join("workspace");
        Self {
            versions: FileVersions::new(store.catalog.file_writes.clone(), Arc::new(Names), 0),
            locks: FileLocks::default(),
            workspace: Workspace::open(&root).unwrap(),
            place: WorkspacePath::parse("f", &root).unwrap(),
            folder,
            _store: store,
        }
    }

    fn wait_for_catalog(&self) {
        block_on(self.versions.table.last_position()).unwrap();
        block_on(self.versions.table.record_command(Uuid::nil(), Uuid::nil())).unwrap();
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("workspace/f")).unwrap()
    }

    /// Adds the line `number` to the file as a model does: with a tool, and again after it has read what others changed.
    /// Returns how often it was refused.
    async fn add_line(&self, key: ConversationKey, number: usize, tool: usize) -> usize {
        let access = FileAccess { locks: &self.locks, conversation: Some(self.versions.of(key)) };
        let (workspace, place, line) = (&self.workspace, &self.place, format!("{number}\n"));
        let mut refused = 0;
        loop {
            let shown = workspace.view_as(place, LineRange::default(), &access).await.unwrap();
            let seen: String = shown.lines().map(|line| line.split_once('\t').unwrap().1.to_owned() + "\n").collect();
            // The model thinks.
            pause().await;
            let done = match tool % 3 {
                0 => workspace.create_file_as(place, seen + &line, &access).await,
                1 => workspace.str_replace_as(place, ("end\n", &format!("end\n{line}")), &access).await,
                _ => workspace.append_file_as(place, &line, &access).await,
            };
            match done {
                Ok(_) => return refused,
                Err(why) => assert!(why.starts_with("edited meanwhile by "), "{why}"),
            }
            refused += 1;
        }
    }

    /// Each conversation adds its line with one of these tools. At each step `choose` selects among the tasks that can go
    /// on. Returns how often the conversations were refused.
    fn run(&self, tools: &[usize], mut choose: impl FnMut(&[usize]) -> usize) -> usize {
        let count = tools.len();
        std::fs::write(self.folder.path().join("workspace/f"), "end\n").unwrap();
        let agent = new_id();
        let others = (1..count).map(|_| ConversationKey { agent, id: new_id() });
        let keys: Vec<_> = [ConversationKey::main(agent)].into_iter().chain(others).collect();
        let mut tasks: Vec<_> = keys
            .iter()
            .enumerate()
            .map(|(number, key)| Task {
                bench: self,
                future: Box::pin(self.add_line(*key, number, tools[number])),
                ready: Arc::new(Flag(AtomicBool::new(true))),
                refused: None,
            })
            .collect();
        while tasks.iter().any(|task| task.refused.is_none()) {
            let ready: Vec<usize> = (0..count).filter(|task| tasks[*task].can_go_on()).collect();
            assert!(!ready.is_empty(), "all wait for each other");
            tasks[choose(&ready)].run_to_pause();
        }
        let refused = tasks.iter().map(|task| task.refused.unwrap()).sum();
        drop(tasks);
        let text = self.text();
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        let due: Vec<_> = (0..count).map(|number| number.to_string()).chain(["end".to_owned()]).collect();
        assert_eq!(lines, due, "each line is there once");
        refused
    }
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

struct Task<'a> {
    bench: &'a Bench,
    future: Pin<Box<dyn Future<Output = usize> + 'a>>,
    ready: Arc<Flag>,
    refused: Option<usize>,
}

impl Task<'_> {
    fn can_go_on(&self) -> bool {
        self.refused.is_none() && self.ready.0.load(Ordering::SeqCst)
    }

    /// Polls the task until it pauses, waits for the file's lock or ends.
    fn run_to_pause(&mut self) {
        let waker = Waker::from(self.ready.clone());
        while self.can_go_on() {
            self.ready.0.store(false, Ordering::SeqCst);
            PAUSED.set(false);
            match self.future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(refused) => self.refused = Some(refused),
                Poll::Pending if PAUSED.get() => return,
                // After this the catalog has answered all that it was asked before.
                Poll::Pending => self.bench.wait_for_catalog(),
            }
        }
    }
}

thread_local! {
    static PAUSED: Cell<bool> = const { Cell::new(false) };
}

/// A point at which others may go on.
pub(in crate::tools::files) async fn pause() {
    let mut paused = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut paused, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        PAUSED.set(true);
        Poll::Pending
    })
    .await;
}

/// Runs every order. Returns the number of orders, and how many refusals there were.
fn run_all_orders(bench: &Bench, tools: &[usize]) -> (usize, usize) {
    // The choices of one order: which of how many.
    let mut choices: Vec<(usize, usize)> = Vec::new();
    let (mut orders, mut refusals) = (0, 0);
    loop {
        let mut step = 0;
        refusals += bench.run(tools, |ready| {
            if step == choices.len() {
                choices.push((0, ready.len()));
            }
            assert_eq!(choices[step].1, ready.len(), "the same choices lead to the same state");
            step += 1;
            ready[choices[step - 1].0]
        });
        orders += 1;
        while choices.last().is_some_and(|(choice, of)| choice + 1 == *of) {
            choices.pop();
        }
        match choices.last_mut() {
            Some((choice, _)) => *choice += 1,
            None => return (orders, refusals),
        }
    }
}

/// Runs some orders, the same in each run. Returns how many refusals there were.
fn run_random_orders(bench: &Bench, tools: &[usize], orders: u64) -> usize {
    let run = |seed: u64| {
        // xorshift
        let mut state = 0x9e37_79b9_7f4a_7c15 ^ (seed + 1);
        bench.run(tools, |ready| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ready[usize::try_from(state % ready.len() as u64).unwrap()]
        })
    };
    (0..orders).map(run).sum()
}

#[test]
fn in_every_order_nothing_is_lost_and_nothing_overwritten_unseen() {
    let bench = Bench::new();
    for tools in [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [2, 1]] {
        let (orders, refusals) = run_all_orders(&bench, &tools);
        assert!(orders > 20 && refusals > 0, "{tools:?}: {orders} orders, {refusals} refusals");
    }
    assert_eq!(run_all_orders(&bench, &[2, 2]).1, 0, "appends disturb nobody");
}

#[test]
fn eight_conversations_lose_nothing() {
    let bench = Bench::new();
    assert!(run_random_orders(&bench, &[0, 1, 2], 100) > 0);
    assert!(run_random_orders(&bench, &[0, 1, 2, 0, 1, 2, 0, 1], 40) > 0);
}
