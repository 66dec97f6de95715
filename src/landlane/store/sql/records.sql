-- Statements about records: workspaces, landings, deploys and queues. See statements.sql for how to read them.

-- record_next: the number of the next one of a noun
INSERT INTO record_counts (repository, noun, last) VALUES (:repository, :noun, 1)
ON CONFLICT (repository, noun) DO UPDATE SET last = record_counts.last + 1 RETURNING last;

-- record_count_at_least: no number up to this one is given out again
INSERT INTO record_counts (repository, noun, last) VALUES (:repository, :noun, :last)
ON CONFLICT (repository, noun) DO UPDATE SET last = excluded.last WHERE record_counts.last < excluded.last;

-- record_get: one of them
SELECT data FROM records WHERE repository = :repository AND noun = :noun AND id = :id;

-- record_lock: one of them, held still
SELECT data FROM records WHERE repository = :repository AND noun = :noun AND id = :id;

-- records_all: all of a noun, in the order in which they began
SELECT data FROM records WHERE repository = :repository AND noun = :noun ORDER BY length(id), id;

-- records_in: those in one of these states
SELECT data FROM records WHERE repository = :repository AND noun = :noun AND state IN (:*states)
ORDER BY length(id), id;

-- records_unsettled: which of fans and reviews there are that may need something
SELECT DISTINCT noun FROM records WHERE repository = :repository AND noun IN ('fan', 'review')
AND state IN ('open', 'joined', 'deciding', 'approved', 'outdated');

-- records_of: those found by a key
SELECT data FROM records WHERE repository = :repository AND noun = :noun AND key = :key ORDER BY length(id), id;

-- records_of_in: those found by a key that are in this state
SELECT data FROM records WHERE repository = :repository AND noun = :noun AND key = :key AND state = :state
ORDER BY length(id), id;

-- record_put: as it is now
INSERT INTO records (repository, noun, id, state, key, data) VALUES (:repository, :noun, :id, :state, :key, :data)
ON CONFLICT (repository, noun, id) DO UPDATE SET state = excluded.state, key = excluded.key, data = excluded.data;

-- verdict_get: what a check said of a tree
SELECT data FROM verdicts WHERE repository = :repository AND tree = :tree AND check_key = :check_key;

-- verdict_put: what a check says of a tree
INSERT INTO verdicts (repository, tree, check_key, data) VALUES (:repository, :tree, :check_key, :data)
ON CONFLICT (repository, tree, check_key) DO UPDATE SET data = excluded.data;

-- runner_lock: who runs it, held still
SELECT holder, agent, token, until, boot_id, namespace, pid, started FROM runners
WHERE repository = :repository AND name = :name;

-- runner_put: who runs it now
INSERT INTO runners (repository, name, holder, agent, token, until, boot_id, namespace, pid, started)
VALUES (:repository, :name, :holder, :agent, :token, :until, :boot_id, :namespace, :pid, :started)
ON CONFLICT (repository, name) DO UPDATE SET holder = excluded.holder, agent = excluded.agent,
    token = excluded.token, until = excluded.until, boot_id = excluded.boot_id, namespace = excluded.namespace,
    pid = excluded.pid, started = excluded.started;

-- runner_renew: whoever runs it is alive; nothing when it was taken over
UPDATE runners SET until = :until WHERE repository = :repository AND name = :name AND token = :token AND holder <> '';

-- runner_drop: nobody runs it any more; the token stays, so that the next one is higher
UPDATE runners SET holder = '', until = 0 WHERE repository = :repository AND name = :name AND token = :token;

-- adopt_records: follow the repository's new id
UPDATE records SET repository = :repository WHERE repository = :former;

-- adopt_record_counts: follow the repository's new id
UPDATE record_counts SET repository = :repository WHERE repository = :former;

-- adopt_verdicts: follow the repository's new id
UPDATE verdicts SET repository = :repository WHERE repository = :former;

-- adopt_runners: follow the repository's new id
UPDATE runners SET repository = :repository WHERE repository = :former;

-- carry_records: everything, for another store
SELECT noun, id, state, key, data FROM records WHERE repository = :repository;

-- carry_record_counts: everything, for another store
SELECT noun, last FROM record_counts WHERE repository = :repository;

-- carry_verdicts: everything, for another store
SELECT tree, check_key, data FROM verdicts WHERE repository = :repository;

-- carry_runners: everything, for another store
SELECT name, holder, agent, token, until, boot_id, namespace, pid, started FROM runners
WHERE repository = :repository;

-- arrive_records: from another store
INSERT INTO records (repository, noun, id, state, key, data) VALUES (:repository, :noun, :id, :state, :key, :data);

-- arrive_record_counts: from another store
INSERT INTO record_counts (repository, noun, last) VALUES (:repository, :noun, :last);

-- arrive_verdicts: from another store
INSERT INTO verdicts (repository, tree, check_key, data) VALUES (:repository, :tree, :check_key, :data);

-- arrive_runners: from another store
INSERT INTO runners (repository, name, holder, agent, token, until, boot_id, namespace, pid, started)
VALUES (:repository, :name, :holder, :agent, :token, :until, :boot_id, :namespace, :pid, :started);
