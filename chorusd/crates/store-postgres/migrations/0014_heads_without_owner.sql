-- for heartbeats, which ask whether there are agents that no node has
CREATE INDEX heads_without_owner ON heads (agent_id) WHERE owner_node IS NULL;
