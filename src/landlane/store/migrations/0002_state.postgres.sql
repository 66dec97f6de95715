-- Migration 2 for PostgreSQL: the tables of 0002_state.sqlite.sql.

CREATE TABLE state (
    repository text NOT NULL,
    key text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    value text NOT NULL,       -- JSON
    reducer text NOT NULL,     -- how this version came about; empty when it was set
    agent text NOT NULL,
    session text NOT NULL,
    written_at bigint NOT NULL,
    PRIMARY KEY (repository, key)
);

-- The newest versions of each key, the current one among them; the journal has all.
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

-- Every number that was given out; none is ever removed, so that none is given out twice.
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

-- What is held, and of kinds that count by time also what was freed but is not back yet (`freed_at`).
CREATE TABLE slots (
    repository text NOT NULL,
    token bigint NOT NULL,
    id text NOT NULL,
    kind text NOT NULL,
    place text NOT NULL,       -- the port or the name; empty where only amounts count
    name text NOT NULL,        -- what its holder calls it
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

-- Which port or name a workspace had before, so that it gets the same again.
CREATE TABLE slot_places (
    repository text NOT NULL,
    kind text NOT NULL,
    workspace text NOT NULL,
    name text NOT NULL,
    place text NOT NULL,
    PRIMARY KEY (repository, kind, workspace, name)
);

-- The newest run of each key: by which process, and how it ended.
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
