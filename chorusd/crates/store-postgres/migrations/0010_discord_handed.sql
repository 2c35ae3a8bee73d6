-- What the node with the gateway passes to the owner of an agent: interactions, which the owner answers. They are of no
-- use a few seconds later.
CREATE TABLE discord_handed (
    -- of the interaction
    id        bigint PRIMARY KEY,
    -- who is to take it
    node      text COLLATE "C" NOT NULL,
    -- JSON
    body      text NOT NULL,
    handed_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);
CREATE INDEX discord_handed_to ON discord_handed (node);
