-- What PostgreSQL says differently.

-- opening: what every change must know first, in one go
SELECT t.now, (SELECT value FROM meta WHERE key = 'epoch'),
       EXISTS (SELECT 1 FROM sessions
               WHERE repository = :repository AND ended_at IS NULL AND lapses_at <= t.now),
       EXISTS (SELECT 1 FROM waiters WHERE repository = :repository),
       EXISTS (SELECT 1 FROM listeners WHERE repository = :repository AND alive_until > t.now),
       (SELECT value FROM meta WHERE key = 'moved_to/' || :repository)
FROM (SELECT coalesce(:given ::bigint, landlane_now()) AS now) t;

-- lock_areas: hold still what is being judged; the keys come sorted, so that two never wait for each other
SELECT CASE WHEN l.alone THEN pg_advisory_xact_lock(l.key)::text ELSE pg_advisory_xact_lock_shared(l.key)::text END
FROM unnest(:keys ::bigint[], :alone ::boolean[]) AS l (key, alone);

-- take_uncontested: grant in one round trip when nothing lies near
SELECT landlane_take_uncontested(
    :repository, :session, :agent, :locks ::bigint[], :alone ::boolean[], :ancestors ::text[], :keys ::text[],
    :patterns ::text[], :kinds ::text[], :facts ::text[], :mode, :ttl_ms ::bigint, :task, :note);

-- server_now: the clock that all machines share
SELECT landlane_now();

-- numbers: the next numbers of the journal
SELECT nextval('journal_number') FROM generate_series(1, :count);

-- entry_add: write an entry; it is sealed once it is visible
INSERT INTO journal (repository, number, at, kind, agent, session, data)
VALUES (:repository, :number, :at, :kind, :agent, :session, :data);

-- sessions_lapsing: sessions of which something has lapsed, and which nobody else is judging
SELECT id FROM sessions
WHERE repository = :repository AND ended_at IS NULL AND lapses_at <= :now
ORDER BY lapses_at LIMIT 50 FOR UPDATE SKIP LOCKED;

-- session_lock: hold a session still while it is judged
SELECT id, agent, generation, kind, role, machine, secret_hash, lease_ms, started_at, seen_at, shortest_ms,
       lapses_at, ended_at
FROM sessions WHERE id = :session FOR UPDATE;

-- claims_near_all: what could overlap any of these keys, in one round trip
SELECT c.key, c.rest, c.token, c.pattern, c.kind, c.mode, c.session, s.agent, c.task, c.note, c.ttl_ms,
       c.granted_at, s.seen_at, s.ended_at
FROM claims c JOIN sessions s ON s.id = c.session
WHERE c.repository = :repository AND c.key IN (:*ancestors)
UNION
SELECT c.key, c.rest, c.token, c.pattern, c.kind, c.mode, c.session, s.agent, c.task, c.note, c.ttl_ms,
       c.granted_at, s.seen_at, s.ended_at
FROM unnest(:lows ::text[], :highs ::text[]) AS r (low, high)
     -- OFFSET 0 makes each range a look into the index; joined in the ordinary way it would be a filter on all
     -- claims of the repository.
     CROSS JOIN LATERAL (SELECT * FROM claims c WHERE c.repository = :repository AND c.key > r.low
                         AND c.key < r.high AND c.session <> :session OFFSET 0) AS c
     JOIN sessions s ON s.id = c.session;

-- waiters_near_all: who waits for something that could overlap any of these keys
SELECT p.key, p.rest, p.pattern, w.ticket, w.session, s.agent, w.mode, w.task, w.since, w.alive_until
FROM waiter_paths p JOIN waiters w ON w.repository = p.repository AND w.ticket = p.ticket
     JOIN sessions s ON s.id = w.session
WHERE p.repository = :repository AND w.session <> :session AND w.alive_until > :now
  AND (p.key IN (:*ancestors)
       OR EXISTS (SELECT 1 FROM unnest(:lows ::text[], :highs ::text[]) AS r (low, high)
                  WHERE p.key > r.low AND p.key < r.high))
ORDER BY w.ticket;

-- unsealed_last: the newest entry that is to be sealed
SELECT max(number) FROM journal WHERE repository = :repository AND position IS NULL;

-- unsealed: what is visible and has no position yet, in the order of its numbers
SELECT number, at, kind, agent, session, data FROM journal
WHERE repository = :repository AND position IS NULL ORDER BY number LIMIT :limit;

-- entries_seal: give entries their places in the chain
UPDATE journal j SET position = v.position, hash = v.hash
FROM unnest(:numbers ::bigint[], :positions ::bigint[], :hashes ::text[]) AS v (number, position, hash)
WHERE j.repository = :repository AND j.number = v.number;

-- listener_beat: somebody wants to be woken
INSERT INTO listeners (repository, id, alive_until) VALUES (:repository, :id, :alive_until)
ON CONFLICT (repository, id) DO UPDATE SET alive_until = excluded.alive_until;

-- listener_drop: nobody wants to be woken here any more
DELETE FROM listeners WHERE repository = :repository AND (id = :id OR alive_until < :now - 60000);

-- notify: wake whoever listens
SELECT pg_notify(:channel, :payload);

-- journal_continue: number the next entry behind all that arrived
SELECT setval('journal_number', greatest(max(number), max(position), nextval('journal_number'))) FROM journal;

-- stop_writers: nobody writes an entry until this transaction is over
LOCK TABLE journal IN EXCLUSIVE MODE;
