-- Migration 1 for PostgreSQL: the tables of 0001_core.sqlite.sql, and the one-trip grant.
--
-- Instants are whole milliseconds since 1970 by the server's clock. Entries of the journal get their number when
-- they are written and their position and hash when they are sealed, in the order in which they became visible.

CREATE TABLE meta (key text PRIMARY KEY, value text NOT NULL);

CREATE TABLE repositories (id text PRIMARY KEY, ignore_case integer NOT NULL DEFAULT 0);

CREATE TABLE sessions (
    id text PRIMARY KEY,
    repository text NOT NULL,
    agent text NOT NULL,
    generation bigint NOT NULL,
    kind text NOT NULL,
    role text NOT NULL,
    machine text NOT NULL,
    secret_hash text NOT NULL,
    lease_ms bigint NOT NULL,
    started_at bigint NOT NULL,
    seen_at bigint NOT NULL,
    shortest_ms bigint NOT NULL,
    lapses_at bigint NOT NULL,
    ended_at bigint,
    UNIQUE (repository, agent, generation)
);
CREATE INDEX sessions_lapsing ON sessions (repository, lapses_at) WHERE ended_at IS NULL;

CREATE TABLE processes (
    repository text NOT NULL,
    boot_id text NOT NULL,
    namespace text NOT NULL,
    pid bigint NOT NULL,
    started bigint NOT NULL,
    session text NOT NULL,
    PRIMARY KEY (repository, boot_id, namespace, pid, started)
);
CREATE INDEX processes_of_session ON processes (session);

-- COLLATE "C": the range of keys below a key is a range of bytes.
CREATE TABLE claims (
    repository text NOT NULL,
    key text COLLATE "C" NOT NULL,
    token bigint NOT NULL,
    branch integer NOT NULL,
    rest text,
    session text NOT NULL,
    pattern text NOT NULL,
    kind text NOT NULL,
    mode text NOT NULL,
    ttl_ms bigint NOT NULL,
    granted_at bigint NOT NULL,
    task text NOT NULL,
    note text NOT NULL,
    PRIMARY KEY (repository, key, token, branch)
);
CREATE INDEX claims_of_session ON claims (session, token);

CREATE TABLE lapsed (
    repository text NOT NULL,
    agent text NOT NULL,
    pattern text NOT NULL,
    kind text NOT NULL,
    mode text NOT NULL,
    ttl_ms bigint NOT NULL,
    token bigint NOT NULL,
    ended_at bigint NOT NULL,
    PRIMARY KEY (repository, agent, pattern)
);

CREATE TABLE waiters (
    repository text NOT NULL,
    ticket bigint NOT NULL,
    session text NOT NULL,
    mode text NOT NULL,
    task text NOT NULL,
    since bigint NOT NULL,
    alive_until bigint NOT NULL,
    PRIMARY KEY (repository, ticket)
);

CREATE TABLE waiter_paths (
    repository text NOT NULL,
    key text COLLATE "C" NOT NULL,
    ticket bigint NOT NULL,
    branch integer NOT NULL,
    rest text,
    pattern text NOT NULL,
    PRIMARY KEY (repository, key, ticket, branch)
);

CREATE SEQUENCE journal_number;
CREATE TABLE journal (
    repository text NOT NULL,
    number bigint NOT NULL,
    position bigint,
    at bigint NOT NULL,
    kind text NOT NULL,
    agent text NOT NULL,
    session text NOT NULL,
    data text NOT NULL,
    hash text,
    PRIMARY KEY (repository, number)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX journal_sealed ON journal (repository, position) WHERE position IS NOT NULL;
CREATE INDEX journal_unsealed ON journal (repository, number) WHERE position IS NULL;

CREATE FUNCTION journal_refuses_change() RETURNS trigger AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND (OLD.position IS NULL OR (OLD.position, OLD.hash) = (NEW.position, NEW.hash))
        AND (OLD.number, OLD.at, OLD.kind, OLD.agent, OLD.session, OLD.data)
          = (NEW.number, NEW.at, NEW.kind, NEW.agent, NEW.session, NEW.data) THEN
        RETURN NEW;  -- sealing, or following the repository's new id
    END IF;
    RAISE EXCEPTION 'the journal is append-only';
END $$ LANGUAGE plpgsql;
CREATE TRIGGER journal_is_append_only BEFORE UPDATE OR DELETE ON journal
    FOR EACH ROW EXECUTE FUNCTION journal_refuses_change();

-- Who wants to be woken: writers notify only when somebody listens, and never inside their own transaction,
-- because a notification is committed under one lock of the whole database.
CREATE UNLOGGED TABLE listeners (
    repository text NOT NULL,
    id text NOT NULL,
    alive_until bigint NOT NULL,
    PRIMARY KEY (repository, id)
);

CREATE FUNCTION landlane_now() RETURNS bigint AS $$
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
$$ LANGUAGE sql VOLATILE;

-- Grant literals and trees in one round trip when nothing at all lies near them and no lock has to be waited for.
-- Otherwise the answer is NULL, and waiting and judging are left to the long road. Arguments come in arrays of
-- equal length, one element for each pattern. The answer: granted_at, the session's seen_at, whether somebody
-- listens (1), then a token for each pattern.
CREATE FUNCTION landlane_take_uncontested(
    p_repository text, p_session text, p_agent text, p_locks bigint[], p_alone boolean[], p_ancestors text[],
    p_keys text[], p_patterns text[], p_kind text[], p_facts text[], p_mode text, p_ttl bigint,
    p_task text, p_note text
) RETURNS bigint[] AS $$
DECLARE
    v_now bigint;
    v_seen bigint;
    v_epoch bigint;
    v_wakes boolean;
    v_locked boolean;
    v_number bigint;
    v_token bigint;
    v_answer bigint[];
BEGIN
    FOR i IN 1 .. array_length(p_locks, 1) LOOP
        IF p_alone[i] THEN v_locked := pg_try_advisory_xact_lock(p_locks[i]);
        ELSE v_locked := pg_try_advisory_xact_lock_shared(p_locks[i]); END IF;
        IF NOT v_locked THEN RETURN NULL; END IF;
    END LOOP;
    v_now := landlane_now();
    -- A session of which something has lapsed, or one whose shortest lease this would be, takes the long road.
    -- FOR SHARE: nobody may end the session between this look and the commit.
    SELECT s.seen_at,
           (SELECT m.value::bigint FROM meta m WHERE m.key = 'epoch'),
           EXISTS (SELECT 1 FROM listeners l WHERE l.repository = p_repository AND l.alive_until > v_now)
      INTO v_seen, v_epoch, v_wakes
      FROM sessions s
     WHERE s.id = p_session AND s.ended_at IS NULL AND s.lapses_at > v_now + 2000 AND s.shortest_ms <= p_ttl
       AND NOT EXISTS (SELECT 1 FROM meta m WHERE m.key = 'moved_to/' || p_repository)
       AND NOT EXISTS (SELECT 1 FROM waiters w WHERE w.repository = p_repository)
       AND NOT EXISTS (SELECT 1 FROM claims c WHERE c.repository = p_repository AND c.key = ANY (p_ancestors)
                       AND (c.session <> p_session OR c.key = ANY (p_keys)))
       FOR SHARE OF s SKIP LOCKED;
    IF NOT FOUND THEN RETURN NULL; END IF;
    -- Key by key: joined to all keys at once, the range would be a filter on every claim of the repository.
    FOR i IN 1 .. array_length(p_keys, 1) LOOP
        IF EXISTS (SELECT 1 FROM claims c WHERE c.repository = p_repository
                   AND c.key > p_keys[i] || '/' AND c.key < p_keys[i] || '0' AND c.session <> p_session)
        THEN RETURN NULL; END IF;
    END LOOP;
    v_answer := ARRAY[v_now, v_seen, v_wakes::integer];
    FOR i IN 1 .. array_length(p_keys, 1) LOOP
        v_number := nextval('journal_number');
        v_token := (v_epoch << 32) | v_number;
        INSERT INTO claims VALUES (p_repository, p_keys[i], v_token, 0, NULL, p_session, p_patterns[i], p_kind[i],
            p_mode, p_ttl, v_now, p_task, p_note);
        INSERT INTO journal (repository, number, at, kind, agent, session, data)
            VALUES (p_repository, v_number, v_now, 'claim.taken', p_agent, p_session,
                    p_facts[i] || v_token || ',"ttl_ms":' || p_ttl || '}');
        v_answer := v_answer || v_token;
    END LOOP;
    RETURN v_answer;
END $$ LANGUAGE plpgsql;
