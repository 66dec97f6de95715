-- Statements about sessions, processes, waiters, client sessions, files read, tool calls and runner leases.

-- session_get: one session by id
SELECT id, agent, generation, kind, role, machine, secret_hash, lease_ms, started_at, seen_at, shortest_ms,
       lapses_at, ended_at
FROM sessions WHERE id = :session AND repository = :repository;

-- session_latest: the newest session of an agent
SELECT id, agent, generation, kind, role, machine, secret_hash, lease_ms, started_at, seen_at, shortest_ms,
       lapses_at, ended_at
FROM sessions WHERE repository = :repository AND agent = :agent ORDER BY generation DESC LIMIT 1;

-- sessions_live: all sessions that have not ended
SELECT id, agent, generation, kind, role, machine, secret_hash, lease_ms, started_at, seen_at, shortest_ms,
       lapses_at, ended_at
FROM sessions WHERE repository = :repository AND ended_at IS NULL ORDER BY agent;

-- session_add: add a session
INSERT INTO sessions (id, repository, agent, generation, kind, role, machine, secret_hash, lease_ms, started_at,
                      seen_at, shortest_ms, lapses_at)
VALUES (:session, :repository, :agent, :generation, :kind, :role, :machine, :secret_hash, :lease_ms, :now,
        :now, :lease_ms, :now + :lease_ms);

-- session_set_role: change the role of a session
UPDATE sessions SET role = :role WHERE id = :session;

-- session_touch: renew a session, unless something of it has lapsed already
UPDATE sessions SET seen_at = :now, lapses_at = :now + shortest_ms
WHERE id = :session AND ended_at IS NULL AND lapses_at > :now;

-- session_set_lease: set when something of the session lapses next
UPDATE sessions SET seen_at = :seen_at, shortest_ms = :shortest_ms, lapses_at = :lapses_at
WHERE id = :session AND ended_at IS NULL;

-- session_end: end a session
UPDATE sessions SET ended_at = :now WHERE id = :session AND ended_at IS NULL;

-- sessions_lapsing: sessions of which something has lapsed
SELECT id FROM sessions
WHERE repository = :repository AND ended_at IS NULL AND lapses_at <= :now ORDER BY lapses_at LIMIT 50;

-- lapse_due: whether any session has lapsed and was not ended yet
SELECT 1 AS is_due FROM sessions WHERE repository = :repository AND ended_at IS NULL AND lapses_at <= :now LIMIT 1;

-- session_lock: one session, locked
SELECT id, agent, generation, kind, role, machine, secret_hash, lease_ms, started_at, seen_at, shortest_ms,
       lapses_at, ended_at
FROM sessions WHERE id = :session;

-- process_add: register a process for a session
INSERT INTO processes (repository, boot_id, namespace, pid, started, session)
VALUES (:repository, :boot_id, :namespace, :pid, :started, :session)
ON CONFLICT (repository, boot_id, namespace, pid, started) DO UPDATE SET session = excluded.session;

-- processes_of: the processes of a session
SELECT boot_id, namespace, pid, started FROM processes WHERE session = :session;

-- processes_among: which of these process ids are registered since this boot
SELECT p.pid, p.started, p.session, s.agent, s.ended_at FROM processes p JOIN sessions s ON s.id = p.session
WHERE p.repository = :repository AND p.boot_id = :boot_id AND p.namespace = :namespace AND p.pid IN (:*pids);

-- processes_drop: remove the processes of a session
DELETE FROM processes WHERE session = :session;

-- waiter_next_ticket: the next ticket in the queue
SELECT coalesce(max(ticket), 0) + 1 AS ticket FROM waiters WHERE repository = :repository;

-- waiter_add: add a waiter
INSERT INTO waiters (repository, ticket, session, mode, task, since, alive_until)
VALUES (:repository, :ticket, :session, :mode, :task, :now, :alive_until);

-- waiter_path_add: add a path that a waiter wants
INSERT INTO waiter_paths (repository, key, ticket, branch, rest, pattern)
VALUES (:repository, :key, :ticket, :branch, :rest, :pattern);

-- waiter_beat: this waiter is alive
UPDATE waiters SET alive_until = :alive_until WHERE repository = :repository AND ticket = :ticket;

-- waiters_all: all waiters, in order of arrival
SELECT p.key, p.rest, p.pattern, w.ticket, w.session, s.agent, w.mode, w.task, w.since, w.alive_until
FROM waiters w JOIN sessions s ON s.id = w.session
     JOIN waiter_paths p ON p.repository = w.repository AND p.ticket = w.ticket
WHERE w.repository = :repository ORDER BY w.ticket, p.branch;

-- waiter_get: one waiter
SELECT p.key, p.rest, p.pattern, w.ticket, w.session, s.agent, w.mode, w.task, w.since, w.alive_until
FROM waiters w JOIN sessions s ON s.id = w.session
     JOIN waiter_paths p ON p.repository = w.repository AND p.ticket = w.ticket
WHERE w.repository = :repository AND w.ticket = :ticket ORDER BY p.branch;

-- waiter_alive: whether a waiter is there and alive
SELECT ticket FROM waiters WHERE repository = :repository AND ticket = :ticket AND alive_until > :now;

-- waiters_near: waiters whose paths may overlap a key
SELECT p.key, p.rest, p.pattern, w.ticket, w.session, s.agent, w.mode, w.task, w.since, w.alive_until
FROM waiter_paths p JOIN waiters w ON w.repository = p.repository AND w.ticket = p.ticket
     JOIN sessions s ON s.id = w.session
WHERE p.repository = :repository AND w.session <> :session AND w.alive_until > :now
  AND (p.key IN (:*ancestors) OR p.key > :low AND p.key < :high)
ORDER BY w.ticket;

-- waiters_before: waiters in line before a ticket whose paths may overlap a key, nearest first; also silent ones
SELECT p.key, p.rest, p.pattern, w.ticket, w.session, s.agent, w.mode, w.task, w.since, w.alive_until
FROM (SELECT key, rest, pattern, ticket, branch FROM waiter_paths
      WHERE repository = :repository AND ticket < :ticket
        AND (key IN (:*ancestors) OR key > :low AND key < :high)
      ORDER BY ticket DESC LIMIT :limit OFFSET :skipped) p
     JOIN waiters w ON w.repository = :repository AND w.ticket = p.ticket
     JOIN sessions s ON s.id = w.session
ORDER BY w.ticket DESC, p.branch;

-- waiters_ahead: how many wait in any line, longer than the one with this ticket
SELECT count(*) AS waiters FROM waiters WHERE repository = :repository AND ticket < :ticket;

-- waiter_drop: remove a waiter
DELETE FROM waiters WHERE repository = :repository AND ticket = :ticket;

-- waiter_paths_drop: remove the paths of a waiter
DELETE FROM waiter_paths WHERE repository = :repository AND ticket = :ticket;

-- waiters_silent: waiters that gave no sign of life for long
SELECT ticket FROM waiters WHERE repository = :repository AND alive_until < :before;

-- waiters_of: the tickets of a session
SELECT ticket FROM waiters WHERE repository = :repository AND session = :session;

-- drop_sessions: remove the sessions of an outdated copy
DELETE FROM sessions WHERE repository = :former;

-- rekey_sessions: change the repository id
UPDATE sessions SET repository = :repository WHERE repository = :former;

-- rekey_processes: change the repository id
UPDATE processes SET repository = :repository WHERE repository = :former;

-- rekey_waiters: change the repository id
UPDATE waiters SET repository = :repository WHERE repository = :former;

-- rekey_waiter_paths: change the repository id
UPDATE waiter_paths SET repository = :repository WHERE repository = :former;

-- export_sessions: all rows, to copy them to another store
SELECT id, agent, generation, kind, role, machine, secret_hash, lease_ms, started_at, seen_at, shortest_ms,
       lapses_at, ended_at
FROM sessions WHERE repository = :repository;

-- export_processes: all rows, to copy them to another store
SELECT boot_id, namespace, pid, started, session FROM processes WHERE repository = :repository;

-- import_sessions: add a row copied from another store
INSERT INTO sessions (id, repository, agent, generation, kind, role, machine, secret_hash, lease_ms, started_at,
                      seen_at, shortest_ms, lapses_at, ended_at)
VALUES (:id, :repository, :agent, :generation, :kind, :role, :machine, :secret_hash, :lease_ms, :started_at,
        :seen_at, :shortest_ms, :lapses_at, :ended_at);

-- import_processes: add a row copied from another store
INSERT INTO processes (repository, boot_id, namespace, pid, started, session)
VALUES (:repository, :boot_id, :namespace, :pid, :started, :session);

-- runner_lock: who runs it, locked
SELECT holder, agent, token, until, boot_id, namespace, pid, started FROM runners
WHERE repository = :repository AND name = :name;

-- runner_get: who runs it
SELECT holder, agent, token, until, boot_id, namespace, pid, started FROM runners
WHERE repository = :repository AND name = :name;

-- runner_put: set who runs it
INSERT INTO runners (repository, name, holder, agent, token, until, boot_id, namespace, pid, started)
VALUES (:repository, :name, :holder, :agent, :token, :until, :boot_id, :namespace, :pid, :started)
ON CONFLICT (repository, name) DO UPDATE SET holder = excluded.holder, agent = excluded.agent,
    token = excluded.token, until = excluded.until, boot_id = excluded.boot_id, namespace = excluded.namespace,
    pid = excluded.pid, started = excluded.started;

-- runner_renew: renew the lease of the runner; no row if another one took over
UPDATE runners SET until = :until WHERE repository = :repository AND name = :name AND token = :token AND holder <> '';

-- runner_drop: end the lease of the runner; the token stays, so that the next one is higher
UPDATE runners SET holder = '', until = 0 WHERE repository = :repository AND name = :name AND token = :token;

-- rekey_runners: change the repository id
UPDATE runners SET repository = :repository WHERE repository = :former;

-- export_runners: all rows, to copy them to another store
SELECT name, holder, agent, token, until, boot_id, namespace, pid, started FROM runners
WHERE repository = :repository;

-- import_runners: add a row copied from another store
INSERT INTO runners (repository, name, holder, agent, token, until, boot_id, namespace, pid, started)
VALUES (:repository, :name, :holder, :agent, :token, :until, :boot_id, :namespace, :pid, :started);

-- client_bind: bind a client's session or subagent to a session
INSERT INTO client_sessions (repository, client, client_session, client_agent, session, parent)
VALUES (:repository, :client, :client_session, :client_agent, :session, :parent)
ON CONFLICT (repository, client, client_session, client_agent)
DO UPDATE SET session = excluded.session, parent = excluded.parent;

-- client_session_get: the session of a client's session
SELECT client, client_session, client_agent, session, parent FROM client_sessions
WHERE repository = :repository AND client = :client AND client_session = :client_session
  AND client_agent = :client_agent;

-- client_session_of: the client's session of a session
SELECT client, client_session, client_agent, session, parent FROM client_sessions
WHERE repository = :repository AND session = :session;

-- client_sessions_live: client sessions that have not ended
SELECT c.client, c.client_session, c.client_agent, c.session, c.parent
FROM client_sessions c JOIN sessions s ON s.id = c.session
WHERE c.repository = :repository AND s.ended_at IS NULL ORDER BY s.agent;

-- parent_of: the parent session of a subagent
SELECT parent FROM client_sessions WHERE repository = :repository AND session = :session AND parent <> '';

-- children_of: the subagents of a session that have not ended
SELECT s.id, s.agent, s.generation, s.kind, s.role, s.machine, s.secret_hash, s.lease_ms, s.started_at, s.seen_at,
       s.shortest_ms, s.lapses_at, s.ended_at
FROM client_sessions c JOIN sessions s ON s.id = c.session
WHERE c.repository = :repository AND c.parent = :session AND s.ended_at IS NULL ORDER BY s.agent;

-- read_put: record the version of a file that a session has seen
INSERT INTO reads (repository, session, path, digest, stamp) VALUES (:repository, :session, :path, :digest, :stamp)
ON CONFLICT (session, path) DO UPDATE SET digest = excluded.digest, stamp = excluded.stamp;

-- read_get: the version of a file that a session has seen last
SELECT digest, stamp FROM reads WHERE session = :session AND path = :path;

-- reads_of: all file versions that a session has seen
SELECT path, digest, stamp FROM reads WHERE repository = :repository AND session = :session ORDER BY path;

-- reads_forget: remove all that a session has seen
DELETE FROM reads WHERE session = :session;

-- reads_hand_on: pass on what a session had seen before its lease ran out
UPDATE reads SET session = :session
WHERE session = :former AND path NOT IN (SELECT path FROM reads WHERE session = :session);

-- reads_forget_old: remove what sessions have seen that ended long ago
DELETE FROM reads WHERE repository = :repository
  AND session IN (SELECT id FROM sessions WHERE repository = :repository AND ended_at < :before);

-- tool_call_begin: record that a tool call that may change files begins
INSERT INTO tool_calls (repository, session, call, kind, root, paths, snapshot, began_at)
VALUES (:repository, :session, :call, :kind, :root, :paths, :snapshot, :now)
ON CONFLICT (session, call) DO UPDATE SET kind = excluded.kind, root = excluded.root, paths = excluded.paths,
    snapshot = excluded.snapshot, began_at = excluded.began_at, ended_at = NULL;

-- tool_call_end: record that a tool call has ended
UPDATE tool_calls SET ended_at = :now WHERE session = :session AND call = :call AND ended_at IS NULL;

-- tool_call_get: one tool call
SELECT snapshot, began_at FROM tool_calls WHERE session = :session AND call = :call;

-- tool_calls_open: tool calls of a session that have not ended, newest first
SELECT t.session, s.agent, t.call, t.kind, t.root, t.snapshot, t.began_at, t.ended_at
FROM tool_calls t JOIN sessions s ON s.id = t.session
WHERE t.session = :session AND t.ended_at IS NULL ORDER BY t.began_at DESC, t.call DESC;

-- tool_calls_during: tool calls of live sessions in a checkout that ran at some time since an instant
SELECT t.session, s.agent, t.call, t.kind, t.root, '' AS snapshot, t.began_at, t.ended_at
FROM tool_calls t JOIN sessions s ON s.id = t.session
WHERE t.repository = :repository AND t.root = :root AND s.ended_at IS NULL
  AND (t.ended_at IS NULL OR t.ended_at >= :since);

-- tool_calls_announced: unanswered calls of our own tools that a hook has announced, each with the parent session
SELECT t.session, s.agent, t.call, t.snapshot AS tool, coalesce(c.parent, '') AS parent
FROM tool_calls t JOIN sessions s ON s.id = t.session
LEFT JOIN client_sessions c ON c.session = t.session AND c.parent <> ''
WHERE t.repository = :repository AND t.root = '' AND t.began_at >= :since AND t.kind = 'mcp'
  AND t.ended_at IS NULL AND s.ended_at IS NULL
ORDER BY t.began_at DESC;

-- tool_calls_forget: remove old tool calls
DELETE FROM tool_calls WHERE repository = :repository AND began_at < :before;

-- rekey_client_sessions: change the repository id
UPDATE client_sessions SET repository = :repository WHERE repository = :former;

-- drop_reads: remove the file versions of an outdated copy
DELETE FROM reads WHERE repository = :former;

-- drop_tool_calls: remove the tool calls of an outdated copy
DELETE FROM tool_calls WHERE repository = :former;

-- rekey_reads: change the repository id
UPDATE reads SET repository = :repository WHERE repository = :former;

-- rekey_tool_calls: change the repository id
UPDATE tool_calls SET repository = :repository WHERE repository = :former;

-- export_client_sessions: all rows, to copy them to another store
SELECT client, client_session, client_agent, session, parent FROM client_sessions WHERE repository = :repository;

-- export_reads: all rows, to copy them to another store
SELECT session, path, digest, stamp FROM reads WHERE repository = :repository;

-- import_client_sessions: add a row copied from another store
INSERT INTO client_sessions (repository, client, client_session, client_agent, session, parent)
VALUES (:repository, :client, :client_session, :client_agent, :session, :parent);

-- import_reads: add a row copied from another store
INSERT INTO reads (repository, session, path, digest, stamp) VALUES (:repository, :session, :path, :digest, :stamp);
