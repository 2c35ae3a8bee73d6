-- Agents, and what is kept of them besides contexts and sessions. Times are nanoseconds since 1970, which the daemons
-- take from their clocks. Texts that may contain any character are bytes in UTF-8: `text` cannot hold the character 0.

CREATE TABLE agents (
    id           uuid PRIMARY KEY,
    name         text COLLATE "C" NOT NULL,
    status       text NOT NULL CHECK (status IN ('active', 'destroyed')),
    created_at   bigint NOT NULL,
    destroyed_at bigint,
    -- below the home
    dir          text NOT NULL,
    -- the last valid agent.json, and the stamp of the file it was read from
    config       text NOT NULL,
    stamp        text NOT NULL
);
CREATE UNIQUE INDEX agents_active ON agents (name) WHERE status = 'active';
CREATE INDEX agents_destroyed ON agents (id) WHERE status = 'destroyed';

CREATE TABLE settings (
    -- empty: of all nodes
    node  text NOT NULL,
    key   text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (node, key)
);

-- Decisions about what agents do. The rows of each node are a chain: a row's hash is also one of the hash before it.
CREATE TABLE audit_log (
    node       text NOT NULL,
    -- in the chain, from 1 without gaps
    number     bigint NOT NULL,
    -- in the list of all nodes. A row with a lower one may be committed later.
    position   bigint GENERATED ALWAYS AS IDENTITY,
    at         bigint NOT NULL,
    agent_id   uuid NOT NULL,
    -- at that time
    agent_name text COLLATE "C" NOT NULL,
    turn_id    uuid,
    action     bytea NOT NULL,
    decision   text NOT NULL,
    rule       bytea NOT NULL,
    requester  bytea NOT NULL,
    old        bytea,
    new        bytea,
    hash       bytea NOT NULL,
    PRIMARY KEY (node, number)
);
CREATE UNIQUE INDEX audit_by_position ON audit_log (position);
CREATE INDEX audit_by_time ON audit_log (at, position);
CREATE INDEX audit_of_agent ON audit_log (agent_id, position);
CREATE INDEX audit_by_name ON audit_log (agent_name, agent_id);

-- Questions to people.
CREATE TABLE approvals (
    id            text COLLATE "C" PRIMARY KEY,
    agent_id      uuid NOT NULL,
    agent_name    text NOT NULL,
    -- name of the conversation at that time
    conversation  text,
    turn_id       uuid NOT NULL,
    -- the model's id of the call
    call_id       text NOT NULL,
    action        bytea NOT NULL,
    -- SHA-256 of what runs when it is approved, with all that it is bound to
    action_hash   bytea NOT NULL,
    nonce         uuid NOT NULL,
    -- why it needs an approval, as JSON
    verdict       text NOT NULL,
    -- why it cannot be approved permanently, if it cannot
    not_always    text,
    requester     text NOT NULL,
    asked_at      bigint NOT NULL,
    expires_at    bigint NOT NULL,
    -- open, approved, denied, expired
    status        text NOT NULL,
    decided_at    bigint,
    decided_by    text,
    -- identifies the write that decided, if its answer is lost
    decided_write uuid
);
CREATE INDEX approvals_open ON approvals (agent_id, asked_at) WHERE status = 'open';
CREATE INDEX approvals_decided ON approvals (asked_at DESC, id) WHERE status <> 'open';
CREATE INDEX approvals_decided_of_agent ON approvals (agent_id, asked_at DESC, id) WHERE status <> 'open';

-- Calls of models.
CREATE TABLE usage (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- the node that made the call: its rows are committed in the order of their ids
    node            text NOT NULL,
    -- identifies the write, if its answer is lost
    write_id        uuid NOT NULL,
    at              bigint NOT NULL,
    agent_id        uuid NOT NULL,
    -- at that time
    agent_name      text COLLATE "C" NOT NULL,
    context         bigint,
    -- NULL: `main`
    conversation_id uuid,
    turn_id         uuid,
    -- provider/model
    model           text COLLATE "C" NOT NULL,
    kind            text NOT NULL,
    -- tokens; of the whole input, with what was read from the provider's cache and written to it
    input           bigint NOT NULL,
    -- estimated before the call; 0 if it was not
    estimated       bigint NOT NULL,
    output          bigint NOT NULL,
    cache_read      bigint NOT NULL,
    cache_write     bigint NOT NULL,
    by_estimate     boolean NOT NULL,
    -- NULL: no price is known
    cost_usd        float8,
    duration_ms     bigint NOT NULL
);
CREATE INDEX usage_of_node ON usage (node, id);
CREATE INDEX usage_by_time ON usage (at);
CREATE INDEX usage_of_agent ON usage (agent_id, at);
CREATE INDEX usage_by_name ON usage (agent_name, agent_id);
CREATE INDEX usage_with_both_counts ON usage (id) WHERE estimated > 0 AND NOT by_estimate;

-- Usage of conversations of other programs. A session in the trash keeps its rows.
CREATE TABLE imported_usage (
    session_id   uuid NOT NULL,
    -- as the program names it
    model        bytea NOT NULL,
    -- since 1970
    quarter_hour bigint NOT NULL,
    calls        bigint NOT NULL,
    -- tokens; of the whole input, with what was read from the provider's cache and written to it
    input        bigint NOT NULL,
    output       bigint NOT NULL,
    cache_read   bigint NOT NULL,
    cache_write  bigint NOT NULL,
    -- the recorded cost, of the calls that have one
    cost_usd     float8 NOT NULL,
    with_cost    bigint NOT NULL,
    -- calls with more output than was recorded
    lower_bound  bigint NOT NULL,
    PRIMARY KEY (session_id, model, quarter_hour)
);
CREATE INDEX imported_usage_by_time ON imported_usage (quarter_hour);

-- The calls that count for a session, so that those of a fork or a revision count once.
CREATE TABLE imported_calls (
    session_id uuid PRIMARY KEY,
    agent_id   uuid,
    -- hash of the first call of the conversation, for whichever session it counts
    first      bigint NOT NULL,
    -- hash of all calls of the conversation
    digest     bytea NOT NULL,
    -- hashes of the calls
    calls      bigint[] NOT NULL
);
CREATE INDEX imported_calls_by_first ON imported_calls (first);
CREATE INDEX imported_calls_of_agent ON imported_calls (agent_id);

-- Commands in the background.
CREATE TABLE tasks (
    id              text COLLATE "C" PRIMARY KEY,
    -- the number in its id
    number          bigint NOT NULL
        GENERATED ALWAYS AS (coalesce(substring(id FROM '^.([0-9]{1,18})')::bigint, 0)) STORED,
    agent_id        uuid NOT NULL,
    -- NULL: `main`
    conversation_id uuid,
    -- when it was started
    agent_name      text NOT NULL,
    command         text NOT NULL,
    -- with its start in clock ticks since the boot, and that boot: a pid alone comes again
    pid             bigint NOT NULL,
    pid_started     bigint NOT NULL,
    boot            text NOT NULL,
    status          text NOT NULL CHECK (status IN ('running', 'completed', 'failed', 'stopped', 'lost')),
    exit_code       bigint,
    signal          bigint,
    started_at      bigint NOT NULL,
    ended_at        bigint,
    -- below the agent's directory, which may move
    log_path        text NOT NULL,
    -- its end was reported to the agent
    reported        boolean NOT NULL DEFAULT false
);
CREATE INDEX tasks_by_number ON tasks (number);
CREATE INDEX tasks_unreported ON tasks (agent_id, started_at) WHERE NOT reported;
CREATE INDEX tasks_ended ON tasks (agent_id) WHERE status <> 'running';
-- in the order in which they are listed
CREATE INDEX tasks_in_order ON tasks
    ((status <> 'running'), (coalesce(ended_at, started_at)) DESC, started_at DESC, id);
CREATE INDEX tasks_of_agent_in_order ON tasks
    (agent_id, (status <> 'running'), (coalesce(ended_at, started_at)) DESC, started_at DESC, id);

-- What agents are to remember.
CREATE TABLE memories (
    number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         uuid NOT NULL UNIQUE,
    -- identifies the write that added it, if its answer is lost
    write_id   uuid NOT NULL,
    -- its agent, or the one that wrote it for the project
    agent_id   uuid NOT NULL,
    agent_name text NOT NULL,
    -- the agents that name the project share it; NULL: it is the agent's own
    project    text,
    text       text NOT NULL,
    path       text,
    created_at bigint NOT NULL,
    -- on whose behalf
    requester  text NOT NULL,
    source     text NOT NULL CHECK (source IN ('hand', 'tool')),
    message_id text
);
CREATE INDEX memories_of_agent ON memories (agent_id, number);
CREATE INDEX memories_own ON memories (agent_id) WHERE project IS NULL;
CREATE INDEX memories_of_project ON memories (project) WHERE project IS NOT NULL;

-- The last write of each file by each conversation of an agent that has several.
CREATE TABLE file_writes (
    agent_id        uuid NOT NULL,
    -- in the workspace
    path            text COLLATE "C" NOT NULL,
    -- that of `main` is the agent's
    conversation_id uuid NOT NULL,
    -- SHA-256 of the content; NULL: it has parts that this conversation had not seen
    hash            bytea,
    -- a number that grows with each write
    at              bigint NOT NULL,
    PRIMARY KEY (agent_id, path, conversation_id)
);
CREATE INDEX file_writes_by_time ON file_writes (at);

-- The conversations that ran commands in a workspace which they share.
CREATE TABLE workspace_commands (
    agent_id        uuid NOT NULL,
    conversation_id uuid NOT NULL,
    PRIMARY KEY (agent_id, conversation_id)
);
