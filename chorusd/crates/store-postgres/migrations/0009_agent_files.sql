-- Files of agents besides their sessions and workspaces.
CREATE TABLE agent_files (
    agent_id uuid NOT NULL,
    -- below the directory of the agent
    path     text COLLATE "C" NOT NULL,
    -- 1 more with each write
    version  bigint NOT NULL,
    sha256   bytea NOT NULL,
    content  bytea NOT NULL,
    -- that wrote it
    node     text NOT NULL,
    PRIMARY KEY (agent_id, path)
);
