-- what EXPLAIN on 1,000,000 rows of each table found to be read in whole, or filtered
CREATE INDEX contexts_live ON contexts (agent_id) WHERE NOT ended;
CREATE INDEX conversations_selected ON conversations (agent_id) WHERE selected;
CREATE INDEX discord_claims_open_in ON discord_claims (channel_id, message_id) WHERE state IN ('queued', 'running');
CREATE INDEX memories_by_write ON memories (write_id);
