-- Each append moves the deadline of its context. An index on the deadline itself would be changed by all of them, and with it every
-- index of the table. So deadlines are looked up by slots of five minutes.
ALTER TABLE contexts ADD COLUMN due_slot bigint GENERATED ALWAYS AS (idle_deadline_at / 300000000000) STORED;
DROP INDEX contexts_by_deadline;
CREATE INDEX contexts_by_due_slot ON contexts (due_slot) WHERE NOT ended AND due_slot IS NOT NULL;
-- What is known of a new column is nothing.
ANALYZE contexts;
