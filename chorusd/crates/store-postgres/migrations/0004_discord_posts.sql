-- Writes to the outbox. `require_sender` and `keep_result` come after these functions, which call them when they run.

-- Merges as in RFC 7396: members of the patch replace those of the target, and null removes them. Members keep their order.
CREATE FUNCTION json_merge_patch(in_target json, in_patch json) RETURNS json
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF json_typeof(in_patch) <> 'object' THEN RETURN in_patch; END IF;
    RETURN (
        SELECT '{' || coalesce(string_agg(to_json(key)::text || ':' || value::text, ',' ORDER BY place), '') || '}'
        FROM (
            SELECT coalesce(t.key, p.key) AS key,
                CASE WHEN p.key IS NULL THEN t.value ELSE json_merge_patch(t.value, p.value) END AS value,
                coalesce(t.place, p.place + (1::bigint << 32)) AS place
            FROM json_each(CASE json_typeof(in_target) WHEN 'object' THEN in_target ELSE '{}' END)
                    WITH ORDINALITY AS t (key, value, place)
                FULL JOIN json_each(in_patch) WITH ORDINALITY AS p (key, value, place) ON t.key = p.key
            WHERE p.key IS NULL OR json_typeof(p.value) <> 'null'
        ) AS members
    )::json;
END $$;

-- The same of texts. Their Unicode escapes are hidden from the parser, which refuses some of them: `\u` is written as `\\u`, and
-- `\\` as `\\b`.
CREATE FUNCTION merge_body(in_target text, in_patch text) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    target json := replace(replace(in_target, '\\', '\\b'), '\u', '\\u');
    patch json := replace(replace(in_patch, '\\', '\\b'), '\u', '\\u');
BEGIN
    RETURN replace(replace(json_merge_patch(target, patch)::text, '\\u', '\u'), '\\b', '\\');
END $$;

-- Deletes a post that is delivered and cannot be changed any more.
CREATE FUNCTION delete_delivered(in_post bigint) RETURNS void
LANGUAGE sql AS $$
    DELETE FROM discord_outbox WHERE id = in_post AND sent_id IS NOT NULL AND about IS NULL
        AND NOT EXISTS (SELECT FROM discord_outbox WHERE changes = in_post);
$$;

-- Changes the post with a key by a JSON merge patch, or queues a change of its message if it was tried. Returns its channel,
-- NULL if there is no such post. Locks the post, so that nodes that change and send it do so one after the other.
CREATE FUNCTION edit_post(in_about text, in_body text, in_nonce text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    post record;
BEGIN
    SELECT id, channel_id, tried_at IS NULL AND sent_id IS NULL AS untried INTO post
        FROM discord_outbox WHERE about = in_about FOR UPDATE;
    IF NOT FOUND THEN RETURN NULL; END IF;
    IF post.untried THEN
        UPDATE discord_outbox SET body = merge_body(body, in_body), nonce = in_nonce
            WHERE id = post.id;
        RETURN post.channel_id;
    END IF;
    UPDATE discord_outbox SET body = merge_body(body, in_body), nonce = in_nonce
        WHERE changes = post.id AND tried_at IS NULL;
    IF NOT FOUND THEN
        INSERT INTO discord_outbox (channel_id, body, nonce, changes)
            VALUES (post.channel_id, in_body, in_nonce, post.id);
    END IF;
    RETURN post.channel_id;
END $$;

-- Queues a post after all others, or changes the one with the same key.
CREATE FUNCTION enqueue_post(in_channel bigint, in_about text, in_body text, in_nonce text, in_notice_at bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    LOOP
        IF edit_post(in_about, in_body, in_nonce) IS NOT NULL THEN RETURN; END IF;
        -- Another node may have added the key since.
        INSERT INTO discord_outbox (channel_id, about, body, nonce, notice_at)
            VALUES (in_channel, in_about, in_body, in_nonce, in_notice_at) ON CONFLICT (about) DO NOTHING;
        IF FOUND THEN RETURN; END IF;
    END LOOP;
END $$;

CREATE FUNCTION enqueue_posts(in_channels bigint[], in_abouts text[], in_bodies text[], in_nonces text[],
    in_notices bigint[])
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    FOR place IN 1 .. cardinality(in_channels) LOOP
        PERFORM enqueue_post(in_channels[place], in_abouts[place], in_bodies[place], in_nonces[place],
            in_notices[place]);
    END LOOP;
END $$;

-- Removes a key from its post, which cannot be changed any more.
CREATE FUNCTION finalize_post(in_about text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    post bigint;
BEGIN
    UPDATE discord_outbox SET about = NULL WHERE about = in_about RETURNING id INTO post;
    PERFORM delete_delivered(post);
END $$;

-- Counts notices that a node dropped.
CREATE FUNCTION add_dropped(in_node text, in_count bigint, in_at bigint) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO discord_nodes AS n (node, dropped_notices, dropped_at) SELECT in_node, in_count, in_at WHERE in_count > 0
    ON CONFLICT (node) DO UPDATE SET dropped_notices = n.dropped_notices + in_count, dropped_at = in_at;
$$;

-- The columns of a post that is to be sent now.
CREATE FUNCTION due_post(in_post bigint, in_tried_before bigint)
RETURNS TABLE (id bigint, body text, nonce text, changes bigint, changed_id bigint, tried_at bigint, after_id bigint)
LANGUAGE sql STABLE AS $$
    SELECT post.id, post.body, post.nonce, post.changes, changed.sent_id, in_tried_before, post.after_id
    FROM discord_outbox post LEFT JOIN discord_outbox changed ON changed.id = post.changes WHERE post.id = in_post;
$$;

-- Drops old notices of a channel, and returns its next post, whose attempt it records.
CREATE FUNCTION begin_post(in_channel bigint, in_epoch bigint, in_now bigint, in_oldest_notice bigint, in_node text,
    in_token uuid)
RETURNS TABLE (id bigint, body text, nonce text, changes bigint, changed_id bigint, tried_at bigint, after_id bigint)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    dropped bigint;
    post record;
BEGIN
    DELETE FROM discord_outbox
        WHERE channel_id = in_channel AND sent_id IS NULL AND tried_at IS NULL AND notice_at < in_oldest_notice;
    GET DIAGNOSTICS dropped = ROW_COUNT;
    PERFORM add_dropped(in_node, dropped, in_now);
    SELECT o.id, o.tried_at INTO post FROM discord_outbox o WHERE o.channel_id = in_channel AND o.sent_id IS NULL
        ORDER BY o.id LIMIT 1 FOR UPDATE;
    IF NOT FOUND THEN RETURN; END IF;
    UPDATE discord_outbox o SET tried_at = coalesce(o.tried_at, in_now), lease_epoch = in_epoch WHERE o.id = post.id;
    PERFORM keep_result(in_node, in_token, ARRAY[post.id, post.tried_at]);
    RETURN QUERY SELECT * FROM due_post(post.id, post.tried_at);
END $$;

-- Records that a post was delivered as a message. The changed post is locked before its changes, as in `edit_post`.
CREATE FUNCTION mark_post_sent(in_post bigint, in_message bigint, in_node text, in_boot bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    channel bigint := require_sender(in_post, in_node, in_boot);
    changed bigint;
BEGIN
    IF channel IS NULL THEN RETURN; END IF;
    SELECT changes INTO changed FROM discord_outbox WHERE id = in_post;
    -- If a change had to be posted as a new message, that message replaces the changed one.
    UPDATE discord_outbox SET sent_id = in_message WHERE id = coalesce(changed, in_post);
    -- Everything that is posted later in this channel has a higher id.
    UPDATE discord_outbox SET after_id = greatest(coalesce(after_id, 0), in_message)
        WHERE channel_id = channel AND sent_id IS NULL AND id > in_post;
    DELETE FROM discord_outbox WHERE id = in_post AND changes IS NOT NULL;
    PERFORM delete_delivered(coalesce(changed, in_post));
END $$;

-- Deletes a post that can never be delivered.
CREATE FUNCTION abandon_post(in_post bigint, in_node text, in_boot bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    changed bigint;
BEGIN
    PERFORM require_sender(in_post, in_node, in_boot);
    DELETE FROM discord_outbox WHERE id = in_post RETURNING changes INTO changed;
    PERFORM delete_delivered(changed);
END $$;

-- Deletes all posts of a channel, and returns how many were not sent.
CREATE FUNCTION abandon_posts(in_channel bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    waiting bigint;
BEGIN
    DELETE FROM discord_outbox WHERE channel_id = in_channel AND sent_id IS NULL;
    GET DIAGNOSTICS waiting = ROW_COUNT;
    DELETE FROM discord_outbox WHERE channel_id = in_channel AND sent_id IS NOT NULL;
    RETURN waiting;
END $$;
