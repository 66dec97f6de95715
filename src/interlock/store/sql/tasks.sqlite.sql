-- What SQLite says differently about tasks.

-- task_entries: the history of one task
SELECT position, number, at, kind, agent, session, data, hash FROM journal
WHERE repository = :repository AND kind >= 'task.' AND kind < 'task/' AND json_extract(data, '$.task') = :task
ORDER BY position;
