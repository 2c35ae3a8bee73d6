-- the home of a node, so that a daemon with another one does not end it, and how busy its machine and its way to the database are
ALTER TABLE nodes ADD COLUMN home uuid;
ALTER TABLE nodes ADD COLUMN load_percent bigint;
ALTER TABLE nodes ADD COLUMN lag_ms bigint;

-- one row: the id that marks the bucket of the cluster, and whether a bucket has it
CREATE TABLE cluster (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    has_bucket boolean NOT NULL DEFAULT false
);
INSERT INTO cluster DEFAULT VALUES;
