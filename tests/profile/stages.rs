//! Assigns a sample to the stage of the operation that it belongs to, by the names of its functions.

use crate::operations::Operation;
use crate::perf::Sample;

/// A stage, and parts of the names of its functions or threads.
struct Stage {
    name: &'static str,
    functions: &'static [&'static str],
    threads: &'static [&'static str],
}

const fn stage(name: &'static str, functions: &'static [&'static str]) -> Stage {
    Stage { name, functions, threads: &[] }
}

/// Stages of the daemon. The first one that fits counts, so that what is a part of another stage comes before it.
const OF_DAEMON: &[Stage] = &[
    Stage {
        name: "search index",
        functions: &["chorus_engine::search::", "tantivy"],
        threads: &["search", "segment_updater", "merge_thread", "thrd-tantivy", "docstore"],
    },
    stage("sync", &["fdatasync", "fsync", "syncfs", "sync_file_range"]),
    stage("wake-ups of threads", &["futex_wake", "eventfd_write", "FUTEX_WAKE"]),
    stage("redaction", &["chorus_redact::", "aho_corasick"]),
    stage("tokens and sizes", &["token_estimate", "prompt_size", "count_tokens"]),
    stage("event", &["journal::events", "event_publisher", "new_event", "broadcast::Sender"]),
    stage("hash", &["sha2::", "MessageHash", "BlockHash"]),
    stage("summary", &["summaries", "summary"]),
    stage("messages parsed", &["StoredMessage::parse", "message_skim", "MessageList", "NativeLayout", "parse_native"]),
    stage("envelope", &["journal::record::", "StoredMessage", "stored_message", "journal_records"]),
    stage("bytes written to a file", &["ext4_file_write_iter", "generic_file_write_iter", "__x64_sys_write"]),
    stage("bytes read from a file", &["ext4_file_read_iter", "generic_file_read_iter", "filemap_read"]),
    stage(
        "session file, other",
        &["session_files", "session_save", "unverified_session", "block_reader", "paced_file", "index_cache"],
    ),
    stage("files looked at", &["statx", "std::fs::metadata", "chorus_base::file_stamp"]),
    stage("journal", &["sqlite3", "chorus_store::", "chorus_journal::", "chorus_catalog::", "rusqlite", "db_thread"]),
    stage("model", &["chorus_llm", "reqwest", "hyper", "rustls", "turn_io", "model_call", "agent::prompt"]),
    stage("reply", &["server::reply", "server::writer", "ClientWriter", "unix_stream_sendmsg"]),
    stage("parse", &["request_check", "serde_json::de", "serde_json::read", "serde_json::raw", "RawValue"]),
    stage("frame", &["FrameCodec", "read_some", "unix_stream_recvmsg", "FrameBudget", "IncomingFrame"]),
    stage("state of the agent", &["chorus_agent_core", "agent::actor"]),
    stage("dispatch", &["server::dispatch", "chorus_engine::ops", "chorus_engine::agent", "server::connection"]),
    stage("memory freed", &["_int_free", "munmap", "malloc_consolidate", "drop_in_place"]),
    stage("waiting and switching", &["schedule", "epoll", "futex_wait", "hrtimer", "schedule_idle"]),
    stage("page faults", &["exc_page_fault"]),
    stage("runtime", &["tokio::"]),
];

/// Stages of a daemon until it is ready.
const OF_START: &[Stage] = &[
    stage("databases checked before they are opened", &["chorus_store::recovery"]),
    stage("settings of the agents parsed", &["AgentConfig", "chorus_config::"]),
    stage("directories listed", &["getdents64"]),
    stage("rules of permissions compiled", &["chorus_permissions", "regex_automata"]),
    stage("rows read", &["sqlite3", "rusqlite", "chorus_store::", "chorus_journal::", "chorus_catalog::", "db_thread"]),
    stage("agents and their timers", &["chorus_engine::agent", "chorus_engine::ops", "chorus_agent_core"]),
    Stage { name: "search index", functions: &["chorus_engine::search::", "tantivy"], threads: &["search"] },
    stage("program loaded", &["_dl_", "dl_main", "execve", "begin_new_exec", "load_elf_binary"]),
    stage("waiting and switching", &["schedule", "epoll", "futex", "hrtimer"]),
    stage("page faults", &["exc_page_fault"]),
    stage("threads started", &["clone3", "pthread_create", "ret_from_fork"]),
    stage("runtime", &["tokio::"]),
];

/// Functions of the end of a process.
const OF_EXIT: [&str; 2] = ["do_exit", "exit_mmap"];

/// Returns true for a sample from the end of a process, which is no part of its start.
pub fn is_of_exit(sample: &Sample) -> bool {
    sample.functions.iter().any(|function| OF_EXIT.contains(&function.as_str()))
}

/// Stages of the client's process.
const OF_CLIENT: &[Stage] = &[
    stage("exit", &["do_exit", "do_group_exit", "exit_mmap"]),
    stage("start: kernel", &["execve", "begin_new_exec", "load_elf_binary", "ret_from_fork"]),
    stage("start: loader", &["_dl_", "dl_main", "ld-linux", "_dl_relocate", "elf_machine", "do_lookup_x"]),
    stage("connect", &["connect", "sock_"]),
    stage("request and answer", &["proto::client", "chorus_proto", "unix_stream", "recvfrom", "serde_json"]),
    stage("arguments", &["clap", "chorusctl::cli", "chorusctl::agent_select", "paths"]),
    stage("output", &["chorusctl::commands", "chorusctl::ui", "print", "write"]),
    stage("page faults", &["exc_page_fault"]),
    stage("start: C library", &["__libc_start", "_init", "pthread"]),
];

/// Samples that no stage fits.
const OTHER: &str = "other";

/// Returns the stage of a sample.
pub fn stage_of(operation: Operation, sample: &Sample) -> &'static str {
    let stages = match operation {
        Operation::Status => OF_CLIENT,
        Operation::Start => OF_START,
        _ => OF_DAEMON,
    };
    let has = |parts: &[&str], name: &str| parts.iter().any(|part| name.contains(part));
    let fits = |stage: &&Stage| {
        stage.threads.iter().any(|thread| sample.thread.starts_with(thread))
            || sample.functions.iter().any(|function| has(stage.functions, function))
    };
    stages.iter().find(fits).map_or(OTHER, |stage| stage.name)
}
