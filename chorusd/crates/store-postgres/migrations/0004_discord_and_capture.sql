-- The connection to Discord, capture, and exports as conversations of other programs. Times are nanoseconds since 1970.
-- Ids of Discord are 64 bits, which grow with time.

-- Results of the writes of each node's last transaction, which it reads if the answer was lost with the connection.
CREATE TABLE write_results (
    node   text NOT NULL,
    batch  bigint NOT NULL,
    token  uuid NOT NULL,
    result bigint[] NOT NULL,
    PRIMARY KEY (node, batch, token)
);

-- Who holds the gateway, and who sends the posts of a channel. A row exists as long as it has an owner, so the numbers of
-- epochs come from a sequence.
CREATE TABLE discord_leases (
    kind       text COLLATE "C" NOT NULL CHECK (kind IN ('gateway', 'channel')),
    -- the channel; 0: the gateway
    id         bigint NOT NULL,
    owner_node text NOT NULL,
    owner_boot bigint NOT NULL,
    epoch      bigint NOT NULL,
    PRIMARY KEY (kind, id)
) WITH (fillfactor = 50);
CREATE SEQUENCE discord_lease_epochs;

CREATE TABLE discord_channels (
    channel_id    bigint PRIMARY KEY,
    guild_id      bigint NOT NULL,
    agent_id      uuid NOT NULL,
    -- Chorus created it, and may delete it
    made          boolean NOT NULL,
    -- all messages up to this one were processed
    seen          bigint NOT NULL,
    -- messages up to this one are never claimed
    skipped       bigint NOT NULL,
    -- of a thread, the channel that it is below
    parent_id     bigint,
    -- of a channel of direct messages, the person
    user_id       bigint,
    -- threads with smaller ids are older than the row. The upper bits of ids are milliseconds since 2015.
    threads_after bigint NOT NULL
        DEFAULT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1420070400000) << 22
) WITH (fillfactor = 50);
CREATE INDEX discord_channels_of_guilds ON discord_channels (channel_id) WHERE parent_id IS NULL AND user_id IS NULL;
CREATE INDEX discord_channels_of_agents ON discord_channels (agent_id, channel_id)
    WHERE parent_id IS NULL AND user_id IS NULL;
CREATE INDEX discord_threads ON discord_channels (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX discord_direct_messages ON discord_channels (channel_id) WHERE user_id IS NOT NULL;

CREATE TABLE discord_claims (
    message_id bigint PRIMARY KEY,
    channel_id bigint NOT NULL,
    agent_id   uuid NOT NULL,
    state      text COLLATE "C" NOT NULL CHECK (state IN ('queued', 'running', 'done', 'dropped')),
    -- JSON, until it is answered
    request    text,
    claimed_at bigint NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX discord_claims_open ON discord_claims (agent_id, message_id) WHERE state IN ('queued', 'running');
CREATE INDEX discord_claims_closed ON discord_claims (claimed_at) WHERE state IN ('done', 'dropped');
CREATE INDEX discord_claims_of_channels ON discord_claims (channel_id, message_id);

-- Posts in the order in which they are sent. A sent one stays only while it may have to be changed.
CREATE TABLE discord_outbox (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    channel_id  bigint NOT NULL,
    -- key by which later changes find it
    about       text COLLATE "C",
    -- JSON
    body        text NOT NULL,
    nonce       text COLLATE "C" NOT NULL,
    -- the post whose message it changes; NULL: it becomes a message
    changes     bigint,
    -- when it was first tried: it may have arrived
    tried_at    bigint,
    -- the lease of its channel in which it was last tried
    lease_epoch bigint,
    -- a message of the channel that is older than its own
    after_id    bigint,
    -- the message that it became
    sent_id     bigint,
    -- of a notice, the time of its event
    notice_at   bigint
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX discord_outbox_by_key ON discord_outbox (about);
CREATE UNIQUE INDEX discord_outbox_by_nonce ON discord_outbox (nonce);
CREATE INDEX discord_outbox_waiting ON discord_outbox (channel_id, id) WHERE sent_id IS NULL;
CREATE INDEX discord_outbox_sent ON discord_outbox (channel_id) WHERE sent_id IS NOT NULL;
CREATE INDEX discord_outbox_notices ON discord_outbox (channel_id, notice_at)
    WHERE sent_id IS NULL AND tried_at IS NULL AND notice_at IS NOT NULL;
CREATE INDEX discord_outbox_changes ON discord_outbox (changes) WHERE changes IS NOT NULL;

-- New sessions of the gateway, within the window of their limit.
CREATE TABLE discord_identifies (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL
);

-- For each node, the last of its events that it announced, and the notices that it dropped because they were too old.
CREATE TABLE discord_nodes (
    node            text PRIMARY KEY,
    last_event      bigint,
    -- JSON
    last_starts     text,
    dropped_notices bigint NOT NULL DEFAULT 0,
    dropped_at      bigint
);

-- Transcripts of other programs on the disk of a node, as they were when they were last read. Texts that come from them may
-- have any character.
CREATE TABLE captured_files (
    node           text NOT NULL,
    path           bytea NOT NULL,
    source         text NOT NULL,
    device         bigint NOT NULL,
    inode          bigint NOT NULL,
    -- up to the end of the last complete line
    read_bytes     bigint NOT NULL,
    size           bigint NOT NULL,
    modified_at    bigint NOT NULL,
    conversations  bigint NOT NULL,
    messages       bigint NOT NULL,
    sessions       uuid[],
    skipped_lines  bigint NOT NULL,
    skipped_line   bigint,
    skipped_reason bytea,
    -- of a conversation in a database
    marker         bytea,
    failure        bytea,
    unsaved        boolean NOT NULL,
    PRIMARY KEY (node, path)
);

-- Hashes of conversations that were deleted, on whichever node, and are not captured again on any.
CREATE TABLE capture_tombstones (conversation text COLLATE "C" PRIMARY KEY);

-- Sessions that were written as conversations of other programs; of ids only hashes.
CREATE TABLE tool_exports (
    conversation    text COLLATE "C" PRIMARY KEY,
    -- missing if it was a live conversation
    session_id      uuid,
    -- the conversation that the session holds
    origin          text NOT NULL,
    last_message_at bigint NOT NULL
);
