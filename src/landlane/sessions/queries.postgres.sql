-- What PostgreSQL needs differently; see queries.sql.

-- sessions_lapsing: sessions of which something has lapsed and that no other transaction is ending
SELECT id FROM sessions
WHERE repository = :repository AND ended_at IS NULL AND lapses_at <= :now
ORDER BY lapses_at LIMIT 50 FOR UPDATE SKIP LOCKED;

-- session_lock: one session, locked
SELECT id, agent, generation, kind, role, machine, secret_hash, lease_ms, started_at, seen_at, shortest_ms,
       lapses_at, ended_at
FROM sessions WHERE id = :session FOR UPDATE;

-- waiters_near_all: waiters whose paths may overlap any of these keys
SELECT p.key, p.rest, p.pattern, w.ticket, w.session, s.agent, w.mode, w.task, w.since, w.alive_until
FROM waiter_paths p JOIN waiters w ON w.repository = p.repository AND w.ticket = p.ticket
     JOIN sessions s ON s.id = w.session
WHERE p.repository = :repository AND w.session <> :session AND w.alive_until > :now
  AND (p.key IN (:*ancestors)
       OR EXISTS (SELECT 1 FROM unnest(:lows ::text[], :highs ::text[]) AS r (low, high)
                  WHERE p.key > r.low AND p.key < r.high))
ORDER BY w.ticket;

-- waiters_before_all: waiters in line before a ticket whose paths may overlap any of these keys, nearest first
SELECT p.key, p.rest, p.pattern, w.ticket, w.session, s.agent, w.mode, w.task, w.since, w.alive_until
FROM (SELECT q.key, q.rest, q.pattern, q.ticket, q.branch FROM waiter_paths q
      WHERE q.repository = :repository AND q.ticket < :ticket
        AND (q.key IN (:*ancestors)
             OR EXISTS (SELECT 1 FROM unnest(:lows ::text[], :highs ::text[]) AS r (low, high)
                        WHERE q.key > r.low AND q.key < r.high))
      ORDER BY q.ticket DESC LIMIT :limit OFFSET :skipped) p
     JOIN waiters w ON w.repository = :repository AND w.ticket = p.ticket
     JOIN sessions s ON s.id = w.session
ORDER BY w.ticket DESC, p.branch;

-- runner_lock: who runs it, locked
SELECT holder, agent, token, until, boot_id, namespace, pid, started FROM runners
WHERE repository = :repository AND name = :name FOR UPDATE;
