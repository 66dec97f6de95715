-- What PostgreSQL says differently about tasks.

-- task_lock: one task, held still
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks WHERE repository = :repository AND id = :task FOR UPDATE;

-- tasks_ready_after: ready tasks behind a place in the order, passing over those that somebody is taking
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks
WHERE repository = :repository AND state = 'ready' AND role IN ('', :role) AND (rank, id) > (:rank, :id)
ORDER BY rank, id LIMIT :limit FOR UPDATE SKIP LOCKED;

-- task_entries: the history of one task
SELECT coalesce(position, 0), number, at, kind, agent, session, data, coalesce(hash, '') FROM journal
WHERE repository = :repository AND kind >= 'task.' AND kind < 'task/' AND (data::json) ->> 'task' = :task
ORDER BY number;
