-- What SQLite says differently about tasks.

-- task_entries: the history of one task
SELECT position, number, at, kind, agent, session, data, hash FROM journal
WHERE repository = :repository AND kind >= 'task.' AND kind < 'task/' AND json_extract(data, '$.task') = :task
ORDER BY position;

-- tasks_of_session: what a session has in hand; left alone, SQLite would rather read all tasks
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks INDEXED BY tasks_in_hand
WHERE repository = :repository AND session = :session AND state IN ('active', 'reported', 'landing');

-- task_signs_add: what it can be found by, given as a JSON list
INSERT INTO task_signs (repository, sign, task) SELECT :repository, value, :task FROM json_each(:signs)
WHERE true ON CONFLICT DO NOTHING;
