//! Schema of `db/chorus.db`.

use crate::sqlite::Migrations;

/// Times are nanoseconds since 1970 in UTC, ids the 16 bytes of a UUID, lists and objects JSON.
pub(crate) const MIGRATIONS: Migrations = &[
    "
    CREATE TABLE agents (
        id           BLOB PRIMARY KEY,
        name         TEXT NOT NULL,
        status       TEXT NOT NULL CHECK (status IN ('active', 'destroyed')),
        created_at   INTEGER NOT NULL,
        destroyed_at INTEGER,
        -- the directory below the home
        dir          TEXT NOT NULL,
        -- the last good agent.json, and the stamp of the file it was read from
        config       TEXT NOT NULL,
        stamp        TEXT NOT NULL,
        -- sessions of the agent, counted as they come and go
        sessions     INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX agents_active ON agents (name) WHERE status = 'active';
    CREATE TABLE sessions (
        id              BLOB PRIMARY KEY,
        agent_id        BLOB NOT NULL,
        session_id      TEXT NOT NULL,
        saved_at        INTEGER NOT NULL,
        -- the header of the file, messages apart
        header          TEXT NOT NULL,
        sha256          TEXT NOT NULL,
        file_stamp      TEXT NOT NULL,
        -- why the file cannot be read, where it cannot
        corrupt         TEXT,
        last_used_at    INTEGER NOT NULL,
        UNIQUE (agent_id, session_id)
    );
    CREATE INDEX sessions_of_agent ON sessions (agent_id, saved_at);
    CREATE INDEX sessions_by_time ON sessions (saved_at);
    CREATE TABLE session_tags (
        id  BLOB NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        tag TEXT NOT NULL,
        PRIMARY KEY (tag, id)
    ) WITHOUT ROWID;
    CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO counters VALUES ('sessions', 0);
    CREATE TRIGGER session_added AFTER INSERT ON sessions BEGIN
        UPDATE agents SET sessions = sessions + 1 WHERE id = new.agent_id;
        UPDATE counters SET value = value + 1 WHERE name = 'sessions';
    END;
    CREATE TRIGGER session_gone AFTER DELETE ON sessions BEGIN
        UPDATE agents SET sessions = sessions - 1 WHERE id = old.agent_id;
        UPDATE counters SET value = value - 1 WHERE name = 'sessions';
    END;
    CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
",
    "
    -- one row a call of a model
    CREATE TABLE usage (
        id          INTEGER PRIMARY KEY,
        at          INTEGER NOT NULL,
        agent_id    BLOB NOT NULL,
        -- at that time
        agent_name  TEXT NOT NULL,
        -- the live context and the turn, where there was one
        context     INTEGER,
        turn_id     BLOB,
        -- provider/model
        model       TEXT NOT NULL,
        kind        TEXT NOT NULL,
        -- tokens; the whole input, with what came out of the provider's cache and went into it
        input       INTEGER NOT NULL,
        output      INTEGER NOT NULL,
        cache_read  INTEGER NOT NULL,
        cache_write INTEGER NOT NULL,
        -- NULL where no price was known
        cost_usd    REAL,
        duration_ms INTEGER NOT NULL
    );
    CREATE INDEX usage_of_agent ON usage (agent_id, at);
    CREATE INDEX usage_by_time ON usage (at);
    -- sessions that a model is to summarise yet
    CREATE TABLE summaries_wanted (
        id        BLOB PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
        -- whether somebody gave the description
        described INTEGER NOT NULL
    ) WITHOUT ROWID;
",
    "
    -- tokens of the input as they were estimated before the call; 0 where they were not
    ALTER TABLE usage ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0;
",
    "
    -- decisions about what agents do; each row has the hash of the one before it in its own
    CREATE TABLE audit_log (
        id         INTEGER PRIMARY KEY,
        at         INTEGER NOT NULL,
        agent_id   BLOB NOT NULL,
        -- at that time
        agent_name TEXT NOT NULL,
        turn_id    BLOB,
        action     TEXT NOT NULL,
        decision   TEXT NOT NULL,
        rule       TEXT NOT NULL,
        user       TEXT NOT NULL,
        old        TEXT,
        new        TEXT,
        hash       BLOB NOT NULL
    );
    CREATE INDEX audit_by_time ON audit_log (at);
    -- questions to people; those that are open at a start are denied
    CREATE TABLE approvals (
        id          TEXT PRIMARY KEY,
        agent_id    BLOB NOT NULL,
        agent_name  TEXT NOT NULL,
        turn_id     BLOB NOT NULL,
        -- the model's id of it
        call_id     TEXT NOT NULL,
        action      TEXT NOT NULL,
        -- SHA-256 of what runs when it is approved, with all that it is bound to
        action_hash BLOB NOT NULL,
        nonce       BLOB NOT NULL,
        -- why it is asked about
        verdict     TEXT NOT NULL,
        -- why it cannot be approved for ever, where it cannot
        not_always  TEXT,
        requester   TEXT NOT NULL,
        asked_at    INTEGER NOT NULL,
        expires_at  INTEGER NOT NULL,
        -- open, approved, denied, expired
        status      TEXT NOT NULL,
        decided_at  INTEGER,
        decided_by  TEXT
    ) WITHOUT ROWID;
    CREATE INDEX approvals_open ON approvals (asked_at) WHERE status = 'open';
    -- commands in the background
    CREATE TABLE tasks (
        id          TEXT PRIMARY KEY,
        agent_id    BLOB NOT NULL,
        agent_name  TEXT NOT NULL,
        command     TEXT NOT NULL,
        -- with the instant it started in, in clock ticks since the machine did, and which start of the machine that
        -- was: a pid alone comes again
        pid         INTEGER NOT NULL,
        pid_started INTEGER NOT NULL,
        boot        TEXT NOT NULL,
        status      TEXT NOT NULL CHECK (status IN ('running', 'completed', 'failed', 'stopped', 'lost')),
        exit_code   INTEGER,
        signal      INTEGER,
        started_at  INTEGER NOT NULL,
        ended_at    INTEGER,
        -- below the agent's directory, which may move
        log_path    TEXT NOT NULL,
        -- whether its agent heard that it ended
        told        INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE INDEX tasks_of_agent ON tasks (agent_id, started_at);
    CREATE INDEX tasks_untold ON tasks (started_at) WHERE told = 0;
    -- what agents are to remember; that of a project is shared by those that name it
    CREATE TABLE memory (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        agent_id   BLOB NOT NULL,
        project    TEXT,
        text       TEXT NOT NULL,
        path       TEXT,
        created_at INTEGER NOT NULL,
        -- on whose behalf
        user       TEXT NOT NULL
    );
    CREATE INDEX memory_of_agent ON memory (agent_id);
    CREATE INDEX memory_of_project ON memory (project) WHERE project IS NOT NULL;
",
    "
    -- entries get names that outlive this table; a turn's come from a message
    ALTER TABLE memory ADD COLUMN uid BLOB;
    ALTER TABLE memory ADD COLUMN agent_name TEXT NOT NULL DEFAULT '';
    ALTER TABLE memory ADD COLUMN source TEXT NOT NULL DEFAULT 'tool' CHECK (source IN ('hand', 'tool'));
    ALTER TABLE memory ADD COLUMN message_id TEXT;
    UPDATE memory SET uid = randomblob(16),
        agent_name = coalesce((SELECT name FROM agents WHERE agents.id = memory.agent_id), '');
    CREATE UNIQUE INDEX memory_by_uid ON memory (uid);
",
    "
    -- channels that agents have in Discord
    CREATE TABLE discord_channels (
        channel_id INTEGER PRIMARY KEY,
        guild_id   INTEGER NOT NULL,
        agent_id   BLOB NOT NULL,
        -- Chorus made it, and may delete it
        made       INTEGER NOT NULL,
        -- the newest message up to which all were dealt with
        seen       INTEGER NOT NULL,
        -- messages up to this one are not taken up, whenever they are told of
        skipped    INTEGER NOT NULL
    );
    CREATE INDEX discord_channels_of_agent ON discord_channels (agent_id);
    -- messages of channels that were taken up, each once
    CREATE TABLE claims (
        message_id INTEGER PRIMARY KEY,
        channel_id INTEGER NOT NULL,
        agent_id   BLOB NOT NULL,
        state      TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'dropped')),
        -- what is asked, as JSON, until that is over
        asked      TEXT,
        claimed_at INTEGER NOT NULL
    );
    CREATE INDEX claims_open ON claims (agent_id, message_id) WHERE state IN ('queued', 'running');
    -- what is to be posted, in this order; a sent one stays only while it may have to be changed
    CREATE TABLE discord_outbox (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        channel_id INTEGER NOT NULL,
        -- what a later change finds it by
        about      TEXT UNIQUE,
        -- JSON
        body       TEXT NOT NULL,
        nonce      TEXT NOT NULL UNIQUE,
        -- the row whose message is to look like this; NULL: it is to be a message of its own
        changes    INTEGER,
        -- when it was first on its way: it may have arrived
        tried_at   INTEGER,
        -- a message of the channel that is older than whatever became of it
        after_id   INTEGER,
        -- the message that it became
        sent_id    INTEGER
    );
    CREATE INDEX discord_outbox_waiting ON discord_outbox (channel_id, id) WHERE sent_id IS NULL;
    CREATE INDEX discord_outbox_changes ON discord_outbox (changes) WHERE changes IS NOT NULL;
    -- new connections to the gateway, which are counted by the day
    CREATE TABLE discord_identifies (at INTEGER NOT NULL);
",
    "
    -- the order of sessions: a save comes after all that are there, whatever the clock says; what is found or imported by its time
    ALTER TABLE sessions ADD COLUMN place INTEGER NOT NULL DEFAULT 0;
    UPDATE sessions SET place = saved_at;
    CREATE INDEX sessions_in_order ON sessions (agent_id, place, saved_at);
    CREATE INDEX sessions_placed ON sessions (place, saved_at);
",
    "
    -- of a notice, when that happened which it tells: it is dropped where it waits for too long
    ALTER TABLE discord_outbox ADD COLUMN notice_at INTEGER;
    INSERT OR IGNORE INTO counters VALUES ('notices_dropped', 0), ('notices_dropped_at', 0);
",
    "
    -- whether the tokens are estimated, because the server had not counted them
    ALTER TABLE usage ADD COLUMN by_estimate INTEGER NOT NULL DEFAULT 0;
",
    "
    -- estimates are made by script since the rows after this one: what providers counted says nothing about earlier ones
    INSERT OR IGNORE INTO counters SELECT 'usage_estimated_by_length', coalesce(max(id), 0) FROM usage;
",
    "
    -- the conversation of the agent, NULL: main
    ALTER TABLE sessions ADD COLUMN conversation_id BLOB;
    CREATE INDEX sessions_of_conversation ON sessions (agent_id, conversation_id, place, saved_at);
    ALTER TABLE usage ADD COLUMN conversation_id BLOB;
    ALTER TABLE tasks ADD COLUMN conversation_id BLOB;
    -- its name at that time
    ALTER TABLE approvals ADD COLUMN conversation TEXT;
",
    "
    -- the last write of each file by each conversation of an agent that has several
    CREATE TABLE file_writes (
        agent_id        BLOB NOT NULL,
        -- in the workspace
        path            TEXT NOT NULL,
        -- that of main is the agent's
        conversation_id BLOB NOT NULL,
        -- SHA-256 of the content, NULL: it has parts that this conversation had not seen
        hash            BLOB,
        -- a number that grows with each write
        at              INTEGER NOT NULL,
        PRIMARY KEY (agent_id, path, conversation_id)
    ) WITHOUT ROWID;
    CREATE INDEX file_writes_by_time ON file_writes (at);
    -- the conversations that ran commands in a workspace which they share
    CREATE TABLE workspace_commands (
        agent_id        BLOB NOT NULL,
        conversation_id BLOB NOT NULL,
        PRIMARY KEY (agent_id, conversation_id)
    ) WITHOUT ROWID;
",
    "
    -- of a thread, the channel that it is below
    ALTER TABLE discord_channels ADD COLUMN parent_id INTEGER;
    -- threads with smaller ids were there before the agent, or before threads were read
    ALTER TABLE discord_channels ADD COLUMN threads_after INTEGER NOT NULL DEFAULT 0;
    UPDATE discord_channels SET threads_after = (CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER) - 1420070400000) << 22;
",
    "
    -- finds conversations that only sessions know by the name that they had
    CREATE INDEX sessions_by_conversation_name ON sessions (agent_id, json_extract(header, '$.conversation.name'))
        WHERE conversation_id IS NOT NULL;
",
    "
    -- of a channel of direct messages, the person
    ALTER TABLE discord_channels ADD COLUMN user_id INTEGER;
",    "
    -- the conversation of another program that the session holds, see `source` of the header
    ALTER TABLE sessions ADD COLUMN source_program TEXT;
    ALTER TABLE sessions ADD COLUMN source_conversation TEXT;
    ALTER TABLE sessions ADD COLUMN project TEXT;
    CREATE INDEX sessions_by_source ON sessions (source_program, source_conversation)
        WHERE source_program IS NOT NULL;
    CREATE INDEX sessions_by_project ON sessions (project) WHERE project IS NOT NULL;
    -- finds imports of versions that did not keep the source
    CREATE INDEX sessions_without_source ON sessions (json_extract(header, '$.started_at'))
        WHERE source_program IS NULL AND json_extract(header, '$.trigger') = 'import';
    -- imports go by the time of their conversation
    UPDATE sessions SET place = coalesce(unixepoch(json_extract(header, '$.started_at')) * 1000000000, place)
        WHERE json_extract(header, '$.trigger') = 'import' AND agent_id IN
            (SELECT id FROM agents WHERE json_valid(config) AND json_extract(config, '$.import_source') IS NOT NULL);
",
    "
    -- transcripts of other programs, as they were when they were last read
    CREATE TABLE captured_files (
        source        TEXT NOT NULL,
        path          BLOB NOT NULL PRIMARY KEY,
        device        INTEGER NOT NULL,
        inode         INTEGER NOT NULL,
        -- up to the end of the last complete line
        read_bytes    INTEGER NOT NULL,
        size          INTEGER NOT NULL,
        modified_at   INTEGER NOT NULL,
        conversations INTEGER NOT NULL,
        messages      INTEGER NOT NULL,
        skipped_lines INTEGER NOT NULL,
        -- why it could not be read
        failure       TEXT
    ) WITHOUT ROWID;
    -- hashes of conversations that were deleted here, which are not captured again
    CREATE TABLE capture_tombstones (conversation TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID;
",
    "
    -- usage of conversations of other programs; a session in the trash keeps its rows
    CREATE TABLE imported_usage (
        session_id   BLOB NOT NULL,
        -- as the program names it
        model        TEXT NOT NULL,
        -- since 1970
        quarter_hour INTEGER NOT NULL,
        calls        INTEGER NOT NULL,
        -- tokens; the whole input, with what came out of the provider's cache and went into it
        input        INTEGER NOT NULL,
        output       INTEGER NOT NULL,
        cache_read   INTEGER NOT NULL,
        cache_write  INTEGER NOT NULL,
        -- what the program recorded, of the calls of which it did
        cost_usd     REAL NOT NULL,
        with_cost    INTEGER NOT NULL,
        -- calls with more output than was recorded
        lower_bound  INTEGER NOT NULL,
        PRIMARY KEY (session_id, model, quarter_hour)
    ) WITHOUT ROWID;
    CREATE INDEX imported_usage_by_time ON imported_usage (quarter_hour);
    -- the calls that count for a session, so that those of a fork or a revision count once
    CREATE TABLE imported_calls (
        session_id BLOB NOT NULL PRIMARY KEY,
        agent_id   BLOB,
        -- hash of the first call of the conversation, wherever it counts
        first      INTEGER NOT NULL,
        -- hash of all calls of the conversation
        digest     BLOB NOT NULL,
        -- hashes of 8 bytes
        calls      BLOB NOT NULL
    );
    CREATE INDEX imported_calls_by_first ON imported_calls (first);
    CREATE INDEX imported_calls_of_agent ON imported_calls (agent_id);
",
    "
    -- of a conversation in a database of another program, the marker of its last change
    ALTER TABLE captured_files ADD COLUMN marker TEXT;
",
    "
    -- sessions that were written as conversations of other programs; of ids only hashes, as in capture_tombstones
    CREATE TABLE tool_exports (
        -- the conversation in the other program
        conversation    TEXT NOT NULL PRIMARY KEY,
        -- missing if it was a live conversation
        session_id      BLOB,
        -- the conversation that the session holds
        origin          TEXT NOT NULL,
        last_message_at INTEGER NOT NULL
    ) WITHOUT ROWID;
    -- the first line that could not be read
    ALTER TABLE captured_files ADD COLUMN skipped_line INTEGER;
    ALTER TABLE captured_files ADD COLUMN skipped_reason TEXT;
    -- it was read, but could not be saved
    ALTER TABLE captured_files ADD COLUMN unsaved INTEGER NOT NULL DEFAULT 0;
    -- lines that are not part of the conversation counted as unreadable
    UPDATE captured_files SET inode = 0, marker = NULL WHERE skipped_lines > 0;
",
    "
    -- the sessions that hold its conversations, 16 bytes each; NULL if it was last read before this column was there
    ALTER TABLE captured_files ADD COLUMN sessions BLOB;
    -- read again
    UPDATE captured_files SET inode = 0, marker = NULL;
",
    "
    -- messages that agents get at certain times
    CREATE TABLE schedules (
        id            BLOB NOT NULL PRIMARY KEY,
        agent_id      BLOB NOT NULL,
        name          TEXT NOT NULL,
        -- one of these says when
        cron          TEXT,
        -- counted from the creation
        every_seconds INTEGER,
        once_at       INTEGER,
        -- of the cron expression
        time_zone     TEXT NOT NULL,
        message       TEXT NOT NULL,
        missed        TEXT NOT NULL CHECK (missed IN ('run', 'skip')),
        created_at    INTEGER NOT NULL,
        -- on whose behalf
        created_by    TEXT NOT NULL,
        state         TEXT NOT NULL CHECK (state IN ('active', 'paused', 'done')),
        next_at       INTEGER,
        -- when the run was due that is under way, and the one that comes after it
        pending_at    INTEGER,
        overdue_at    INTEGER,
        -- the last runs as JSON, newest first
        runs          TEXT NOT NULL,
        -- grows with each change
        version       INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX schedules_of_agent ON schedules (agent_id, name);
    CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;
    CREATE INDEX schedules_pending ON schedules (pending_at) WHERE pending_at IS NOT NULL;
",
    // Introduces compressed session files, which older releases cannot read.
    "SELECT 1;",
];
