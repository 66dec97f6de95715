-- The schema of a PostgreSQL store: the tables of schema.sqlite.sql, and functions for the quick grant.
-- store/schema_version.py holds its number and the rule for changing it.
--
-- Timestamps are milliseconds since 1970 by the server's clock. A journal entry gets its number when it is written,
-- and its position and hash when it is sealed, in the order in which entries became visible.

-- ------------------------------------------------------------ The store, the repositories, the journal and records

CREATE TABLE meta (key text PRIMARY KEY, value text NOT NULL);

CREATE TABLE repositories (id text PRIMARY KEY, ignore_case integer NOT NULL DEFAULT 0);

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
        RETURN NEW;  -- sealing, or a new repository id
    END IF;
    RAISE EXCEPTION 'the journal is append-only';
END $$ LANGUAGE plpgsql;

CREATE TRIGGER journal_is_append_only BEFORE UPDATE OR DELETE ON journal
    FOR EACH ROW EXECUTE FUNCTION journal_refuses_change();

-- Listeners. Writers notify only if there are any, and never inside their own transaction, because PostgreSQL
-- commits notifications under one lock of the database.
CREATE UNLOGGED TABLE listeners (
    repository text NOT NULL,
    id text NOT NULL,
    key text COLLATE "C" NOT NULL,  -- the claim or ticket that it watches; empty for everything
    alive_until bigint NOT NULL,
    PRIMARY KEY (repository, id)
);

-- JSON documents: workspaces, landings, gates and the like, with the few columns that are needed to find them.
CREATE TABLE records (
    repository text NOT NULL,
    noun text NOT NULL,          -- the kind of record
    id text COLLATE "C" NOT NULL,
    state text NOT NULL,
    key text NOT NULL,           -- a task or a target, to find it by
    data text NOT NULL,          -- JSON
    PRIMARY KEY (repository, noun, id)
);
CREATE INDEX records_by_state ON records (repository, noun, state);
CREATE INDEX records_by_key ON records (repository, noun, key);

CREATE TABLE record_counts (
    repository text NOT NULL,
    noun text NOT NULL,
    last bigint NOT NULL,
    PRIMARY KEY (repository, noun)
);

-- -------------------------------------------------------------------------------------------------------- Sessions

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

CREATE INDEX waiter_paths_in_line ON waiter_paths (repository, ticket);

-- Who runs what only one process may run at a time. A process with a lower token has been replaced.
CREATE TABLE runners (
    repository text NOT NULL,
    name text NOT NULL,
    holder text NOT NULL,
    agent text NOT NULL,
    token bigint NOT NULL,
    until bigint NOT NULL,
    boot_id text NOT NULL,
    namespace text NOT NULL,
    pid bigint NOT NULL,
    started bigint NOT NULL,
    PRIMARY KEY (repository, name)
);

-- Which session a coding client's session is. A subagent has the client's agent id and a parent session.
CREATE TABLE client_sessions (
    repository text NOT NULL,
    client text NOT NULL,
    client_session text NOT NULL,
    client_agent text NOT NULL,  -- empty for the main session
    session text NOT NULL,
    parent text NOT NULL,        -- a session id, or empty
    PRIMARY KEY (repository, client, client_session, client_agent)
);
CREATE INDEX client_sessions_of ON client_sessions (session);

-- The version of a file that a session saw last: a digest of its content, and a stamp for a quick comparison.
CREATE TABLE reads (
    repository text NOT NULL,
    session text NOT NULL,
    path text COLLATE "C" NOT NULL,          -- absolute: each checkout has its own copy
    digest text NOT NULL,        -- empty if there was no file
    stamp text NOT NULL,
    PRIMARY KEY (session, path)
);

-- Tool calls that may change files, to find out which session made a change.
CREATE TABLE tool_calls (
    repository text NOT NULL,
    session text NOT NULL,
    call text NOT NULL,
    kind text NOT NULL,          -- edit or shell
    root text NOT NULL,          -- the checkout
    paths text NOT NULL,         -- JSON: the paths of an edit
    snapshot text NOT NULL,      -- the checkout's, before a shell call
    began_at bigint NOT NULL,
    ended_at bigint,
    PRIMARY KEY (session, call)
);
CREATE INDEX tool_calls_in ON tool_calls (repository, root, began_at);

-- ---------------------------------------------------------------------------------------------------------- Claims

-- One row for each brace alternative of a claim. COLLATE "C" makes the keys below a key one range of bytes.
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

-- ----------------------------------------------------------------------------------------------------------- State

CREATE TABLE state (
    repository text NOT NULL,
    key text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    value text NOT NULL,       -- JSON
    reducer text NOT NULL,     -- the reducer that made this version; empty if it was set
    agent text NOT NULL,
    session text NOT NULL,
    written_at bigint NOT NULL,
    PRIMARY KEY (repository, key)
);

-- The newest versions of each key, including the current one; the journal has all of them.
CREATE TABLE state_versions (
    repository text NOT NULL,
    key text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    value text NOT NULL,
    reducer text NOT NULL,
    agent text NOT NULL,
    session text NOT NULL,
    written_at bigint NOT NULL,
    PRIMARY KEY (repository, key, version)
);

-- All numbers given out; none is ever removed, so that none is given out twice.
CREATE TABLE numbers (
    repository text NOT NULL,
    kind text NOT NULL,
    number bigint NOT NULL,
    agent text NOT NULL,
    session text NOT NULL,
    purpose text NOT NULL,
    given_at bigint NOT NULL,
    PRIMARY KEY (repository, kind, number)
);

-- Slots that are held, and freed ones (`freed_at`) of kinds where a slot counts until its time is over.
CREATE TABLE slots (
    repository text NOT NULL,
    token bigint NOT NULL,
    id text NOT NULL,
    kind text NOT NULL,
    place text NOT NULL,       -- the port or name; empty if only the amount counts
    name text NOT NULL,        -- chosen by its holder
    workspace text NOT NULL,
    amount bigint NOT NULL,
    session text NOT NULL,
    taken_at bigint NOT NULL,
    until bigint,
    freed_at bigint,
    PRIMARY KEY (repository, token)
);
CREATE INDEX slots_of_kind ON slots (repository, kind);
CREATE INDEX slots_of_session ON slots (session);

-- The port or name that a workspace had last, so that it gets the same one again.
CREATE TABLE slot_places (
    repository text NOT NULL,
    kind text NOT NULL,
    workspace text NOT NULL,
    name text NOT NULL,
    place text NOT NULL,
    PRIMARY KEY (repository, kind, workspace, name)
);

-- The newest run of each key: its process, and how it ended.
CREATE TABLE once (
    repository text NOT NULL,
    key text COLLATE "C" NOT NULL,
    run bigint NOT NULL,
    agent text NOT NULL,
    session text NOT NULL,
    machine text NOT NULL,
    boot_id text NOT NULL,
    namespace text NOT NULL,
    pid bigint NOT NULL,
    started bigint NOT NULL,
    child_pid bigint NOT NULL,
    child_started bigint NOT NULL,
    command text NOT NULL,
    begun_at bigint NOT NULL,
    done_at bigint,
    exit_code bigint,
    output text NOT NULL,
    PRIMARY KEY (repository, key)
);

-- The runs inside of which a call waits for the run of another key.
CREATE TABLE once_waits (
    repository text NOT NULL,
    wait text NOT NULL,
    inside text NOT NULL,  -- the key of the run that made the call
    key text NOT NULL,
    session text NOT NULL,
    boot_id text NOT NULL,
    namespace text NOT NULL,
    pid bigint NOT NULL,
    started bigint NOT NULL,
    PRIMARY KEY (repository, wait, inside)
);

-- ----------------------------------------------------------------------------------------------------------- Tasks

CREATE TABLE tasks (
    repository text NOT NULL,
    id text NOT NULL,
    title text NOT NULL,
    body text NOT NULL,
    kind text NOT NULL,
    state text NOT NULL,
    role text NOT NULL,
    priority bigint NOT NULL,
    rank bigint NOT NULL,       -- ready tasks with a lower rank are offered first
    paths text NOT NULL,         -- JSON: the declared patterns, each as [text, kind]
    owner text NOT NULL,
    session text NOT NULL,
    attempt bigint NOT NULL,    -- how often it was taken
    failures bigint NOT NULL,   -- how often its owner gave up
    lapses bigint NOT NULL,     -- how often its owner's lease ran out
    max_attempts bigint NOT NULL,
    lineage text NOT NULL,       -- the first of the tasks that it descends from, or itself
    check_command text NOT NULL,
    output text NOT NULL,
    key text,
    labels text NOT NULL,        -- JSON
    why text NOT NULL,
    next_action text NOT NULL,
    head text NOT NULL,          -- the verified commit
    result text NOT NULL,
    waits_for bigint NOT NULL,  -- the number of dependencies that are not done
    created_at bigint NOT NULL,
    ready_at bigint NOT NULL,
    taken_at bigint NOT NULL,
    PRIMARY KEY (repository, id)
);

-- Ordered by length(id) first, because T9 was added before T10.
CREATE INDEX tasks_ready ON tasks (repository, role, rank, length(id), id) WHERE state = 'ready';

-- Each index holds only some states, so that finished tasks cost nothing.
CREATE INDEX tasks_in_hand ON tasks (repository, session, state) WHERE state IN ('active', 'reported', 'landing');
CREATE INDEX tasks_aside ON tasks (repository, state)
WHERE state IN ('blocked', 'review', 'waiting_for_person', 'failed', 'dead');
CREATE UNIQUE INDEX tasks_by_key ON tasks (repository, key) WHERE key IS NOT NULL;

CREATE TABLE task_after (
    repository text NOT NULL,
    task text NOT NULL,
    after text NOT NULL,
    PRIMARY KEY (repository, task, after)
);
CREATE INDEX task_before ON task_after (repository, after);

-- Words, issue ids and folders of a task, to find tasks that look alike.
CREATE TABLE task_signs (
    repository text NOT NULL,
    sign text NOT NULL,
    task text NOT NULL,
    PRIMARY KEY (repository, sign, task)
);

CREATE TABLE task_links (
    repository text NOT NULL,
    task text NOT NULL,
    other text NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (repository, task, other)
);
CREATE INDEX task_links_back ON task_links (repository, other);

CREATE TABLE task_counts (
    repository text PRIMARY KEY,
    last bigint NOT NULL
);
CREATE INDEX journal_of_task ON journal (repository, ((data::json) ->> 'task'), number)
WHERE kind >= 'task.' AND kind < 'task/';

-- --------------------------------------------------------------------------------------------------------- Landing

-- The verdict of a check on a tree, so that no tree is tested twice.
CREATE TABLE verdicts (
    repository text NOT NULL,
    tree text NOT NULL,
    check_key text NOT NULL,
    data text NOT NULL,          -- JSON
    PRIMARY KEY (repository, tree, check_key)
);

-- ------------------------------------------------------------------------------------------------- The quick grant

CREATE FUNCTION landlane_now() RETURNS bigint AS $$
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
$$ LANGUAGE sql VOLATILE;

-- Grant claims on literal paths and trees in one round trip if no other claim or waiter is near and no lock is taken.
-- Otherwise return NULL, and the caller decides in the usual way. The arrays have one element for each pattern.
-- Returns granted_at, the session's seen_at, 1 if anything is listened for, then a token for each pattern.
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
    -- Not for a session that has lapsed or whose shortest lease this would be.
    -- FOR SHARE, so that no other transaction ends the session before this one commits.
    SELECT s.seen_at,
           (SELECT m.value::bigint FROM meta m WHERE m.key = 'epoch'),
           EXISTS (SELECT 1 FROM listeners l
                   WHERE l.repository = p_repository AND l.key = '' AND l.alive_until > v_now)
      INTO v_seen, v_epoch, v_wakes
      FROM sessions s
     WHERE s.id = p_session AND s.ended_at IS NULL AND s.lapses_at > v_now + 2000 AND s.shortest_ms <= p_ttl
       AND NOT EXISTS (SELECT 1 FROM meta m WHERE m.key = 'moved_to/' || p_repository)
       AND NOT EXISTS (SELECT 1 FROM waiter_paths w WHERE w.repository = p_repository AND w.key = ANY (p_ancestors))
       AND NOT EXISTS (SELECT 1 FROM claims c WHERE c.repository = p_repository AND c.key = ANY (p_ancestors)
                       AND (c.session <> p_session OR c.key = ANY (p_keys)))
       FOR SHARE OF s SKIP LOCKED;
    IF NOT FOUND THEN RETURN NULL; END IF;
    -- One key at a time: joined to all keys at once, the range would be a filter on every claim.
    FOR i IN 1 .. array_length(p_keys, 1) LOOP
        IF EXISTS (SELECT 1 FROM claims c WHERE c.repository = p_repository
                   AND c.key > p_keys[i] || '/' AND c.key < p_keys[i] || '0' AND c.session <> p_session)
           OR EXISTS (SELECT 1 FROM waiter_paths w WHERE w.repository = p_repository
                      AND w.key > p_keys[i] || '/' AND w.key < p_keys[i] || '0')
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
