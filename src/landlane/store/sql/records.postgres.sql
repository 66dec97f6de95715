-- What PostgreSQL says differently about records.

-- record_lock: one of them, held still
SELECT data FROM records WHERE repository = :repository AND noun = :noun AND id = :id FOR UPDATE;

-- runner_lock: who runs it, held still
SELECT holder, agent, token, until, boot_id, namespace, pid, started FROM runners
WHERE repository = :repository AND name = :name FOR UPDATE;
