-- What PostgreSQL needs differently; see queries.sql.

-- opening: what every change needs to know first, in one statement
SELECT t.now, (SELECT value FROM meta WHERE key = 'epoch') AS epoch,
       EXISTS (SELECT 1 FROM sessions
               WHERE repository = :repository AND ended_at IS NULL AND lapses_at <= t.now) AS has_lapsed,
       EXISTS (SELECT 1 FROM waiters WHERE repository = :repository) AS has_waiters,
       EXISTS (SELECT 1 FROM listeners WHERE repository = :repository AND alive_until > t.now) AS has_listeners,
       (SELECT value FROM meta WHERE key = 'moved_to/' || :repository) AS moved_to
FROM (SELECT coalesce(:given ::bigint, landlane_now()) AS now) t;

-- lock_areas: lock areas; the keys are sorted, so that two changes cannot deadlock
SELECT CASE WHEN l.alone THEN pg_advisory_xact_lock(l.key)::text
            ELSE pg_advisory_xact_lock_shared(l.key)::text END AS locked
FROM unnest(:keys ::bigint[], :alone ::boolean[]) AS l (key, alone);

-- take_uncontested: grant claims in one round trip when nothing else is near
SELECT landlane_take_uncontested(
    :repository, :session, :agent, :locks ::bigint[], :alone ::boolean[], :ancestors ::text[], :keys ::text[],
    :patterns ::text[], :kinds ::text[], :facts ::text[], :mode, :ttl_ms ::bigint, :task, :note) AS granted;

-- server_now: the clock that all machines share
SELECT landlane_now() AS now;

-- numbers: the next numbers of the journal
SELECT nextval('journal_number') AS number FROM generate_series(1, :count);

-- entry_add: add an entry; it is sealed once it is visible
INSERT INTO journal (repository, number, at, kind, agent, session, data)
VALUES (:repository, :number, :at, :kind, :agent, :session, :data);

-- unsealed_last: the newest entry that is not sealed yet
SELECT max(number) AS number FROM journal WHERE repository = :repository AND position IS NULL;

-- unsealed: visible entries without a position, by number
SELECT number, at, kind, agent, session, data FROM journal
WHERE repository = :repository AND position IS NULL ORDER BY number LIMIT :limit;

-- entries_seal: give entries their positions in the chain
UPDATE journal j SET position = v.position, hash = v.hash
FROM unnest(:numbers ::bigint[], :positions ::bigint[], :hashes ::text[]) AS v (number, position, hash)
WHERE j.repository = :repository AND j.number = v.number;

-- listener_beat: this listener is alive and wants to be notified
INSERT INTO listeners (repository, id, key, alive_until) VALUES (:repository, :id, :key, :alive_until)
ON CONFLICT (repository, id) DO UPDATE SET key = excluded.key, alive_until = excluded.alive_until;

-- listener_watch: this listener watches another key now
UPDATE listeners SET key = :key WHERE repository = :repository AND id = :id;

-- listener_drop: remove a listener, and those that are long dead
DELETE FROM listeners WHERE repository = :repository AND (id = :id OR alive_until < :now - 60000);

-- notify: wake the listeners of these keys; a key that nobody watches is not announced, which is expensive
SELECT count(pg_notify(:channel || CASE WHEN k.key = '' THEN '' ELSE '_' || k.key END, :payload)) AS notified
FROM unnest(:keys ::text[]) AS k (key)
WHERE EXISTS (SELECT 1 FROM listeners l WHERE l.repository = :repository AND l.key = k.key);

-- journal_continue: continue the numbers after the highest imported entry
SELECT setval('journal_number', greatest(max(number), max(position), nextval('journal_number'))) AS done FROM journal;

-- stop_writers: block all writers of the journal until this transaction ends
LOCK TABLE journal IN EXCLUSIVE MODE;

-- record_lock: one record, locked
SELECT data FROM records WHERE repository = :repository AND noun = :noun AND id = :id FOR UPDATE;
