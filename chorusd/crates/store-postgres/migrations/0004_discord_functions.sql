-- Fences of the connection to Discord, and writes to its claims, channels and identifies. The functions of posts come before.

-- Keeps the result of a write until the next transaction of the node, and returns it.
CREATE FUNCTION keep_result(in_node text, in_token uuid, in_result bigint[]) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    current bigint;
BEGIN
    SELECT batch INTO current FROM writers WHERE node = in_node;
    DELETE FROM write_results WHERE node = in_node AND batch < current;
    INSERT INTO write_results (node, batch, token, result) VALUES (in_node, current, in_token, in_result);
    RETURN in_result;
END $$;

-- The fence of a lease: locks its row until the end of the transaction. Fails unless its epoch is still this one.
CREATE FUNCTION require_lease(in_kind text, in_id bigint, in_epoch bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM discord_leases WHERE kind = in_kind AND id = in_id AND epoch = in_epoch FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another node took the lease % % over', in_kind, in_id USING ERRCODE = 'CH020';
    END IF;
END $$;

-- The fence of a message or a channel of an agent: fails unless this process owns the agent, or holds the gateway in the
-- epoch given. Locks the row that says so.
CREATE FUNCTION require_agent_or_gateway(in_agent uuid, in_node text, in_boot bigint, in_epoch bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM heads WHERE agent_id = in_agent AND owner_node = in_node AND owner_boot = in_boot FOR SHARE;
    IF FOUND THEN RETURN; END IF;
    PERFORM FROM discord_leases WHERE kind = 'gateway' AND id = 0 AND epoch = in_epoch FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another node took agent % over', in_agent USING ERRCODE = 'CH002';
    END IF;
END $$;

-- The fence of a post that is being sent: fails unless this process tried it last, and still has the lease in which it did.
-- Returns the channel; NULL if the post does not exist.
CREATE FUNCTION require_sender(in_post bigint, in_node text, in_boot bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    post record;
BEGIN
    SELECT channel_id, lease_epoch INTO post FROM discord_outbox WHERE id = in_post;
    IF NOT FOUND THEN RETURN NULL; END IF;
    PERFORM FROM discord_leases WHERE kind = 'channel' AND id = post.channel_id AND epoch = post.lease_epoch
        AND owner_node = in_node AND owner_boot = in_boot FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another node sends post %', in_post USING ERRCODE = 'CH020';
    END IF;
    RETURN post.channel_id;
END $$;

-- Claims a message: 0 if it was claimed or skipped before, 1 if it was queued, 2 if the agent's queue is full.
CREATE FUNCTION claim_message(in_message bigint, in_channel bigint, in_agent uuid, in_request text, in_at bigint,
    in_contiguous boolean, in_most bigint, in_full_channel bigint, in_full_about text, in_full_body text,
    in_full_nonce text, in_full_notice bigint)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    skipped_upto bigint;
    is_full boolean;
    outcome bigint := 0;
BEGIN
    -- Locked, so that `prune_claims` and this come one after the other.
    SELECT skipped INTO skipped_upto FROM discord_channels WHERE channel_id = in_channel FOR UPDATE;
    IF skipped_upto IS NULL OR skipped_upto < in_message THEN
        SELECT count(*) >= in_most INTO is_full FROM discord_claims
            WHERE agent_id = in_agent AND state IN ('queued', 'running');
        INSERT INTO discord_claims (message_id, channel_id, agent_id, state, request, claimed_at)
            VALUES (in_message, in_channel, in_agent, CASE WHEN is_full THEN 'dropped' ELSE 'queued' END,
                CASE WHEN NOT is_full THEN in_request END, in_at)
            ON CONFLICT (message_id) DO NOTHING;
        IF FOUND THEN outcome := CASE WHEN is_full THEN 2 ELSE 1 END; END IF;
    END IF;
    IF outcome = 1 THEN
        PERFORM finalize_post(in_full_about);
    ELSIF outcome = 2 AND NOT EXISTS (SELECT FROM discord_outbox WHERE about = in_full_about) THEN
        PERFORM enqueue_post(in_full_channel, in_full_about, in_full_body, in_full_nonce, in_full_notice);
    END IF;
    IF in_contiguous THEN
        UPDATE discord_channels SET seen = in_message WHERE channel_id = in_channel AND seen < in_message;
    END IF;
    RETURN outcome;
END $$;

-- Changes the state of a claim that is not closed: `in_from` are the states that it may have. Returns 1 if it had one.
CREATE FUNCTION move_claim(in_message bigint, in_from text[], in_to text, in_node text, in_boot bigint, in_epoch bigint)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    agent uuid;
BEGIN
    SELECT agent_id INTO agent FROM discord_claims WHERE message_id = in_message AND state = ANY (in_from) FOR UPDATE;
    IF NOT FOUND THEN RETURN 0; END IF;
    PERFORM require_agent_or_gateway(agent, in_node, in_boot, in_epoch);
    UPDATE discord_claims SET state = in_to, request = CASE in_to WHEN 'running' THEN request END
        WHERE message_id = in_message;
    RETURN 1;
END $$;

-- Finishes a claim, and queues the posts that answer it, which are not changed any more. Returns 0 if it was finished before.
CREATE FUNCTION finish_claim(in_message bigint, in_channels bigint[], in_abouts text[], in_bodies text[],
    in_nonces text[], in_notices bigint[], in_node text, in_boot bigint, in_epoch bigint)
RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    IF move_claim(in_message, ARRAY['queued', 'running'], 'done', in_node, in_boot, in_epoch) = 0 THEN
        RETURN 0;
    END IF;
    PERFORM enqueue_posts(in_channels, in_abouts, in_bodies, in_nonces, in_notices);
    PERFORM finalize_post(about) FROM unnest(in_abouts) AS about WHERE about IS NOT NULL;
    RETURN 1;
END $$;

-- Deletes old claims of messages up to which all were read, and skips these messages from then on.
CREATE FUNCTION prune_claims(in_before bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    channels bigint[] := ARRAY(
        SELECT DISTINCT channel_id FROM discord_claims WHERE state IN ('done', 'dropped') AND claimed_at < in_before);
BEGIN
    PERFORM FROM discord_channels WHERE channel_id = ANY (channels) ORDER BY channel_id FOR UPDATE;
    WITH gone AS (
        DELETE FROM discord_claims c WHERE state IN ('done', 'dropped') AND claimed_at < in_before
            -- one look-up for each claim, however many channels there are
            AND coalesce((SELECT seen >= c.message_id FROM discord_channels d WHERE d.channel_id = c.channel_id), true)
            RETURNING channel_id, message_id
    ), newest AS (SELECT channel_id, max(message_id) AS message_id FROM gone GROUP BY channel_id)
    UPDATE discord_channels d SET skipped = n.message_id FROM newest n
        WHERE d.channel_id = n.channel_id AND d.skipped < n.message_id;
END $$;

-- Deletes the row of a channel and those of the threads below it. Returns 0 if there was none.
CREATE FUNCTION delete_channel(in_channel bigint, in_node text, in_boot bigint, in_epoch bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    gone record;
    deleted bigint := 0;
BEGIN
    FOR gone IN DELETE FROM discord_channels WHERE channel_id = in_channel OR parent_id = in_channel RETURNING agent_id LOOP
        PERFORM require_agent_or_gateway(gone.agent_id, in_node, in_boot, in_epoch);
        deleted := 1;
    END LOOP;
    RETURN deleted;
END $$;

-- Records a new session of the gateway, unless there were `in_most` since a time. Returns their number, the oldest, the newest,
-- and 1 if one was recorded. Those from the future are moved to now.
CREATE FUNCTION record_identify(in_now bigint, in_since bigint, in_most bigint) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    recorded bigint := 0;
BEGIN
    UPDATE discord_identifies SET at = in_now WHERE at > in_now;
    DELETE FROM discord_identifies WHERE at <= in_since;
    INSERT INTO discord_identifies (at) SELECT in_now WHERE (SELECT count(*) FROM discord_identifies) < in_most;
    GET DIAGNOSTICS recorded = ROW_COUNT;
    RETURN (SELECT ARRAY[count(*), min(at), max(at), recorded] FROM discord_identifies WHERE at > in_since);
END $$;
