-- Migration 5 for PostgreSQL: the sessions of coding clients, what each has seen of a file, and their tool calls.

-- Who a client's session is among ours. A subagent has an agent of the client's own, and a parent.
CREATE TABLE client_sessions (
    repository text NOT NULL,
    client text NOT NULL,
    client_session text NOT NULL,
    client_agent text NOT NULL,  -- empty for the main session
    session text NOT NULL,
    parent text NOT NULL,        -- a session, or empty
    PRIMARY KEY (repository, client, client_session, client_agent)
);
CREATE INDEX client_sessions_of ON client_sessions (session);

-- What a session last saw of a file: its content, and the stamp by which an unchanged file is known quickly.
CREATE TABLE reads (
    repository text NOT NULL,
    session text NOT NULL,
    path text COLLATE "C" NOT NULL,          -- absolute: each checkout has its own copy
    digest text NOT NULL,        -- empty: there was no file
    stamp text NOT NULL,
    PRIMARY KEY (session, path)
);

-- Calls of tools that may change files, so that a change can be told whose it is.
CREATE TABLE tool_calls (
    repository text NOT NULL,
    session text NOT NULL,
    call text NOT NULL,
    kind text NOT NULL,          -- edit or shell
    root text NOT NULL,          -- the checkout
    paths text NOT NULL,         -- JSON: what an edit names
    snapshot text NOT NULL,      -- of the checkout, before a shell call
    began_at bigint NOT NULL,
    ended_at bigint,
    PRIMARY KEY (session, call)
);
CREATE INDEX tool_calls_in ON tool_calls (repository, root, began_at);
