-- Migration 4 for SQLite: workspaces, landings and deploys, what checks said of trees, and who runs a queue.

-- Things that are read and written as a whole: few columns to find them by, the rest as JSON.
CREATE TABLE records (
    repository TEXT NOT NULL,
    noun TEXT NOT NULL,          -- workspace, landing, deploy or queue
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    key TEXT NOT NULL,           -- what else it is found by: a task, a target
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

-- What a check said of a tree: the same tree is never tested twice.
CREATE TABLE verdicts (
    repository TEXT NOT NULL,
    tree TEXT NOT NULL,
    check_key TEXT NOT NULL,
    data TEXT NOT NULL,          -- JSON
    PRIMARY KEY (repository, tree, check_key)
) WITHOUT ROWID;

-- Who runs what only one may run at a time. A lower token than the one here has been overtaken.
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
