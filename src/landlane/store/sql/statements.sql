-- Every statement of the product, once, for both databases. A statement begins with its name and purpose;
-- `:name` is a parameter, `IN (:*name)` a list. :repository and :now are always there.
-- What a database must say differently stands in statements.sqlite.sql or statements.postgres.sql.

-- meta_all: everything the store knows about itself
SELECT key, value FROM meta;

-- meta_get: one fact about the store
SELECT value FROM meta WHERE key = :key;

-- meta_set: remember a fact about the store
INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- repository_get: how paths are compared in this repository
SELECT ignore_case FROM repositories WHERE id = :repository;

-- repository_add: begin a repository
INSERT INTO repositories (id, ignore_case) VALUES (:repository, :ignore_case) ON CONFLICT DO NOTHING;

-- repository_ids: all repositories in this store
SELECT id FROM repositories ORDER BY id;

-- session_get: one session by its id
SELECT id, agent, generation, kind, role, machine, secret_hash, lease_ms, started_at, seen_at, shortest_ms,
       lapses_at, ended_at
FROM sessions WHERE id = :session AND repository = :repository;

-- session_latest: the newest incarnation of an agent
SELECT id, agent, generation, kind, role, machine, secret_hash, lease_ms, started_at, seen_at, shortest_ms,
       lapses_at, ended_at
FROM sessions WHERE repository = :repository AND agent = :agent ORDER BY generation DESC LIMIT 1;

-- sessions_live: all sessions that have not ended
SELECT id, agent, generation, kind, role, machine, secret_hash, lease_ms, started_at, seen_at, shortest_ms,
       lapses_at, ended_at
FROM sessions WHERE repository = :repository AND ended_at IS NULL ORDER BY agent;

-- session_add: begin an incarnation
INSERT INTO sessions (id, repository, agent, generation, kind, role, machine, secret_hash, lease_ms, started_at,
                      seen_at, shortest_ms, lapses_at)
VALUES (:session, :repository, :agent, :generation, :kind, :role, :machine, :secret_hash, :lease_ms, :now,
        :now, :lease_ms, :now + :lease_ms);

-- session_set_role: a session takes on another role
UPDATE sessions SET role = :role WHERE id = :session;

-- session_touch: a sign of life, unless something of the session has lapsed already
UPDATE sessions SET seen_at = :now, lapses_at = :now + shortest_ms
WHERE id = :session AND ended_at IS NULL AND lapses_at > :now;

-- session_set_lease: what the session's next lapse is
UPDATE sessions SET seen_at = :seen_at, shortest_ms = :shortest_ms, lapses_at = :lapses_at
WHERE id = :session AND ended_at IS NULL;

-- session_end: an incarnation is over
UPDATE sessions SET ended_at = :now WHERE id = :session AND ended_at IS NULL;

-- sessions_lapsing: sessions of which something has lapsed
SELECT id FROM sessions
WHERE repository = :repository AND ended_at IS NULL AND lapses_at <= :now ORDER BY lapses_at LIMIT 50;

-- lapse_due: has anything lapsed that nobody has swept away?
SELECT 1 FROM sessions WHERE repository = :repository AND ended_at IS NULL AND lapses_at <= :now LIMIT 1;

-- session_lock: hold a session still while it is judged
SELECT id, agent, generation, kind, role, machine, secret_hash, lease_ms, started_at, seen_at, shortest_ms,
       lapses_at, ended_at
FROM sessions WHERE id = :session;

-- process_add: this process stands for a session
INSERT INTO processes (repository, boot_id, namespace, pid, started, session)
VALUES (:repository, :boot_id, :namespace, :pid, :started, :session)
ON CONFLICT (repository, boot_id, namespace, pid, started) DO UPDATE SET session = excluded.session;

-- processes_of: the processes that stand for a session
SELECT boot_id, namespace, pid, started FROM processes WHERE session = :session;

-- processes_among: which of these process ids are registered on this boot
SELECT p.pid, p.started, p.session, s.agent, s.ended_at FROM processes p JOIN sessions s ON s.id = p.session
WHERE p.repository = :repository AND p.boot_id = :boot_id AND p.namespace = :namespace AND p.pid IN (:*pids);

-- processes_drop: a session is over, its processes stand for nobody
DELETE FROM processes WHERE session = :session;

-- claim_add: one branch of a grant
INSERT INTO claims (repository, key, token, branch, rest, session, pattern, kind, mode, ttl_ms, granted_at, task, note)
VALUES (:repository, :key, :token, :branch, :rest, :session, :pattern, :kind, :mode, :ttl_ms, :granted_at, :task,
        :note);

-- claims_near: what could overlap a key: all on the way to it, and the others' below it
SELECT c.key, c.rest, c.token, c.pattern, c.kind, c.mode, c.session, s.agent, c.task, c.note, c.ttl_ms,
       c.granted_at, s.seen_at, s.ended_at
FROM claims c JOIN sessions s ON s.id = c.session
WHERE c.repository = :repository AND c.key IN (:*ancestors)
UNION ALL
SELECT c.key, c.rest, c.token, c.pattern, c.kind, c.mode, c.session, s.agent, c.task, c.note, c.ttl_ms,
       c.granted_at, s.seen_at, s.ended_at
FROM claims c JOIN sessions s ON s.id = c.session
WHERE c.repository = :repository AND c.key > :low AND c.key < :high AND c.session <> :session;

-- claims_of: what a session holds
SELECT c.key, c.rest, c.token, c.pattern, c.kind, c.mode, c.session, s.agent, c.task, c.note, c.ttl_ms,
       c.granted_at, s.seen_at, s.ended_at
FROM claims c JOIN sessions s ON s.id = c.session
WHERE c.session = :session ORDER BY c.token, c.branch;

-- claims_all: what anybody holds, in the order of its grant
SELECT c.key, c.rest, c.token, c.pattern, c.kind, c.mode, c.session, s.agent, c.task, c.note, c.ttl_ms,
       c.granted_at, s.seen_at, s.ended_at
FROM claims c JOIN sessions s ON s.id = c.session
WHERE c.repository = :repository ORDER BY c.token, c.branch;

-- claims_count: how many grants are stored
SELECT count(DISTINCT token) FROM claims WHERE repository = :repository;

-- claim_renew: a claim counts its lease from now
UPDATE claims SET granted_at = :now, ttl_ms = :ttl_ms WHERE session = :session AND token = :token;

-- claim_drop: a claim is over
DELETE FROM claims WHERE session = :session AND token = :token;

-- lapsed_add: remember what an agent lost
INSERT INTO lapsed (repository, agent, pattern, kind, mode, ttl_ms, token, ended_at)
VALUES (:repository, :agent, :pattern, :kind, :mode, :ttl_ms, :token, :ended_at)
ON CONFLICT (repository, agent, pattern) DO UPDATE
SET kind = excluded.kind, mode = excluded.mode, ttl_ms = excluded.ttl_ms, token = excluded.token,
    ended_at = excluded.ended_at;

-- lapsed_get: did this agent lose this?
SELECT pattern, kind, mode, ttl_ms, token, ended_at FROM lapsed
WHERE repository = :repository AND agent = :agent AND pattern = :pattern;

-- lapsed_of: all that this agent lost and has not taken again
SELECT pattern, kind, mode, ttl_ms, token, ended_at FROM lapsed
WHERE repository = :repository AND agent = :agent ORDER BY token;

-- lapsed_of_others: what any other agent lost and has not taken again
SELECT agent, pattern, kind, token FROM lapsed
WHERE repository = :repository AND agent <> :agent ORDER BY token;

-- lapsed_drop: the agent has it again
DELETE FROM lapsed WHERE repository = :repository AND agent = :agent AND pattern = :pattern;

-- lapsed_forget: nobody asks for what was lost long ago
DELETE FROM lapsed WHERE repository = :repository AND ended_at < :before;

-- waiter_next_ticket: the place at the end of the line
SELECT coalesce(max(ticket), 0) + 1 FROM waiters WHERE repository = :repository;

-- waiter_add: somebody stands in line
INSERT INTO waiters (repository, ticket, session, mode, task, since, alive_until)
VALUES (:repository, :ticket, :session, :mode, :task, :now, :alive_until);

-- waiter_path_add: what the waiter wants
INSERT INTO waiter_paths (repository, key, ticket, branch, rest, pattern)
VALUES (:repository, :key, :ticket, :branch, :rest, :pattern);

-- waiter_beat: the waiter is still there
UPDATE waiters SET alive_until = :alive_until WHERE repository = :repository AND ticket = :ticket;

-- waiters_all: the line, first come first
SELECT w.ticket, w.session, s.agent, w.mode, w.task, w.since, w.alive_until
FROM waiters w JOIN sessions s ON s.id = w.session WHERE w.repository = :repository ORDER BY w.ticket;

-- waiter_paths_of: what one waiter wants
SELECT key, rest, pattern FROM waiter_paths WHERE repository = :repository AND ticket = :ticket ORDER BY branch;

-- waiter_get: one place in line, with the first thing that it is for
SELECT w.session, s.agent, w.task, w.since, w.alive_until, p.key, p.pattern
FROM waiters w JOIN sessions s ON s.id = w.session
     JOIN waiter_paths p ON p.repository = w.repository AND p.ticket = w.ticket AND p.branch = 0
WHERE w.repository = :repository AND w.ticket = :ticket;

-- waiters_near: who waits for something that could overlap a key
SELECT p.key, p.rest, p.pattern, w.ticket, w.session, s.agent, w.mode, w.task, w.since, w.alive_until
FROM waiter_paths p JOIN waiters w ON w.repository = p.repository AND w.ticket = p.ticket
     JOIN sessions s ON s.id = w.session
WHERE p.repository = :repository AND w.session <> :session AND w.alive_until > :now
  AND (p.key IN (:*ancestors) OR p.key > :low AND p.key < :high)
ORDER BY w.ticket;

-- waiter_drop: a waiter leaves the line
DELETE FROM waiters WHERE repository = :repository AND ticket = :ticket;

-- waiter_paths_drop: and wants nothing any more
DELETE FROM waiter_paths WHERE repository = :repository AND ticket = :ticket;

-- waiters_silent: waiters that have not been heard of for long
SELECT ticket FROM waiters WHERE repository = :repository AND alive_until < :before;

-- waiters_of: the places in line of one session
SELECT ticket FROM waiters WHERE repository = :repository AND session = :session;

-- entries_after: sealed entries in order
SELECT position, number, at, kind, agent, session, data, hash FROM journal
WHERE repository = :repository AND position > :after ORDER BY position LIMIT :limit;

-- entry_last: the newest sealed entry
SELECT position, number, at, kind, agent, session, data, hash FROM journal
WHERE repository = :repository AND position IS NOT NULL ORDER BY position DESC LIMIT 1;

-- entry_count: how many entries there are
SELECT count(*) FROM journal WHERE repository = :repository;

-- repository_known: is this id in the store?
SELECT id FROM repositories WHERE id = :id;

-- repository_rename: the repository has a new id
UPDATE repositories SET id = :repository WHERE id = :former;

-- repository_set_case: compare paths another way
UPDATE repositories SET ignore_case = :ignore_case WHERE id = :repository;

-- adopt_sessions: follow the repository's new id
UPDATE sessions SET repository = :repository WHERE repository = :former;

-- adopt_processes: follow the repository's new id
UPDATE processes SET repository = :repository WHERE repository = :former;

-- adopt_claims: follow the repository's new id
UPDATE claims SET repository = :repository WHERE repository = :former;

-- adopt_lapsed: follow the repository's new id
UPDATE lapsed SET repository = :repository WHERE repository = :former;

-- adopt_waiters: follow the repository's new id
UPDATE waiters SET repository = :repository WHERE repository = :former;

-- adopt_waiter_paths: follow the repository's new id
UPDATE waiter_paths SET repository = :repository WHERE repository = :former;

-- adopt_journal: follow the repository's new id
UPDATE journal SET repository = :repository WHERE repository = :former;

-- claim_branches_drop: all rows of one grant
DELETE FROM claims WHERE repository = :repository AND token = :token;

-- carry_repositories: everything, for another store
SELECT id, ignore_case FROM repositories WHERE id = :repository;

-- carry_sessions: everything, for another store
SELECT id, agent, generation, kind, role, machine, secret_hash, lease_ms, started_at, seen_at, shortest_ms,
       lapses_at, ended_at
FROM sessions WHERE repository = :repository;

-- carry_processes: everything, for another store
SELECT boot_id, namespace, pid, started, session FROM processes WHERE repository = :repository;

-- carry_claims: everything, for another store
SELECT key, rest, token, branch, session, pattern, kind, mode, ttl_ms, granted_at, task, note
FROM claims WHERE repository = :repository;

-- carry_lapsed: everything, for another store
SELECT agent, pattern, kind, mode, ttl_ms, token, ended_at FROM lapsed WHERE repository = :repository;

-- carry_journal: everything, for another store
SELECT position, number, at, kind, agent, session, data, hash FROM journal
WHERE repository = :repository ORDER BY position;

-- arrive_repositories: from another store
INSERT INTO repositories (id, ignore_case) VALUES (:repository, :ignore_case);

-- arrive_sessions: from another store
INSERT INTO sessions (id, repository, agent, generation, kind, role, machine, secret_hash, lease_ms, started_at,
                      seen_at, shortest_ms, lapses_at, ended_at)
VALUES (:id, :repository, :agent, :generation, :kind, :role, :machine, :secret_hash, :lease_ms, :started_at,
        :seen_at, :shortest_ms, :lapses_at, :ended_at);

-- arrive_processes: from another store
INSERT INTO processes (repository, boot_id, namespace, pid, started, session)
VALUES (:repository, :boot_id, :namespace, :pid, :started, :session);

-- arrive_claims: from another store
INSERT INTO claims (repository, key, token, branch, rest, session, pattern, kind, mode, ttl_ms, granted_at, task, note)
VALUES (:repository, :key, :token, :branch, :rest, :session, :pattern, :kind, :mode, :ttl_ms, :granted_at, :task,
        :note);

-- arrive_lapsed: from another store
INSERT INTO lapsed (repository, agent, pattern, kind, mode, ttl_ms, token, ended_at)
VALUES (:repository, :agent, :pattern, :kind, :mode, :ttl_ms, :token, :ended_at);

-- arrive_journal: from another store, sealed as it was
INSERT INTO journal (repository, position, number, at, kind, agent, session, data, hash)
VALUES (:repository, :position, :number, :at, :kind, :agent, :session, :data, :hash);
