-- The bundles with the checkpoints of workspaces.
CREATE TABLE workspace_bundles (
    agent_id       uuid NOT NULL,
    -- 1 more with each bundle
    number         bigint NOT NULL,
    -- commits; without a base, the bundle is complete
    base           text,
    tip            text NOT NULL,
    -- of the object
    key            text COLLATE "C" NOT NULL,
    sha256         bytea NOT NULL,
    bytes          bigint NOT NULL,
    at             bigint NOT NULL,
    -- that wrote it
    node           text NOT NULL,
    -- the last node that gave the agent up when this was the newest bundle
    handover_epoch bigint,
    handover_node  text,
    newer_files    bigint,
    PRIMARY KEY (agent_id, number)
);
CREATE UNIQUE INDEX workspace_bundle_keys ON workspace_bundles (key);
