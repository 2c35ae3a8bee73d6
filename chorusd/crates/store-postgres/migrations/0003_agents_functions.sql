-- Functions of the tables in 0003_agents.sql, which run in the same step.

-- The fence of a write whose agent only the database knows: locks the agent's row until the end of the
-- transaction. Fails unless this process owns the agent.
CREATE FUNCTION require_owner(in_agent uuid, in_node text, in_boot bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM heads WHERE agent_id = in_agent AND owner_node = in_node AND owner_boot = in_boot FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another node took agent % over', in_agent USING ERRCODE = 'CH002';
    END IF;
END $$;

-- Inserts or updates an agent. True if something changed that concerns its sessions: status, directory or name.
CREATE FUNCTION upsert_agent(in_id uuid, in_name text, in_status text, in_created bigint, in_dir text, in_config text,
    in_stamp text)
RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    before record;
BEGIN
    SELECT status, dir, name INTO before FROM agents WHERE id = in_id;
    IF FOUND THEN
        UPDATE agents SET name = in_name, status = in_status, dir = in_dir, config = in_config, stamp = in_stamp,
            destroyed_at = NULL
        WHERE id = in_id;
        RETURN (before.status, before.dir, before.name) IS DISTINCT FROM (in_status, in_dir, in_name);
    END IF;
    INSERT INTO agents (id, name, status, created_at, dir, config, stamp)
    VALUES (in_id, in_name, in_status, in_created, in_dir, in_config, in_stamp);
    RETURN true;
END $$;

-- A field of an audit row as it is hashed: its length and its bytes.
CREATE FUNCTION audit_field(in_bytes bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
    SELECT int8send(octet_length(in_bytes)::bigint) || in_bytes;
$$;

-- The same of one that may be missing.
CREATE FUNCTION audit_optional_field(in_bytes bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN in_bytes IS NULL THEN '\x00'::bytea ELSE '\x01'::bytea || audit_field(in_bytes) END;
$$;

-- Appends a decision to the chain of a node, whose transactions come one after the other.
CREATE FUNCTION append_audit(in_node text, in_at bigint, in_agent uuid, in_agent_name text, in_turn uuid,
    in_action bytea, in_decision text, in_rule bytea, in_requester bytea, in_old bytea, in_new bytea)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    last bigint;
    last_hash bytea;
BEGIN
    SELECT number, hash INTO last, last_hash FROM audit_log WHERE node = in_node ORDER BY number DESC LIMIT 1;
    IF NOT FOUND THEN
        last := 0;
        last_hash := decode(repeat('00', 32), 'hex');
    ELSIF octet_length(last_hash) <> 32 THEN
        RAISE EXCEPTION 'entry % of the audit log was changed: its hash has % bytes, not 32',
            last, octet_length(last_hash) USING ERRCODE = 'CH005';
    END IF;
    INSERT INTO audit_log (node, number, at, agent_id, agent_name, turn_id, action, decision, rule, requester, old, new,
        hash)
    VALUES (in_node, last + 1, in_at, in_agent, in_agent_name, in_turn, in_action, in_decision, in_rule, in_requester,
        in_old, in_new,
        sha256(last_hash || int8send(last + 1) || int8send(in_at) || audit_field(uuid_send(in_agent))
            || audit_field(convert_to(in_agent_name, 'UTF8')) || audit_optional_field(uuid_send(in_turn))
            || audit_field(in_action) || audit_field(convert_to(in_decision, 'UTF8')) || audit_field(in_rule)
            || audit_field(in_requester) || audit_optional_field(in_old) || audit_optional_field(in_new)));
END $$;

-- Records the outcome of an approval with its row of the audit log. False, without a change, if it was not open.
CREATE FUNCTION decide_approval(in_id text, in_status text, in_decided_at bigint, in_by text, in_write uuid,
    in_node text, in_at bigint, in_agent uuid, in_agent_name text, in_turn uuid, in_action bytea, in_decision text,
    in_rule bytea, in_requester bytea, in_old bytea, in_new bytea)
RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE approvals SET status = in_status, decided_at = in_decided_at, decided_by = in_by, decided_write = in_write
    WHERE id = in_id AND status = 'open';
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM append_audit(in_node, in_at, in_agent, in_agent_name, in_turn, in_action, in_decision, in_rule,
        in_requester, in_old, in_new);
    RETURN true;
END $$;

-- Adds a number to a sum: x of the point, and y, the part that the sum lost by rounding.
CREATE FUNCTION add_to_total(in_state point, in_cost float8) RETURNS point
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    total float8 := in_state[0] + in_cost;
BEGIN
    IF abs(in_state[0]) > abs(in_cost) THEN
        RETURN point(total, in_state[1] + ((in_state[0] - total) + in_cost));
    END IF;
    RETURN point(total, in_state[1] + ((in_cost - total) + in_state[0]));
END $$;

CREATE FUNCTION read_total(in_state point) RETURNS float8
LANGUAGE sql IMMUTABLE AS $$ SELECT in_state[0] + in_state[1]; $$;

-- The sum of amounts of money, 0 of none, with the error of rounding made up for as SQLite's `total` does: whatever the
-- order, ten times 0.1 is 1.
CREATE AGGREGATE total_cost(float8) (
    SFUNC = add_to_total, STYPE = point, INITCOND = '(0,0)', FINALFUNC = read_total
);

-- Records the usage of a session in place of what was recorded before. Calls that count for other sessions of the same
-- conversation, or for those with the same first call, are left out. The arrays have one element for each call.
CREATE FUNCTION record_imported_usage(in_session uuid, in_digest bytea, in_models bytea[], in_keys bigint[],
    in_model bigint[], in_quarter bigint[], in_calls bigint[], in_input bigint[], in_output bigint[],
    in_cache_read bigint[], in_cache_write bigint[], in_cost float8[], in_with_cost bigint[], in_lower_bound bigint[])
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    own record;
    lock_key bigint;
BEGIN
    DELETE FROM imported_usage WHERE session_id = in_session;
    DELETE FROM imported_calls WHERE session_id = in_session;
    IF cardinality(in_keys) = 0 THEN
        RETURN;
    END IF;
    SELECT agent_id, source_program, source_conversation INTO own FROM sessions WHERE id = in_session;
    -- Two nodes may record conversations that share calls: the second one has to see what counts for the first.
    FOR lock_key IN
        SELECT key FROM unnest(ARRAY[
            hashtextextended('imported call ' || in_keys[1], 0),
            hashtextextended('imported conversation ' || own.source_program || ' ' || own.source_conversation, 0)
        ]) AS keys (key) WHERE key IS NOT NULL ORDER BY key
    LOOP
        PERFORM pg_advisory_xact_lock(lock_key);
    END LOOP;
    WITH shared AS (
        SELECT DISTINCT unnest(c.calls) AS key FROM imported_calls c
        WHERE c.session_id <> in_session AND EXISTS (SELECT FROM sessions WHERE id = c.session_id)
            AND c.session_id IN (
                SELECT session_id FROM imported_calls WHERE first = in_keys[1]
                UNION ALL
                SELECT id FROM sessions
                WHERE source_program = own.source_program AND source_conversation = own.source_conversation)
    ), counted AS MATERIALIZED (
        SELECT * FROM unnest(in_keys, in_model, in_quarter, in_calls, in_input, in_output, in_cache_read,
            in_cache_write, in_cost, in_with_cost, in_lower_bound) WITH ORDINALITY
            AS call (key, model, quarter, calls, input, output, cache_read, cache_write, cost, with_cost, lower_bound,
                place)
        WHERE NOT EXISTS (SELECT FROM shared WHERE shared.key = call.key)
    ), listed AS (
        INSERT INTO imported_calls (session_id, agent_id, first, digest, calls)
        VALUES (in_session, own.agent_id, in_keys[1], in_digest,
            coalesce((SELECT array_agg(key ORDER BY place) FROM counted), '{}'))
    )
    INSERT INTO imported_usage (session_id, model, quarter_hour, calls, input, output, cache_read, cache_write,
        cost_usd, with_cost, lower_bound)
    SELECT in_session, coalesce(in_models[model + 1], ''), quarter, clamp(sum(calls)), clamp(sum(input)),
        clamp(sum(output)), clamp(sum(cache_read)), clamp(sum(cache_write)), sum(cost ORDER BY place),
        clamp(sum(with_cost)), clamp(sum(lower_bound))
    FROM counted GROUP BY model, quarter;
END $$;

-- A sum as a number of 64 bits, the highest one if it is higher.
CREATE FUNCTION clamp(in_sum numeric) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT least(in_sum, 9223372036854775807)::bigint; $$;

-- Stores a memory, unless the same agent or project has an equal one. Fails if it has `in_most`. The memory gets the id
-- `in_spare` if `in_id` is in use.
CREATE FUNCTION insert_memory(in_id uuid, in_spare uuid, in_write uuid, in_agent uuid, in_agent_name text, in_project text,
    in_text text, in_path text, in_at bigint, in_requester text, in_source text, in_message text, in_most bigint)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    known bigint;
BEGIN
    -- Nodes that write for one project wait for each other; an agent's own memory has one writer.
    IF in_project IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock(hashtextextended('memories of ' || in_project, 0));
    END IF;
    IF find_memory(in_agent, in_project, in_text, in_path) IS NOT NULL THEN
        RETURN;
    END IF;
    IF in_project IS NULL THEN
        SELECT count(*) INTO known FROM memories WHERE agent_id = in_agent AND project IS NULL;
    ELSE
        SELECT count(*) INTO known FROM memories WHERE project = in_project;
    END IF;
    IF known >= in_most THEN
        RAISE EXCEPTION '% %', known, in_id
            USING ERRCODE = 'CH004', DETAIL = 'the number of memories, and the id of the one that was refused';
    END IF;
    INSERT INTO memories (id, write_id, agent_id, agent_name, project, text, path, created_at, requester, source,
        message_id)
    VALUES (CASE WHEN EXISTS (SELECT FROM memories WHERE id = in_id) THEN in_spare ELSE in_id END, in_write, in_agent,
        in_agent_name, in_project, in_text, in_path, in_at, in_requester, in_source, in_message);
END $$;

-- The id of an equal memory of the agent or project.
CREATE FUNCTION find_memory(in_agent uuid, in_project text, in_text text, in_path text) RETURNS uuid
LANGUAGE plpgsql STABLE AS $$
DECLARE
    found_id uuid;
BEGIN
    IF in_project IS NULL THEN
        SELECT id INTO found_id FROM memories WHERE agent_id = in_agent AND project IS NULL AND text = in_text
            AND path IS NOT DISTINCT FROM in_path LIMIT 1;
    ELSE
        SELECT id INTO found_id FROM memories WHERE project = in_project AND text = in_text
            AND path IS NOT DISTINCT FROM in_path LIMIT 1;
    END IF;
    RETURN found_id;
END $$;
