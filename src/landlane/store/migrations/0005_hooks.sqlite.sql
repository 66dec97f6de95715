-- Migration 5 for SQLite: the sessions of coding clients, what each has seen of a file, and their tool calls.

-- Who a client's session is among ours. A subagent has an agent of the client's own, and a parent.
CREATE TABLE client_sessions (
    repository TEXT NOT NULL,
    client TEXT NOT NULL,
    client_session TEXT NOT NULL,
    client_agent TEXT NOT NULL,  -- empty for the main session
    session TEXT NOT NULL,
    parent TEXT NOT NULL,        -- a session, or empty
    PRIMARY KEY (repository, client, client_session, client_agent)
) WITHOUT ROWID;
CREATE INDEX client_sessions_of ON client_sessions (session);

-- What a session last saw of a file: its content, and the stamp by which an unchanged file is known quickly.
CREATE TABLE reads (
    repository TEXT NOT NULL,
    session TEXT NOT NULL,
    path TEXT NOT NULL,          -- absolute: each checkout has its own copy
    digest TEXT NOT NULL,        -- empty: there was no file
    stamp TEXT NOT NULL,
    PRIMARY KEY (session, path)
) WITHOUT ROWID;

-- Calls of tools that may change files, so that a change can be told whose it is.
CREATE TABLE tool_calls (
    repository TEXT NOT NULL,
    session TEXT NOT NULL,
    call TEXT NOT NULL,
    kind TEXT NOT NULL,          -- edit or shell
    root TEXT NOT NULL,          -- the checkout
    paths TEXT NOT NULL,         -- JSON: what an edit names
    snapshot TEXT NOT NULL,      -- of the checkout, before a shell call
    began_at INTEGER NOT NULL,
    ended_at INTEGER,
    PRIMARY KEY (session, call)
) WITHOUT ROWID;
CREATE INDEX tool_calls_in ON tool_calls (repository, root, began_at);
