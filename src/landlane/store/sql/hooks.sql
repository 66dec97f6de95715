-- Statements about coding clients. See statements.sql for how to read them.

-- client_bind: a client's session, or a subagent of it, is this session of ours
INSERT INTO client_sessions (repository, client, client_session, client_agent, session, parent)
VALUES (:repository, :client, :client_session, :client_agent, :session, :parent)
ON CONFLICT (repository, client, client_session, client_agent)
DO UPDATE SET session = excluded.session, parent = excluded.parent;

-- client_session_get: which session of ours a client's is
SELECT session, parent FROM client_sessions
WHERE repository = :repository AND client = :client AND client_session = :client_session
  AND client_agent = :client_agent;

-- client_session_of: which client's session one of ours is
SELECT client, client_session, client_agent, parent FROM client_sessions
WHERE repository = :repository AND session = :session;

-- client_sessions_live: the sessions of clients that have not ended
SELECT c.client, c.client_session, c.client_agent, c.session, c.parent, s.agent
FROM client_sessions c JOIN sessions s ON s.id = c.session
WHERE c.repository = :repository AND s.ended_at IS NULL ORDER BY s.agent;

-- parent_of: whose subagent a session is
SELECT parent FROM client_sessions WHERE repository = :repository AND session = :session AND parent <> '';

-- children_of: the subagents of a session that have not ended
SELECT s.id, s.agent, s.generation, s.kind, s.role, s.machine, s.secret_hash, s.lease_ms, s.started_at, s.seen_at,
       s.shortest_ms, s.lapses_at, s.ended_at
FROM client_sessions c JOIN sessions s ON s.id = c.session
WHERE c.repository = :repository AND c.parent = :session AND s.ended_at IS NULL ORDER BY s.agent;

-- claim_hand_up: what a subagent held is its parent's now
UPDATE claims SET session = :parent WHERE session = :session AND token = :token;

-- read_put: what a session has just seen of a file
INSERT INTO reads (repository, session, path, digest, stamp) VALUES (:repository, :session, :path, :digest, :stamp)
ON CONFLICT (session, path) DO UPDATE SET digest = excluded.digest, stamp = excluded.stamp;

-- read_get: what a session last saw of a file
SELECT digest, stamp FROM reads WHERE session = :session AND path = :path;

-- reads_of: all that a session has seen
SELECT path, digest, stamp FROM reads WHERE repository = :repository AND session = :session ORDER BY path;

-- readers_of: the live sessions that have seen a file
SELECT r.session, s.agent, r.path, r.digest FROM reads r JOIN sessions s ON s.id = r.session
WHERE r.repository = :repository AND r.path IN (:*paths) AND s.ended_at IS NULL;

-- read_drop: it counts no more
DELETE FROM reads WHERE session = :session AND path = :path;

-- reads_forget: a session is over
DELETE FROM reads WHERE session = :session;

-- reads_hand_on: what a session had seen before its lease ran out
UPDATE reads SET session = :session
WHERE session = :former AND path NOT IN (SELECT path FROM reads WHERE session = :session);

-- reads_forget_old: of sessions that were over long ago
DELETE FROM reads WHERE repository = :repository
  AND session IN (SELECT id FROM sessions WHERE repository = :repository AND ended_at < :before);

-- tool_call_begin: a tool that may change files begins
INSERT INTO tool_calls (repository, session, call, kind, root, paths, snapshot, began_at)
VALUES (:repository, :session, :call, :kind, :root, :paths, :snapshot, :now)
ON CONFLICT (session, call) DO UPDATE SET kind = excluded.kind, root = excluded.root, paths = excluded.paths,
    snapshot = excluded.snapshot, began_at = excluded.began_at, ended_at = NULL;

-- tool_call_end: it has ended
UPDATE tool_calls SET ended_at = :now WHERE session = :session AND call = :call AND ended_at IS NULL;

-- tool_call_get: one of them
SELECT kind, root, paths, snapshot, began_at, ended_at FROM tool_calls WHERE session = :session AND call = :call;

-- tool_calls_open: those of a session that have not ended, the newest first
SELECT call, kind, root, paths, snapshot, began_at FROM tool_calls
WHERE session = :session AND ended_at IS NULL ORDER BY began_at DESC, call DESC;

-- tool_calls_during: those of live sessions in a checkout that ran at some time since an instant
SELECT t.session, s.agent, t.call, t.kind, t.paths, t.began_at, t.ended_at
FROM tool_calls t JOIN sessions s ON s.id = t.session
WHERE t.repository = :repository AND t.root = :root AND s.ended_at IS NULL
  AND (t.ended_at IS NULL OR t.ended_at >= :since);

-- tool_calls_announced: calls of our own tools that hooks told of and nobody has answered, with whose subagent
SELECT t.session, s.agent, t.call, t.snapshot, COALESCE(c.parent, '')
FROM tool_calls t JOIN sessions s ON s.id = t.session
LEFT JOIN client_sessions c ON c.session = t.session AND c.parent <> ''
WHERE t.repository = :repository AND t.root = '' AND t.began_at >= :since AND t.kind = 'mcp'
  AND t.ended_at IS NULL AND s.ended_at IS NULL
ORDER BY t.began_at DESC;

-- tool_calls_forget: what is too old to matter
DELETE FROM tool_calls WHERE repository = :repository AND began_at < :before;

-- adopt_client_sessions: follow the repository's new id
UPDATE client_sessions SET repository = :repository WHERE repository = :former;

-- adopt_reads: follow the repository's new id
UPDATE reads SET repository = :repository WHERE repository = :former;

-- adopt_tool_calls: follow the repository's new id
UPDATE tool_calls SET repository = :repository WHERE repository = :former;

-- carry_client_sessions: everything, for another store
SELECT client, client_session, client_agent, session, parent FROM client_sessions WHERE repository = :repository;

-- carry_reads: everything, for another store
SELECT session, path, digest, stamp FROM reads WHERE repository = :repository;

-- arrive_client_sessions: from another store
INSERT INTO client_sessions (repository, client, client_session, client_agent, session, parent)
VALUES (:repository, :client, :client_session, :client_agent, :session, :parent);

-- arrive_reads: from another store
INSERT INTO reads (repository, session, path, digest, stamp) VALUES (:repository, :session, :path, :digest, :stamp);
