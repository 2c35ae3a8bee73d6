-- A node that is not to be shown any more until it starts again. Its row stays, because boot numbers and ranges of tasks are used once.
ALTER TABLE nodes ADD COLUMN forgotten boolean NOT NULL DEFAULT false;

-- Forgets a node that has stopped, or whose heartbeat is stale: deletes what only a running process needs, and gives up what it owns. Returns
-- the number of agents that it had; NULL if it runs. What it has recorded stays, and what it would need if it came back after all: its
-- settings, what it has captured, the number of its newest event. It then takes back the agents that nobody has claimed.
CREATE FUNCTION forget_node(in_node text, in_stale_after double precision) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    freed bigint;
    next_boot bigint;
BEGIN
    -- A heartbeat that comes later finds another boot, which ends the process.
    UPDATE nodes SET stopped = true, draining = false, forgotten = true, boot = boot + 1, home = NULL, profiles = '',
        load_percent = NULL, lag_ms = NULL
    WHERE id = in_node AND (stopped OR heartbeat <= clock_timestamp() - make_interval(secs => in_stale_after))
    RETURNING boot INTO next_boot;
    IF NOT FOUND THEN RETURN NULL; END IF;
    -- So does a connection that still writes.
    UPDATE writers SET boot = next_boot WHERE node = in_node;
    SELECT count(*) INTO freed FROM heads h JOIN agents a ON a.id = h.agent_id AND a.status = 'active'
    WHERE h.owner_node = in_node
        OR (h.owner_node IS NULL AND (h.released_by = in_node OR h.wanted_by = in_node));
    UPDATE heads SET owner_node = NULL, owner_boot = NULL, epoch = epoch + 1, wanted_by = NULL, released_by = in_node
    WHERE owner_node = in_node;
    UPDATE heads SET wanted_by = NULL WHERE wanted_by = in_node;
    DELETE FROM events WHERE node = in_node;
    DELETE FROM write_results WHERE node = in_node;
    DELETE FROM discord_leases WHERE owner_node = in_node;
    DELETE FROM discord_members WHERE node = in_node;
    DELETE FROM discord_handed WHERE node = in_node;
    -- The number of notices that were dropped is part of a sum.
    UPDATE discord_nodes SET last_event = NULL, last_starts = NULL WHERE node = in_node;
    RETURN freed;
END $$;
