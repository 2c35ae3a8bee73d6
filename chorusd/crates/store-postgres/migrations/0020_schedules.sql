-- Messages that agents get at certain times.
CREATE TABLE schedules (
    id            uuid PRIMARY KEY,
    agent_id      uuid NOT NULL,
    name          text COLLATE "C" NOT NULL,
    -- one of these says when
    cron          text,
    -- counted from the creation
    every_seconds bigint,
    once_at       bigint,
    -- of the cron expression
    time_zone     text NOT NULL,
    message       text NOT NULL,
    missed        text NOT NULL CHECK (missed IN ('run', 'skip')),
    created_at    bigint NOT NULL,
    -- on whose behalf
    created_by    text NOT NULL,
    state         text NOT NULL CHECK (state IN ('active', 'paused', 'done')),
    next_at       bigint,
    -- when the run was due that is under way, and the one that comes after it
    pending_at    bigint,
    overdue_at    bigint,
    -- the last runs as JSON, newest first
    runs          text NOT NULL,
    -- grows with each change
    version       bigint NOT NULL
);
CREATE UNIQUE INDEX schedules_of_agent ON schedules (agent_id, name);
CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX schedules_pending ON schedules (pending_at) WHERE pending_at IS NOT NULL;
