-- The node that gave an agent up without another that wanted it: it takes the agent back when it starts again, unless
-- somebody has claimed it in the meantime.
ALTER TABLE heads ADD COLUMN released_by text;

-- for claims of what a node owned or released
CREATE INDEX heads_by_owner ON heads (owner_node) WHERE owner_node IS NOT NULL;
CREATE INDEX heads_by_release ON heads (released_by) WHERE released_by IS NOT NULL;

-- for claims of agents of which something is due
CREATE INDEX contexts_by_deadline ON contexts (idle_deadline_at) WHERE NOT ended AND idle_deadline_at IS NOT NULL;
CREATE INDEX contexts_in_turn ON contexts (agent_id) WHERE NOT ended AND turn IS NOT NULL;
