-- Migration 2 for SQLite: versioned state, numbers, slots and what runs once.
--
-- `written_at`, `given_at`, `begun_at` and `done_at` are the calendar's: they are shown, never compared. What the end
-- of a slot is judged by (`taken_at`, `until`) is the store's own time, as for claims.

CREATE TABLE state (
    repository TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    value TEXT NOT NULL,       -- JSON
    reducer TEXT NOT NULL,     -- how this version came about; empty when it was set
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    written_at INTEGER NOT NULL,
    PRIMARY KEY (repository, key)
) WITHOUT ROWID;

-- The newest versions of each key, the current one among them; the journal has all.
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

-- Every number that was given out; none is ever removed, so that none is given out twice.
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

-- What is held, and of kinds that count by time also what was freed but is not back yet (`freed_at`).
CREATE TABLE slots (
    repository TEXT NOT NULL,
    token INTEGER NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    place TEXT NOT NULL,       -- the port or the name; empty where only amounts count
    name TEXT NOT NULL,        -- what its holder calls it
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

-- Which port or name a workspace had before, so that it gets the same again.
CREATE TABLE slot_places (
    repository TEXT NOT NULL,
    kind TEXT NOT NULL,
    workspace TEXT NOT NULL,
    name TEXT NOT NULL,
    place TEXT NOT NULL,
    PRIMARY KEY (repository, kind, workspace, name)
) WITHOUT ROWID;

-- The newest run of each key: by which process, and how it ended.
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
