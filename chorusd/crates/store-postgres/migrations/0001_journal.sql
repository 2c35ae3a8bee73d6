-- Nodes, the owners of agents, and the journal of live contexts. Times of contexts, events and keys are nanoseconds
-- since 1970, which the daemons take from their clocks; times of heartbeats are those of the database.

CREATE TABLE nodes (
    id        text PRIMARY KEY,
    boot      bigint NOT NULL,
    address   text NOT NULL,
    version   text NOT NULL,
    heartbeat timestamptz NOT NULL,
    stopped   boolean NOT NULL
);

-- One row for the connection of each node that writes. Its transactions begin by counting up `batch`: after a lost
-- connection, the next one sees by it which were committed.
CREATE TABLE writers (
    node       text PRIMARY KEY REFERENCES nodes,
    boot       bigint NOT NULL,
    connection bigint NOT NULL,
    batch      bigint NOT NULL,
    -- number of the node's newest event
    event      bigint NOT NULL
) WITH (fillfactor = 20);

-- One row for each agent: who owns it, and how often that changed.
CREATE TABLE heads (
    agent_id   uuid PRIMARY KEY,
    owner_node text,
    owner_boot bigint,
    epoch      bigint NOT NULL,
    wanted_by  text
) WITH (fillfactor = 50);

-- Each process takes a number, which its contexts have in their upper 32 bits.
CREATE SEQUENCE processes MAXVALUE 2147483647;

CREATE TABLE contexts (
    id               bigint PRIMARY KEY,
    agent_id         uuid NOT NULL,
    -- NULL: `main`
    conversation_id  uuid,
    started_at       bigint NOT NULL,
    last_activity_at bigint NOT NULL,
    idle_deadline_at bigint,
    messages         bigint NOT NULL DEFAULT 0,
    queries          bigint NOT NULL DEFAULT 0,
    chars            bigint NOT NULL DEFAULT 0,
    parent_id        uuid,
    saved_messages   bigint NOT NULL DEFAULT 0,
    saved_session    uuid,
    base_session     uuid,
    turn             uuid,
    restored_input   bigint NOT NULL DEFAULT 0,
    restored_output  bigint NOT NULL DEFAULT 0,
    -- number of its newest record; -1: none
    last_record      bigint NOT NULL DEFAULT -1,
    -- of a context that has ended only the records that are not trimmed yet are left
    ended            boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);
CREATE INDEX contexts_by_agent ON contexts (agent_id);

CREATE TABLE records (
    context_id bigint NOT NULL,
    number     bigint NOT NULL,
    -- number of the record before it, so that a missing one is noticed; -1: none
    before     bigint NOT NULL,
    envelope   bytea NOT NULL,
    PRIMARY KEY (context_id, number)
);

CREATE TABLE conversations (
    id         uuid PRIMARY KEY,
    agent_id   uuid NOT NULL,
    name       text NOT NULL,
    origin     text,
    title      text,
    created_at bigint NOT NULL,
    closed_at  bigint,
    selected   boolean NOT NULL,
    worktree   text
);
CREATE UNIQUE INDEX conversations_by_name ON conversations (agent_id, name);
CREATE UNIQUE INDEX conversations_by_origin ON conversations (agent_id, origin) WHERE origin IS NOT NULL;

CREATE TABLE append_keys (
    conversation_id uuid NOT NULL,
    key             text NOT NULL,
    appended        bigint NOT NULL,
    messages        bigint NOT NULL,
    -- the first record that it added
    context_id      bigint NOT NULL,
    first_record    bigint NOT NULL,
    at              bigint NOT NULL,
    PRIMARY KEY (conversation_id, key)
);
CREATE INDEX append_keys_by_time ON append_keys (at);

CREATE TABLE turn_keys (
    conversation_id uuid NOT NULL,
    key             text NOT NULL,
    turn            uuid NOT NULL,
    answer          text,
    at              bigint NOT NULL,
    PRIMARY KEY (conversation_id, key)
);
CREATE INDEX turn_keys_by_time ON turn_keys (at);

-- The event log of each node, numbered without gaps.
CREATE TABLE events (
    node         text NOT NULL,
    seq          bigint NOT NULL,
    at           bigint NOT NULL,
    type         text NOT NULL,
    agent        text,
    conversation text,
    data         text NOT NULL,
    PRIMARY KEY (node, seq)
);

-- Begins a transaction of a node's writer. Fails unless it comes from the newest connection of the newest process of
-- that node, and next after the last one.
CREATE FUNCTION begin_batch(in_node text, in_boot bigint, in_connection bigint, in_batch bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE writers SET batch = in_batch
    WHERE node = in_node AND boot = in_boot AND connection = in_connection AND batch = in_batch - 1;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another connection writes for node %', in_node USING ERRCODE = 'CH001';
    END IF;
END $$;

-- The fence: locks the row of the agent until the end of the transaction. Fails unless its epoch is still this one.
CREATE FUNCTION require_epoch(in_agent uuid, in_epoch bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM heads WHERE agent_id = in_agent AND epoch = in_epoch FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another node took agent % over', in_agent USING ERRCODE = 'CH002';
    END IF;
END $$;

-- Inserts an event of a node and returns its number. Old events are deleted now and then.
CREATE FUNCTION insert_event(in_node text, in_at bigint, in_type text, in_agent text, in_conversation text, in_data text)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    number bigint;
BEGIN
    UPDATE writers SET event = event + 1 WHERE node = in_node RETURNING event INTO number;
    INSERT INTO events (node, seq, at, type, agent, conversation, data)
    VALUES (in_node, number, in_at, in_type, in_agent, in_conversation, in_data);
    IF number % 1000 = 0 THEN
        DELETE FROM events WHERE node = in_node AND seq <= number - 10000;
    END IF;
    RETURN number;
END $$;

-- Inserts the row of a context, if it has none.
CREATE FUNCTION insert_context(in_id bigint, in_agent uuid, in_conversation uuid, in_started bigint, in_deadline bigint,
    in_parent uuid)
RETURNS void
LANGUAGE sql AS $$
    INSERT INTO contexts (id, agent_id, conversation_id, started_at, last_activity_at, idle_deadline_at, parent_id)
    VALUES (in_id, in_agent, in_conversation, in_started, in_started, in_deadline, in_parent)
    ON CONFLICT (id) DO NOTHING;
$$;

-- Adds records to a context that exists, numbered from `in_first`, and the totals of their messages. Sets the time of
-- the last activity and the deadline, if a time is given. Returns the number of messages of the context.
CREATE FUNCTION insert_records(in_context bigint, in_first bigint, in_envelopes bytea[], in_messages bigint,
    in_queries bigint, in_chars bigint, in_at bigint, in_deadline bigint)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    last bigint;
    total bigint;
BEGIN
    SELECT last_record INTO last FROM contexts WHERE id = in_context;
    IF NOT FOUND OR last >= in_first THEN
        RAISE EXCEPTION 'record % of context % cannot follow record %', in_first, in_context, last
            USING ERRCODE = 'CH003';
    END IF;
    INSERT INTO records (context_id, number, before, envelope)
    SELECT in_context, in_first + place - 1, CASE place WHEN 1 THEN last ELSE in_first + place - 2 END, added
    FROM unnest(in_envelopes) WITH ORDINALITY AS list (added, place);
    UPDATE contexts SET last_record = CASE cardinality(in_envelopes)
            WHEN 0 THEN last_record ELSE in_first + cardinality(in_envelopes) - 1 END,
        messages = messages + in_messages, queries = queries + in_queries, chars = chars + in_chars,
        last_activity_at = coalesce(in_at, last_activity_at),
        idle_deadline_at = CASE WHEN in_at IS NULL THEN idle_deadline_at ELSE in_deadline END
    WHERE id = in_context RETURNING messages INTO total;
    RETURN total;
END $$;

-- Stores the start (`in_opens`) or the end of a turn.
CREATE FUNCTION mark_turn(in_conversation uuid, in_context bigint, in_opens boolean, in_turn uuid, in_key text,
    in_answer text, in_at bigint)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE contexts SET turn = CASE WHEN in_opens THEN in_turn END WHERE id = in_context;
    IF in_opens AND in_key IS NOT NULL THEN
        INSERT INTO turn_keys (conversation_id, key, turn, at) VALUES (in_conversation, in_key, in_turn, in_at);
    ELSIF in_key IS NOT NULL AND in_answer IS NOT NULL THEN
        UPDATE turn_keys SET answer = in_answer WHERE conversation_id = in_conversation AND key = in_key;
    END IF;
END $$;

-- Appends messages. `outcome`: 'added', or 'append' or 'turn' if it repeats an append or a turn by its key, and adds
-- nothing. Each statement of a function sees what was committed before it began: after `require_epoch`, all that
-- earlier owners wrote.
CREATE FUNCTION append_messages(in_agent uuid, in_conversation uuid, in_stored_conversation uuid, in_context bigint,
    in_started bigint, in_begin_deadline bigint, in_parent uuid, in_first bigint, in_envelopes bytea[],
    in_queries bigint, in_chars bigint, in_at bigint, in_deadline bigint, in_key text,
    in_opens boolean, in_turn uuid, in_turn_key text, in_turn_answer text,
    in_node text, in_agent_name text, in_conversation_name text)
RETURNS TABLE (outcome text, appended bigint, messages bigint, turn uuid, answer text, event bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    added bigint := cardinality(in_envelopes);
    total bigint;
    number bigint;
BEGIN
    IF in_key IS NOT NULL THEN
        RETURN QUERY SELECT 'append', k.appended, k.messages, NULL::uuid, NULL::text, NULL::bigint
            FROM append_keys k WHERE k.conversation_id = in_conversation AND k.key = in_key;
        IF FOUND THEN RETURN; END IF;
    END IF;
    IF in_opens AND in_turn_key IS NOT NULL THEN
        RETURN QUERY SELECT 'turn', NULL::bigint, NULL::bigint, k.turn, k.answer, NULL::bigint
            FROM turn_keys k WHERE k.conversation_id = in_conversation AND k.key = in_turn_key;
        IF FOUND THEN RETURN; END IF;
    END IF;
    IF in_first = 0 THEN
        PERFORM insert_context(in_context, in_agent, in_stored_conversation, in_started, in_begin_deadline, in_parent);
    END IF;
    total := insert_records(in_context, in_first, in_envelopes, added, in_queries, in_chars, in_at, in_deadline);
    IF in_opens IS NOT NULL THEN
        PERFORM mark_turn(in_conversation, in_context, in_opens, in_turn, in_turn_key, in_turn_answer, in_at);
    END IF;
    IF in_key IS NOT NULL THEN
        INSERT INTO append_keys (conversation_id, key, appended, messages, context_id, first_record, at)
        VALUES (in_conversation, in_key, added, total, in_context, in_first, in_at);
    END IF;
    IF added > 0 THEN
        number := insert_event(in_node, in_at, 'message.appended', in_agent_name, in_conversation_name,
            format('{"appended":%s,"messages":%s}', added, total));
    END IF;
    RETURN QUERY SELECT 'added', added, total, NULL::uuid, NULL::text, number;
END $$;

-- The outcome of an append that was committed while its answer was lost, in the columns of `append_messages`.
CREATE FUNCTION find_append(in_conversation uuid, in_context bigint, in_first bigint, in_added bigint, in_key text,
    in_opens boolean, in_turn uuid, in_turn_key text)
RETURNS TABLE (outcome text, appended bigint, messages bigint, turn uuid, answer text, event bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    IF in_key IS NOT NULL THEN
        RETURN QUERY SELECT
            CASE WHEN k.context_id = in_context AND k.first_record = in_first THEN 'added' ELSE 'append' END,
            k.appended, k.messages, NULL::uuid, NULL::text, NULL::bigint
            FROM append_keys k WHERE k.conversation_id = in_conversation AND k.key = in_key;
        IF FOUND THEN RETURN; END IF;
    END IF;
    IF in_opens AND in_turn_key IS NOT NULL THEN
        RETURN QUERY SELECT 'turn', NULL::bigint, NULL::bigint, k.turn, k.answer, NULL::bigint
            FROM turn_keys k WHERE k.conversation_id = in_conversation AND k.key = in_turn_key AND k.turn <> in_turn;
        IF FOUND THEN RETURN; END IF;
    END IF;
    RETURN QUERY SELECT 'added', in_added, c.messages, NULL::uuid, NULL::text, NULL::bigint
        FROM contexts c WHERE c.id = in_context;
END $$;
