-- What SQLite needs differently; see queries.sql.

-- task_entries: the history of a task
SELECT position, number, at, kind, agent, session, data, hash FROM journal
WHERE repository = :repository AND kind >= 'task.' AND kind < 'task/' AND json_extract(data, '$.task') = :task
ORDER BY position;

-- tasks_of_session: the tasks that a session owns or has queued to land; without the hint SQLite reads all tasks
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks INDEXED BY tasks_in_hand
WHERE repository = :repository AND session = :session AND state IN ('active', 'reported', 'landing');

-- task_signs_add: add the signs by which a task is found, from a JSON list
INSERT INTO task_signs (repository, sign, task) SELECT :repository, value, :task FROM json_each(:signs)
WHERE true ON CONFLICT DO NOTHING;
