-- What PostgreSQL needs differently; see queries.sql.

-- task_lock: one task, locked
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks WHERE repository = :repository AND id = :task FOR UPDATE;

-- task_lock_ready: the first of these tasks that is ready and not locked by another transaction, locked
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks WHERE repository = :repository AND id IN (:*ids) AND state = 'ready'
ORDER BY rank, length(id), id LIMIT 1 FOR UPDATE SKIP LOCKED;

-- tasks_ready_after: ready tasks for a role, after a position in the order
SELECT id, rank, paths FROM tasks
WHERE repository = :repository AND state = 'ready' AND role = :role
  AND (rank, length(id), id) > (:rank, length(:id), :id ::text)
ORDER BY rank, length(id), id LIMIT :limit;

-- task_entries: the history of a task
SELECT coalesce(position, 0) AS position, number, at, kind, agent, session, data, coalesce(hash, '') AS hash
FROM journal
WHERE repository = :repository AND kind >= 'task.' AND kind < 'task/' AND (data::json) ->> 'task' = :task
ORDER BY number;

-- task_signs_add: add the signs by which a task is found, from a JSON list
INSERT INTO task_signs (repository, sign, task)
SELECT :repository, s.sign, :task FROM json_array_elements_text(:signs ::json) AS s (sign) ON CONFLICT DO NOTHING;
