-- Sessions that were deleted. Other nodes may have copies of their files, which they delete from time to time. Neither names nor texts are kept.
CREATE TABLE deleted_sessions (
    session_id uuid NOT NULL,
    agent_id   uuid NOT NULL,
    deleted_at bigint NOT NULL
);
CREATE INDEX deleted_sessions_by_time ON deleted_sessions (deleted_at);
