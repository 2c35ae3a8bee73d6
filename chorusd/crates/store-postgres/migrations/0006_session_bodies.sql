-- The object with the messages of a session; all NULL: only the file of one node has them.
ALTER TABLE sessions
    ADD COLUMN body_key     text COLLATE "C",
    -- messages, their bytes, and those of the whole object
    ADD COLUMN body_count   bigint,
    ADD COLUMN body_bytes   bigint,
    ADD COLUMN object_bytes bigint,
    -- hashes of the messages and of the index behind them
    ADD COLUMN body_sha256  text,
    ADD COLUMN index_sha256 text,
    ADD CONSTRAINT sessions_body_is_whole
        CHECK (num_nulls(body_key, body_count, body_bytes, object_bytes, body_sha256, index_sha256) IN (0, 6));
CREATE UNIQUE INDEX sessions_by_body ON sessions (body_key) WHERE body_key IS NOT NULL;
