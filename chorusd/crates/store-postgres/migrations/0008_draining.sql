-- A node that claims no agents, because it is to have none. A restart ends it.
ALTER TABLE nodes ADD COLUMN draining boolean NOT NULL DEFAULT false;

-- hash of the permission profiles of a node, which have to be the same everywhere
ALTER TABLE nodes ADD COLUMN profiles text NOT NULL DEFAULT '';

-- for claims of agents that were given up to a node
CREATE INDEX heads_by_want ON heads (wanted_by) WHERE wanted_by IS NOT NULL;
