-- Appends that add one message to a context that exists, which is what most appends do. A transaction of only such appends is
-- one statement: it begins as `begin_batch` does, locks the agents as `require_epoch` does, and returns the columns of
-- `append_messages`. It fails as a whole, also if a record does not follow the newest one of its context.

-- One append.
CREATE FUNCTION append_one(in_node text, in_boot bigint, in_connection bigint, in_batch bigint,
    in_agent uuid, in_epoch bigint, in_context bigint, in_number bigint, in_envelope bytea,
    in_queries bigint, in_chars bigint, in_at bigint, in_deadline bigint,
    in_agent_name text, in_conversation_name text)
RETURNS TABLE (outcome text, appended bigint, messages bigint, turn uuid, answer text, event bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    total bigint;
    number bigint;
BEGIN
    UPDATE writers SET batch = in_batch, event = event + 1
    WHERE node = in_node AND boot = in_boot AND connection = in_connection AND batch = in_batch - 1
    RETURNING event INTO number;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another connection writes for node %', in_node USING ERRCODE = 'CH001';
    END IF;
    PERFORM FROM heads WHERE agent_id = in_agent AND epoch = in_epoch FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another node took agent % over', in_agent USING ERRCODE = 'CH002';
    END IF;
    UPDATE contexts SET last_record = in_number, messages = messages + 1, queries = queries + in_queries,
        chars = chars + in_chars, last_activity_at = in_at, idle_deadline_at = in_deadline
    WHERE id = in_context AND last_record = in_number - 1 RETURNING messages INTO total;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'record % of context % cannot follow', in_number, in_context USING ERRCODE = 'CH003';
    END IF;
    INSERT INTO records (context_id, number, before, envelope)
    VALUES (in_context, in_number, in_number - 1, in_envelope);
    INSERT INTO events (node, seq, at, type, agent, conversation, data)
    VALUES (in_node, number, in_at, 'message.appended', in_agent_name, in_conversation_name,
        '{"appended":1,"messages":' || total || '}');
    IF number % 1000 = 0 THEN
        DELETE FROM events WHERE node = in_node AND seq <= number - 10000;
    END IF;
    RETURN QUERY SELECT 'added', 1::bigint, total, NULL::uuid, NULL::text, number;
END $$;

-- Several appends to as many contexts. All arrays have one entry for each; the rows come in their order.
CREATE FUNCTION append_each(in_node text, in_boot bigint, in_connection bigint, in_batch bigint,
    in_agents uuid[], in_epochs bigint[], in_contexts bigint[], in_numbers bigint[], in_envelopes bytea[],
    in_queries bigint[], in_chars bigint[], in_ats bigint[], in_deadlines bigint[],
    in_agent_names text[], in_conversation_names text[])
RETURNS TABLE (outcome text, appended bigint, messages bigint, turn uuid, answer text, event bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    added bigint := cardinality(in_contexts);
    last bigint;
    done bigint;
BEGIN
    UPDATE writers SET batch = in_batch, event = event + added
    WHERE node = in_node AND boot = in_boot AND connection = in_connection AND batch = in_batch - 1
    RETURNING event - added INTO last;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another connection writes for node %', in_node USING ERRCODE = 'CH001';
    END IF;
    PERFORM FROM unnest(in_agents, in_epochs) AS wanted (agent, epoch)
        JOIN heads ON heads.agent_id = wanted.agent AND heads.epoch = wanted.epoch
        FOR SHARE OF heads;
    GET DIAGNOSTICS done = ROW_COUNT;
    IF done <> added THEN
        RAISE EXCEPTION 'another node took % agents over', added - done USING ERRCODE = 'CH002';
    END IF;
    RETURN QUERY
        WITH changed AS (
            UPDATE contexts SET last_record = list.number, messages = contexts.messages + 1,
                queries = contexts.queries + list.queries, chars = contexts.chars + list.chars,
                last_activity_at = list.at, idle_deadline_at = list.deadline
            FROM unnest(in_contexts, in_numbers, in_envelopes, in_queries, in_chars, in_ats, in_deadlines,
                    in_agent_names, in_conversation_names) WITH ORDINALITY
                AS list (context, number, envelope, queries, chars, at, deadline, agent_name, conversation_name, place)
            WHERE contexts.id = list.context AND contexts.last_record = list.number - 1
            RETURNING list.context, list.number, list.envelope, list.at, list.agent_name, list.conversation_name,
                list.place, contexts.messages),
        inserted AS (
            INSERT INTO records (context_id, number, before, envelope)
            SELECT context, number, number - 1, envelope FROM changed),
        logged AS (
            INSERT INTO events (node, seq, at, type, agent, conversation, data)
            SELECT in_node, last + place, at, 'message.appended', agent_name, conversation_name,
                '{"appended":1,"messages":' || messages || '}' FROM changed)
        SELECT 'added', 1::bigint, messages, NULL::uuid, NULL::text, last + place FROM changed ORDER BY place;
    GET DIAGNOSTICS done = ROW_COUNT;
    IF done <> added THEN
        RAISE EXCEPTION 'the records of % contexts cannot follow', added - done USING ERRCODE = 'CH003';
    END IF;
    IF last / 1000 <> (last + added) / 1000 THEN
        DELETE FROM events WHERE node = in_node AND seq <= last + added - 10000;
    END IF;
END $$;
