-- The schema of a SQLite store. store/schema_version.py holds its number and the rule for changing it.
--
-- Timestamps are milliseconds of the store's own clock (see sqlite/store.py). Exceptions are journal.at, written_at,
-- given_at, begun_at and done_at: they are wall-clock time, for people, and never compared. A claim has no end of its
-- own: it ends ttl_ms after its grant or its session's last sign of life, whichever is later, so that renewing a
-- session is one small update.

-- ------------------------------------------------------------ The store, the repositories, the journal and records

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE repositories (
    id TEXT PRIMARY KEY,
    ignore_case INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE journal (
    repository TEXT NOT NULL,
    position INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    data TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (repository, position)
) WITHOUT ROWID;

-- The hash chain reveals an edit; these triggers make an accidental one fail. Only the repository id may change.
CREATE TRIGGER journal_is_never_changed BEFORE UPDATE OF position, number, at, kind, agent, session, data, hash
ON journal BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER journal_is_never_cut BEFORE DELETE ON journal
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;

-- JSON documents: workspaces, landings, gates and the like, with the few columns that are needed to find them.
CREATE TABLE records (
    repository TEXT NOT NULL,
    noun TEXT NOT NULL,          -- the kind of record
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    key TEXT NOT NULL,           -- a task or a target, to find it by
    data TEXT NOT NULL,          -- JSON
    PRIMARY KEY (repository, noun, id)
) WITHOUT ROWID;
CREATE INDEX records_by_state ON records (repository, noun, state);
CREATE INDEX records_by_key ON records (repository, noun, key);

CREATE TABLE record_counts (
    repository TEXT NOT NULL,
    noun TEXT NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (repository, noun)
) WITHOUT ROWID;

-- -------------------------------------------------------------------------------------------------------- Sessions

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    repository TEXT NOT NULL,
    agent TEXT NOT NULL,
    generation INTEGER NOT NULL,
    kind TEXT NOT NULL,
    role TEXT NOT NULL,
    machine TEXT NOT NULL,
    secret_hash TEXT NOT NULL,
    lease_ms INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    shortest_ms INTEGER NOT NULL,  -- the shortest lease of this session
    lapses_at INTEGER NOT NULL,    -- nothing of this session lapses earlier
    ended_at INTEGER,
    UNIQUE (repository, agent, generation)
) WITHOUT ROWID;
CREATE INDEX sessions_lapsing ON sessions (repository, lapses_at) WHERE ended_at IS NULL;

CREATE TABLE processes (
    repository TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    namespace TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started INTEGER NOT NULL,
    session TEXT NOT NULL,
    PRIMARY KEY (repository, boot_id, namespace, pid, started)
) WITHOUT ROWID;
CREATE INDEX processes_of_session ON processes (session);

CREATE TABLE waiters (
    repository TEXT NOT NULL,
    ticket INTEGER NOT NULL,
    session TEXT NOT NULL,
    mode TEXT NOT NULL,
    task TEXT NOT NULL,
    since INTEGER NOT NULL,
    alive_until INTEGER NOT NULL,
    PRIMARY KEY (repository, ticket)
) WITHOUT ROWID;

CREATE TABLE waiter_paths (
    repository TEXT NOT NULL,
    key TEXT NOT NULL,
    ticket INTEGER NOT NULL,
    branch INTEGER NOT NULL,
    rest TEXT,
    pattern TEXT NOT NULL,
    PRIMARY KEY (repository, key, ticket, branch)
) WITHOUT ROWID;

CREATE INDEX waiter_paths_in_line ON waiter_paths (repository, ticket);

-- Who runs what only one process may run at a time. A process with a lower token has been replaced.
CREATE TABLE runners (
    repository TEXT NOT NULL,
    name TEXT NOT NULL,
    holder TEXT NOT NULL,
    agent TEXT NOT NULL,
    token INTEGER NOT NULL,
    until INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    namespace TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started INTEGER NOT NULL,
    PRIMARY KEY (repository, name)
) WITHOUT ROWID;

-- Which session a coding client's session is. A subagent has the client's agent id and a parent session.
CREATE TABLE client_sessions (
    repository TEXT NOT NULL,
    client TEXT NOT NULL,
    client_session TEXT NOT NULL,
    client_agent TEXT NOT NULL,  -- empty for the main session
    session TEXT NOT NULL,
    parent TEXT NOT NULL,        -- a session id, or empty
    PRIMARY KEY (repository, client, client_session, client_agent)
) WITHOUT ROWID;
CREATE INDEX client_sessions_of ON client_sessions (session);

-- The version of a file that a session saw last: a digest of its content, and a stamp for a quick comparison.
CREATE TABLE reads (
    repository TEXT NOT NULL,
    session TEXT NOT NULL,
    path TEXT NOT NULL,          -- absolute: each checkout has its own copy
    digest TEXT NOT NULL,        -- empty if there was no file
    stamp TEXT NOT NULL,
    PRIMARY KEY (session, path)
) WITHOUT ROWID;

-- Tool calls that may change files, to find out which session made a change.
CREATE TABLE tool_calls (
    repository TEXT NOT NULL,
    session TEXT NOT NULL,
    call TEXT NOT NULL,
    kind TEXT NOT NULL,          -- edit or shell
    root TEXT NOT NULL,          -- the checkout
    paths TEXT NOT NULL,         -- JSON: the paths of an edit
    snapshot TEXT NOT NULL,      -- the checkout's, before a shell call
    began_at INTEGER NOT NULL,
    ended_at INTEGER,
    PRIMARY KEY (session, call)
) WITHOUT ROWID;
CREATE INDEX tool_calls_in ON tool_calls (repository, root, began_at);

-- ---------------------------------------------------------------------------------------------------------- Claims

-- One row for each brace alternative of a claim. Clustered by key: the claims that can overlap a request have a
-- key on the path from the root to the request's key, or in one range below it.
CREATE TABLE claims (
    repository TEXT NOT NULL,
    key TEXT NOT NULL,
    token INTEGER NOT NULL,
    branch INTEGER NOT NULL,
    rest TEXT,
    session TEXT NOT NULL,
    pattern TEXT NOT NULL,
    kind TEXT NOT NULL,
    mode TEXT NOT NULL,
    ttl_ms INTEGER NOT NULL,
    granted_at INTEGER NOT NULL,
    task TEXT NOT NULL,
    note TEXT NOT NULL,
    PRIMARY KEY (repository, key, token, branch)
) WITHOUT ROWID;
CREATE INDEX claims_of_session ON claims (session, token);

-- Claims that an agent lost when its lease ran out, to notify it when it comes back.
CREATE TABLE lapsed (
    repository TEXT NOT NULL,
    agent TEXT NOT NULL,
    pattern TEXT NOT NULL,
    kind TEXT NOT NULL,
    mode TEXT NOT NULL,
    ttl_ms INTEGER NOT NULL,
    token INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    PRIMARY KEY (repository, agent, pattern)
) WITHOUT ROWID;

-- ----------------------------------------------------------------------------------------------------------- State

CREATE TABLE state (
    repository TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    value TEXT NOT NULL,       -- JSON
    reducer TEXT NOT NULL,     -- the reducer that made this version; empty if it was set
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    written_at INTEGER NOT NULL,
    PRIMARY KEY (repository, key)
) WITHOUT ROWID;

-- The newest versions of each key, including the current one; the journal has all of them.
CREATE TABLE state_versions (
    repository TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    value TEXT NOT NULL,
    reducer TEXT NOT NULL,
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    written_at INTEGER NOT NULL,
    PRIMARY KEY (repository, key, version)
) WITHOUT ROWID;

-- All numbers given out; none is ever removed, so that none is given out twice.
CREATE TABLE numbers (
    repository TEXT NOT NULL,
    kind TEXT NOT NULL,
    number INTEGER NOT NULL,
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    purpose TEXT NOT NULL,
    given_at INTEGER NOT NULL,
    PRIMARY KEY (repository, kind, number)
) WITHOUT ROWID;

-- Slots that are held, and freed ones (`freed_at`) of kinds where a slot counts until its time is over.
CREATE TABLE slots (
    repository TEXT NOT NULL,
    token INTEGER NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    place TEXT NOT NULL,       -- the port or name; empty if only the amount counts
    name TEXT NOT NULL,        -- chosen by its holder
    workspace TEXT NOT NULL,
    amount INTEGER NOT NULL,
    session TEXT NOT NULL,
    taken_at INTEGER NOT NULL,
    until INTEGER,
    freed_at INTEGER,
    PRIMARY KEY (repository, token)
) WITHOUT ROWID;
CREATE INDEX slots_of_kind ON slots (repository, kind);
CREATE INDEX slots_of_session ON slots (session);

-- The port or name that a workspace had last, so that it gets the same one again.
CREATE TABLE slot_places (
    repository TEXT NOT NULL,
    kind TEXT NOT NULL,
    workspace TEXT NOT NULL,
    name TEXT NOT NULL,
    place TEXT NOT NULL,
    PRIMARY KEY (repository, kind, workspace, name)
) WITHOUT ROWID;

-- The newest run of each key: its process, and how it ended.
CREATE TABLE once (
    repository TEXT NOT NULL,
    key TEXT NOT NULL,
    run INTEGER NOT NULL,
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    machine TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    namespace TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started INTEGER NOT NULL,
    child_pid INTEGER NOT NULL,
    child_started INTEGER NOT NULL,
    command TEXT NOT NULL,
    begun_at INTEGER NOT NULL,
    done_at INTEGER,
    exit_code INTEGER,
    output TEXT NOT NULL,
    PRIMARY KEY (repository, key)
) WITHOUT ROWID;

-- The runs inside of which a call waits for the run of another key.
CREATE TABLE once_waits (
    repository TEXT NOT NULL,
    wait TEXT NOT NULL,
    inside TEXT NOT NULL,  -- the key of the run that made the call
    key TEXT NOT NULL,
    session TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    namespace TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started INTEGER NOT NULL,
    PRIMARY KEY (repository, wait, inside)
) WITHOUT ROWID;

-- ----------------------------------------------------------------------------------------------------------- Tasks

CREATE TABLE tasks (
    repository TEXT NOT NULL,
    id TEXT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    role TEXT NOT NULL,
    priority INTEGER NOT NULL,
    rank INTEGER NOT NULL,       -- ready tasks with a lower rank are offered first
    paths TEXT NOT NULL,         -- JSON: the declared patterns, each as [text, kind]
    owner TEXT NOT NULL,
    session TEXT NOT NULL,
    attempt INTEGER NOT NULL,    -- how often it was taken
    failures INTEGER NOT NULL,   -- how often its owner gave up
    lapses INTEGER NOT NULL,     -- how often its owner's lease ran out
    max_attempts INTEGER NOT NULL,
    lineage TEXT NOT NULL,       -- the first of the tasks that it descends from, or itself
    check_command TEXT NOT NULL,
    output TEXT NOT NULL,
    key TEXT,
    labels TEXT NOT NULL,        -- JSON
    why TEXT NOT NULL,
    next_action TEXT NOT NULL,
    head TEXT NOT NULL,          -- the verified commit
    result TEXT NOT NULL,
    waits_for INTEGER NOT NULL,  -- the number of dependencies that are not done
    created_at INTEGER NOT NULL,
    ready_at INTEGER NOT NULL,
    taken_at INTEGER NOT NULL,
    PRIMARY KEY (repository, id)
) WITHOUT ROWID;

-- Ordered by length(id) first, because T9 was added before T10.
CREATE INDEX tasks_ready ON tasks (repository, role, rank, length(id), id) WHERE state = 'ready';

-- Each index holds only some states, so that finished tasks cost nothing.
CREATE INDEX tasks_in_hand ON tasks (repository, session, state) WHERE state IN ('active', 'reported', 'landing');
CREATE INDEX tasks_aside ON tasks (repository, state)
WHERE state IN ('blocked', 'review', 'waiting_for_person', 'failed', 'dead');
CREATE UNIQUE INDEX tasks_by_key ON tasks (repository, key) WHERE key IS NOT NULL;

CREATE TABLE task_after (
    repository TEXT NOT NULL,
    task TEXT NOT NULL,
    after TEXT NOT NULL,
    PRIMARY KEY (repository, task, after)
) WITHOUT ROWID;
CREATE INDEX task_before ON task_after (repository, after);

-- Words, issue ids and folders of a task, to find tasks that look alike.
CREATE TABLE task_signs (
    repository TEXT NOT NULL,
    sign TEXT NOT NULL,
    task TEXT NOT NULL,
    PRIMARY KEY (repository, sign, task)
) WITHOUT ROWID;

CREATE TABLE task_links (
    repository TEXT NOT NULL,
    task TEXT NOT NULL,
    other TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (repository, task, other)
) WITHOUT ROWID;
CREATE INDEX task_links_back ON task_links (repository, other);

CREATE TABLE task_counts (
    repository TEXT PRIMARY KEY,
    last INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX journal_of_task ON journal (repository, json_extract(data, '$.task'), position)
WHERE kind >= 'task.' AND kind < 'task/';

-- --------------------------------------------------------------------------------------------------------- Landing

-- The verdict of a check on a tree, so that no tree is tested twice.
CREATE TABLE verdicts (
    repository TEXT NOT NULL,
    tree TEXT NOT NULL,
    check_key TEXT NOT NULL,
    data TEXT NOT NULL,          -- JSON
    PRIMARY KEY (repository, tree, check_key)
) WITHOUT ROWID;
