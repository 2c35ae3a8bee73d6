-- The index of sessions, and those that wait for a summary. Texts are compared by their bytes.

-- The characters of a text in threes. A text has all of those of each part of it.
CREATE FUNCTION trigrams(in_text text) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS $$
    SELECT coalesce(array_agg(DISTINCT substr(in_text, place, 3)), '{}')
    FROM generate_series(1, length(in_text) - 2) AS place
$$;

CREATE TABLE sessions (
    id                  uuid PRIMARY KEY,
    agent_id            uuid NOT NULL,
    session_id          text COLLATE "C" NOT NULL,
    slug                text COLLATE "C" NOT NULL GENERATED ALWAYS AS (substr(session_id, 12)) STORED,
    -- that of `main` is the agent's
    conversation_id     uuid NOT NULL,
    saved_at            bigint NOT NULL,
    last_used_at        bigint NOT NULL,
    -- the order of sessions, and of those with the same place that in which the rows came
    place               bigint NOT NULL,
    serial              bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    sha256              text NOT NULL,
    file_stamp          text NOT NULL,
    -- why the file cannot be read, if it cannot
    corrupt             text,
    -- JSON of the file without its messages; all columns below are fields of it
    header              text NOT NULL,
    started_at          bigint NOT NULL,
    -- when the conversation was held
    held_at             bigint NOT NULL,
    messages            bigint NOT NULL,
    imported            boolean NOT NULL,
    -- NULL: `main`
    conversation_name   text COLLATE "C",
    source_program      text COLLATE "C",
    source_conversation text COLLATE "C",
    source_revision     bigint,
    project             text COLLATE "C",
    tags                text[] COLLATE "C" NOT NULL,
    -- name, title, conversation and tags in lowercase letters, one a line
    search_text         text COLLATE "C" NOT NULL,
    UNIQUE (agent_id, session_id)
) WITH (fillfactor = 90);
CREATE INDEX sessions_in_order ON sessions (place, serial) INCLUDE (id);
CREATE INDEX sessions_of_agent ON sessions (agent_id, place, serial) INCLUDE (id);
CREATE INDEX sessions_of_conversation ON sessions (conversation_id, agent_id, place, serial) INCLUDE (id);
CREATE INDEX sessions_by_save ON sessions (agent_id, saved_at, serial);
CREATE INDEX sessions_by_time ON sessions (held_at);
CREATE INDEX sessions_by_use ON sessions (last_used_at);
CREATE UNIQUE INDEX sessions_by_serial ON sessions (serial) INCLUDE (agent_id);
CREATE INDEX sessions_by_name ON sessions (session_id);
CREATE INDEX sessions_by_slug ON sessions (agent_id, slug);
CREATE INDEX sessions_by_conversation_name ON sessions (agent_id, conversation_name)
    WHERE conversation_name IS NOT NULL;
CREATE INDEX sessions_by_source ON sessions (source_program, source_conversation, source_revision, serial)
    INCLUDE (agent_id, messages) WHERE source_program IS NOT NULL;
CREATE INDEX sessions_of_program ON sessions (source_program, place, serial) INCLUDE (id, agent_id)
    WHERE source_program IS NOT NULL;
CREATE INDEX imports_without_source_by_start ON sessions (started_at) WHERE source_program IS NULL AND imported;
CREATE INDEX imports_without_source_by_slug ON sessions (slug) WHERE source_program IS NULL AND imported;
-- Of a path only so much that it fits into an index.
CREATE INDEX sessions_by_project ON sessions (left(project, 600)) WHERE project IS NOT NULL;
CREATE INDEX sessions_by_end_of_project ON sessions (left(reverse(project), 600)) WHERE project IS NOT NULL;
CREATE INDEX sessions_corrupt ON sessions (agent_id) WHERE corrupt IS NOT NULL;
CREATE INDEX sessions_by_tag ON sessions USING gin (tags);
CREATE INDEX sessions_by_text ON sessions USING gin (trigrams(search_text));

-- The part of all sessions that have the rarest trigram of a word, as far as the statistics know; 1 for a word without one.
-- For a word that many have, to read all texts takes less time than the index does.
CREATE FUNCTION word_frequency(in_word text) RETURNS real
LANGUAGE sql STABLE STRICT AS $$
    SELECT coalesce(min(coalesce(known.frequency, 0)), 1)
    FROM unnest(trigrams(in_word)) AS part LEFT JOIN (
        SELECT list.element, list.frequency
        FROM pg_stats CROSS JOIN LATERAL
            unnest(most_common_elems::text::text[], most_common_elem_freqs) AS list (element, frequency)
        WHERE schemaname = current_schema() AND tablename = 'sessions_by_text'
    ) known ON known.element = part
$$;

CREATE TABLE summaries_wanted (
    id        uuid PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    -- whether somebody gave the description
    described boolean NOT NULL
);

-- Sessions of each agent. The row of an agent may come later than its sessions.
CREATE TABLE session_counts (
    agent_id uuid PRIMARY KEY,
    sessions bigint NOT NULL
) WITH (fillfactor = 50);

-- Sessions that each node has added, less those that it has deleted: the sum is the number of all. Nodes do not wait for
-- each other's rows.
CREATE TABLE session_totals (
    node     text PRIMARY KEY,
    sessions bigint NOT NULL
) WITH (fillfactor = 50);

CREATE FUNCTION count_session() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    agent uuid := CASE TG_OP WHEN 'INSERT' THEN NEW.agent_id ELSE OLD.agent_id END;
    change bigint := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
    owner text := (SELECT owner_node FROM heads WHERE agent_id = agent);
BEGIN
    INSERT INTO session_counts AS known VALUES (agent, change)
    ON CONFLICT (agent_id) DO UPDATE SET sessions = known.sessions + change;
    INSERT INTO session_totals AS known VALUES (coalesce(owner, ''), change)
    ON CONFLICT (node) DO UPDATE SET sessions = known.sessions + change;
    RETURN NULL;
END $$;
CREATE TRIGGER count_session AFTER INSERT OR DELETE ON sessions FOR EACH ROW EXECUTE FUNCTION count_session();

-- The fence for a row that names its agent only in the database: locks the session until the end of the transaction,
-- and the row of its agent as `require_epoch` does. Fails unless this process owns the agent. The epoch is not known, and
-- need not be: a process claims an agent only while it awaits no answer about it.
CREATE FUNCTION require_session(in_id uuid, in_node text, in_boot bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    agent uuid;
BEGIN
    SELECT agent_id INTO agent FROM sessions WHERE id = in_id FOR UPDATE;
    IF NOT FOUND THEN RETURN; END IF;
    PERFORM FROM heads WHERE agent_id = agent AND owner_node = in_node AND owner_boot = in_boot FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another node owns agent % of session %', agent, in_id USING ERRCODE = 'CH010';
    END IF;
END $$;

-- Inserts a session. Fails if another one has its id, or its name within the agent. `in_last`: it comes after all others,
-- whatever its place says.
CREATE FUNCTION insert_session(in_id uuid, in_agent uuid, in_name text, in_conversation uuid, in_saved bigint,
    in_used bigint, in_place bigint, in_last boolean, in_sha256 text, in_stamp text, in_corrupt text, in_header text,
    in_started bigint, in_held bigint, in_messages bigint, in_imported boolean, in_conversation_name text,
    in_program text, in_source text, in_revision bigint, in_project text, in_tags text[], in_text text)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF in_last THEN
        in_place := greatest(in_place, (SELECT max(place) + CASE max(place) WHEN 9223372036854775807 THEN 0 ELSE 1 END
            FROM sessions));
    END IF;
    INSERT INTO sessions (id, agent_id, session_id, conversation_id, saved_at, last_used_at, place, sha256, file_stamp,
        corrupt, header, started_at, held_at, messages, imported, conversation_name, source_program,
        source_conversation, source_revision, project, tags, search_text)
    VALUES (in_id, in_agent, in_name, in_conversation, in_saved, in_used, in_place, in_sha256, in_stamp,
        in_corrupt, in_header, in_started, in_held, in_messages, in_imported, in_conversation_name, in_program,
        in_source, in_revision, in_project, in_tags, in_text)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'this agent already has a session %', in_name USING ERRCODE = 'CH011';
    END IF;
END $$;

-- Deletes the rows that a file which was found replaces, and returns their ids; none if there is a row for this very file.
CREATE FUNCTION delete_replaced_sessions(in_id uuid, in_agent uuid, in_name text, in_sha256 text, in_stamp text,
    in_corrupt text, in_node text, in_boot bigint)
RETURNS SETOF uuid
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM require_session(in_id, in_node, in_boot);
    PERFORM FROM sessions WHERE id = in_id AND agent_id = in_agent AND session_id = in_name AND sha256 = in_sha256
        AND file_stamp = in_stamp AND corrupt IS NOT DISTINCT FROM in_corrupt;
    IF FOUND THEN RETURN; END IF;
    RETURN QUERY DELETE FROM sessions WHERE id = in_id OR (agent_id = in_agent AND session_id = in_name) RETURNING id;
END $$;
