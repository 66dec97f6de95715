-- Migration 1 for SQLite: sessions, claims, waiters and the journal.
--
-- Instants are whole milliseconds of the store's own clock (see store/sqlite/store.py), except journal.at, which is
-- the calendar's. A claim holds no end of its own: it ends ttl_ms after the later of its grant and its session's
-- last sign of life, so that renewing a session is one small update however much it holds.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE repositories (
    id TEXT PRIMARY KEY,
    ignore_case INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

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
    shortest_ms INTEGER NOT NULL,  -- no lease of this session is shorter
    lapses_at INTEGER NOT NULL,    -- nothing of this session lapses before
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

-- One row for each brace alternative of a claim. Clustered by key: what can overlap a request lies on the way
-- from the root to the request's key, or in one range below it.
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

-- What an agent held until its lease was over, so that it can be told so when it comes back.
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

-- The chain shows an edit; these make an accidental one fail. Only the repository's id may follow a new id.
CREATE TRIGGER journal_is_never_changed BEFORE UPDATE OF position, number, at, kind, agent, session, data, hash
ON journal BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER journal_is_never_cut BEFORE DELETE ON journal
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
