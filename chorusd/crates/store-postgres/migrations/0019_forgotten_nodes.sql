-- A node that is not to be shown any more until it starts again. Its row stays, because boot numbers and ranges of tasks are used once.
ALTER TABLE nodes ADD COLUMN forgotten boolean NOT NULL DEFAULT false;

-- Forgets a node that has stopped, or whose heartbeat is stale: deletes what only its machine needs, and gives up what it owns. Returns
-- the number of agents that wait for it no more; NULL if it runs. What it has recorded stays: the audit log, usage, sessions, bundles.
CREATE FUNCTION forget_node(in_node text, in_stale_after double precision) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    freed bigint;
BEGIN
    -- A heartbeat that comes later finds that the node has stopped, which ends the process.
    UPDATE nodes SET stopped = true, draining = false, forgotten = true, home = NULL, profiles = '', load_percent = NULL,
        lag_ms = NULL
    WHERE id = in_node AND (stopped OR heartbeat <= clock_timestamp() - make_interval(secs => in_stale_after));
    IF NOT FOUND THEN RETURN NULL; END IF;
    -- Its connection may still be writing: it has to find no row.
    DELETE FROM writers WHERE node = in_node;
    SELECT count(*) INTO freed FROM heads h JOIN agents a ON a.id = h.agent_id AND a.status = 'active'
    WHERE h.owner_node = in_node
        OR (h.owner_node IS NULL AND (h.released_by = in_node OR h.wanted_by = in_node));
    UPDATE heads SET owner_node = NULL, owner_boot = NULL, epoch = epoch + 1, wanted_by = NULL, released_by = NULL
    WHERE owner_node = in_node;
    UPDATE heads SET released_by = NULL WHERE released_by = in_node;
    UPDATE heads SET wanted_by = NULL WHERE wanted_by = in_node;
    DELETE FROM events WHERE node = in_node;
    DELETE FROM write_results WHERE node = in_node;
    DELETE FROM settings WHERE node = in_node;
    DELETE FROM captured_files WHERE node = in_node;
    DELETE FROM discord_leases WHERE owner_node = in_node;
    DELETE FROM discord_members WHERE node = in_node;
    DELETE FROM discord_handed WHERE node = in_node;
    DELETE FROM discord_nodes WHERE node = in_node;
    -- The sum of these counts is the number of all sessions.
    WITH counted AS (DELETE FROM session_totals WHERE node = in_node RETURNING sessions)
    INSERT INTO session_totals AS known SELECT '', sessions FROM counted
    ON CONFLICT (node) DO UPDATE SET sessions = known.sessions + excluded.sessions;
    RETURN freed;
END $$;
