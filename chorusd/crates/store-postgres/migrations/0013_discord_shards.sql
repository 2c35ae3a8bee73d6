-- Shards of the gateway. The id of a shard's lease is the number of shards times 65,536 plus the number of the shard; without
-- shards it is 0.

ALTER TABLE discord_leases DROP CONSTRAINT discord_leases_kind_check;
-- 'identify': the right to begin a session, in the bucket `id` of Discord's limit
ALTER TABLE discord_leases ADD CONSTRAINT discord_leases_kind_check CHECK (kind IN ('gateway', 'channel', 'identify'));

-- Processes that want their share of the shards.
CREATE TABLE discord_members (
    node text COLLATE "C" PRIMARY KEY,
    boot bigint NOT NULL
);

-- The fence of the gateway: locks the rows of these shards until the end of the transaction. Fails unless each has its epoch.
CREATE FUNCTION require_shards(in_ids bigint[], in_epochs bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    valid bigint;
BEGIN
    SELECT count(*) INTO valid FROM (
        SELECT FROM discord_leases l JOIN unnest(in_ids, in_epochs) AS held (id, epoch) USING (id, epoch)
        WHERE l.kind = 'gateway' FOR SHARE OF l
    ) AS locked;
    IF valid < cardinality(in_ids) THEN
        RAISE EXCEPTION 'another node took a shard over' USING ERRCODE = 'CH020';
    END IF;
END $$;

-- As before, with any shard: epochs are used once, so one of them names its lease.
CREATE OR REPLACE FUNCTION require_agent_or_gateway(in_agent uuid, in_node text, in_boot bigint, in_epoch bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM heads WHERE agent_id = in_agent AND owner_node = in_node AND owner_boot = in_boot FOR SHARE;
    IF FOUND THEN RETURN; END IF;
    PERFORM FROM discord_leases WHERE kind = 'gateway' AND epoch = in_epoch FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another node took agent % over', in_agent USING ERRCODE = 'CH002';
    END IF;
END $$;
