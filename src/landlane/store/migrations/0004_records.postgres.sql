-- Migration 4 for PostgreSQL: workspaces, landings and deploys, what checks said of trees, and who runs a queue.

-- Things that are read and written as a whole: few columns to find them by, the rest as JSON.
CREATE TABLE records (
    repository text NOT NULL,
    noun text NOT NULL,          -- workspace, landing, deploy or queue
    id text COLLATE "C" NOT NULL,
    state text NOT NULL,
    key text NOT NULL,           -- what else it is found by: a task, a target
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

-- What a check said of a tree: the same tree is never tested twice.
CREATE TABLE verdicts (
    repository text NOT NULL,
    tree text NOT NULL,
    check_key text NOT NULL,
    data text NOT NULL,          -- JSON
    PRIMARY KEY (repository, tree, check_key)
);

-- Who runs what only one may run at a time. A lower token than the one here has been overtaken.
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
