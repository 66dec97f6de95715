-- What PostgreSQL says differently about tasks.

-- task_lock: one task, held still
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks WHERE repository = :repository AND id = :task FOR UPDATE;

-- task_lock_ready: the best of these tasks that is ready and that nobody is just taking, held still
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks WHERE repository = :repository AND id IN (:*ids) AND state = 'ready'
ORDER BY rank, length(id), id LIMIT 1 FOR UPDATE SKIP LOCKED;

-- tasks_ready_after: what is ready for a role behind a place in the order
SELECT id, rank, paths FROM tasks
WHERE repository = :repository AND state = 'ready' AND role = :role
  AND (rank, length(id), id) > (:rank, length(:id), :id ::text)
ORDER BY rank, length(id), id LIMIT :limit;

-- task_entries: the history of one task
SELECT coalesce(position, 0), number, at, kind, agent, session, data, coalesce(hash, '') FROM journal
WHERE repository = :repository AND kind >= 'task.' AND kind < 'task/' AND (data::json) ->> 'task' = :task
ORDER BY number;

-- task_signs_add: what it can be found by, given as a JSON list
INSERT INTO task_signs (repository, sign, task)
SELECT :repository, s.sign, :task FROM json_array_elements_text(:signs ::json) AS s (sign) ON CONFLICT DO NOTHING;
