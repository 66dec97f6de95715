-- Statements about tasks, their dependencies, and the order in which they are offered.

-- records_unsettled: whether there are fan-outs or reviews that may need a step
SELECT DISTINCT noun FROM records WHERE repository = :repository AND noun IN ('fan', 'review')
AND state IN ('open', 'joined', 'deciding', 'approved', 'outdated');

-- task_next_id: the number of the next task
INSERT INTO task_counts (repository, last) VALUES (:repository, 1)
ON CONFLICT (repository) DO UPDATE SET last = task_counts.last + 1 RETURNING last;

-- task_add: add a task
INSERT INTO tasks (repository, id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt,
                   failures, lapses, max_attempts, lineage, check_command, output, key, labels, why, next_action,
                   head, result, waits_for, created_at, ready_at, taken_at)
VALUES (:repository, :id, :title, :body, :kind, :state, :role, :priority, :rank, :paths, '', '', 0,
        0, 0, :max_attempts, :lineage, :check, :output, :key, :labels, :why, :next_action,
        '', '', :waits_for, :now, :now, 0);

-- task_get: one task
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks WHERE repository = :repository AND id = :task;

-- task_lock: one task, locked
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks WHERE repository = :repository AND id = :task;

-- task_by_key: the task with this key
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks WHERE repository = :repository AND key = :key;

-- tasks_all: all tasks, oldest first
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks WHERE repository = :repository ORDER BY created_at, length(id), id;

-- task_lock_ready: the first of these tasks that is ready, locked
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks WHERE repository = :repository AND id IN (:*ids) AND state = 'ready'
ORDER BY rank, length(id), id LIMIT 1;

-- lineage_tasks: a task with all its children and follow-ups, and their states
SELECT id, state FROM tasks WHERE repository = :repository AND lineage = :lineage ORDER BY length(id), id;

-- tasks_among: these tasks
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks WHERE repository = :repository AND id IN (:*ids) ORDER BY length(id), id;

-- tasks_assigned: ready tasks that are for one agent or person
SELECT id, role, labels, paths FROM tasks
WHERE repository = :repository AND state = 'ready' AND labels LIKE :pattern;

-- tasks_ready_after: ready tasks for a role, after a position in the order
SELECT id, rank, paths FROM tasks
WHERE repository = :repository AND state = 'ready' AND role = :role
  AND (rank, length(id), id) > (:rank, length(:id), :id)
ORDER BY rank, length(id), id LIMIT :limit;

-- tasks_count: the number of tasks in each state that is not final
SELECT state, count(*) AS tasks FROM tasks
WHERE repository = :repository AND state = 'ready' AND role >= '' GROUP BY state
UNION ALL
SELECT state, count(*) FROM tasks
WHERE repository = :repository AND state IN ('active', 'reported', 'landing') AND session > '' GROUP BY state
UNION ALL
SELECT state, count(*) FROM tasks
WHERE repository = :repository AND state IN ('blocked', 'review', 'waiting_for_person', 'failed', 'dead')
GROUP BY state;

-- tasks_owners: the sessions that own a task
SELECT DISTINCT session FROM tasks
WHERE repository = :repository AND state IN ('active', 'reported', 'landing') AND session > ''
  AND state <> 'landing';

-- tasks_of_session: the tasks that a session owns or has queued to land
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks
WHERE repository = :repository AND state IN ('active', 'reported', 'landing') AND session = :session;

-- task_take: give a task to a session as a new attempt
UPDATE tasks SET state = 'active', owner = :owner, session = :session, attempt = attempt + 1, taken_at = :now, why = ''
WHERE repository = :repository AND id = :task;

-- task_accept: give a task to a session that continues the attempt handed over
UPDATE tasks SET state = 'active', owner = :owner, session = :session, taken_at = :now, why = ''
WHERE repository = :repository AND id = :task;

-- task_move: change the state of a task, and its owner
UPDATE tasks SET state = :state, why = :why, next_action = :next_action, owner = :owner, session = :session,
                 failures = :failures, lapses = :lapses, head = :head, result = :result, rank = :rank,
                 ready_at = :ready_at
WHERE repository = :repository AND id = :task;

-- task_after_add: add a dependency
INSERT INTO task_after (repository, task, after) VALUES (:repository, :task, :after) ON CONFLICT DO NOTHING;

-- task_after_of: the dependencies of a task, and their states
SELECT a.after, t.state FROM task_after a JOIN tasks t ON t.repository = a.repository AND t.id = a.after
WHERE a.repository = :repository AND a.task = :task ORDER BY length(a.after), a.after;

-- task_after_all: all dependencies
SELECT task, after FROM task_after WHERE repository = :repository ORDER BY length(after), after;

-- tasks_behind: the tasks that depend on a task
SELECT task FROM task_after WHERE repository = :repository AND after = :task ORDER BY length(task), task;

-- task_set_waits: set the number of dependencies that are not done
UPDATE tasks SET waits_for = :waits_for WHERE repository = :repository AND id = :task;

-- task_after_drop: remove a dependency
DELETE FROM task_after WHERE repository = :repository AND task = :task AND after = :after;

-- tasks_with_signs: tasks that share any of these signs
SELECT sign, task FROM task_signs WHERE repository = :repository AND sign IN (:*signs) LIMIT :limit;

-- tasks_with_sign: the newest tasks that share a sign
SELECT task FROM task_signs WHERE repository = :repository AND sign = :sign ORDER BY task DESC LIMIT :limit;

-- task_signs_drop: remove the signs of a task that is over, so that nothing counts as a duplicate of it
DELETE FROM task_signs WHERE repository = :repository AND task = :task AND sign IN (:*signs);

-- task_link_add: record that two tasks look alike
INSERT INTO task_links (repository, task, other, reason) VALUES (:repository, :task, :other, :reason)
ON CONFLICT DO NOTHING;

-- task_links_of: the tasks that look like this one
SELECT other, reason FROM task_links WHERE repository = :repository AND task = :task
UNION
SELECT task, reason FROM task_links WHERE repository = :repository AND other = :task ORDER BY 1;

-- task_set_head: set the verified commit
UPDATE tasks SET head = :head WHERE repository = :repository AND id = :task;

-- task_set_why: set why a task is in its state, and the next action
UPDATE tasks SET why = :why, next_action = :next_action WHERE repository = :repository AND id = :task;

-- task_set_failures: set the number of failures; the task stays with its owner
UPDATE tasks SET failures = :failures WHERE repository = :repository AND id = :task;

-- rekey_tasks: change the repository id
UPDATE tasks SET repository = :repository WHERE repository = :former;

-- rekey_task_after: change the repository id
UPDATE task_after SET repository = :repository WHERE repository = :former;

-- rekey_task_signs: change the repository id
UPDATE task_signs SET repository = :repository WHERE repository = :former;

-- rekey_task_links: change the repository id
UPDATE task_links SET repository = :repository WHERE repository = :former;

-- rekey_task_counts: change the repository id
UPDATE task_counts SET repository = :repository WHERE repository = :former;

-- export_tasks: all rows, to copy them to another store
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks WHERE repository = :repository;

-- export_task_after: all rows, to copy them to another store
SELECT task, after FROM task_after WHERE repository = :repository ORDER BY length(after), after;

-- export_task_signs: all rows, to copy them to another store
SELECT sign, task FROM task_signs WHERE repository = :repository;

-- export_task_links: all rows, to copy them to another store
SELECT task, other, reason FROM task_links WHERE repository = :repository;

-- export_task_counts: all rows, to copy them to another store
SELECT last FROM task_counts WHERE repository = :repository;

-- import_tasks: add a row copied from another store
INSERT INTO tasks (repository, id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt,
                   failures, lapses, max_attempts, lineage, check_command, output, key, labels, why, next_action,
                   head, result, waits_for, created_at, ready_at, taken_at)
VALUES (:repository, :id, :title, :body, :kind, :state, :role, :priority, :rank, :paths, :owner, :session, :attempt,
        :failures, :lapses, :max_attempts, :lineage, :check_command, :output, :key, :labels, :why, :next_action,
        :head, :result, :waits_for, :created_at, :ready_at, :taken_at);

-- import_task_after: add a row copied from another store
INSERT INTO task_after (repository, task, after) VALUES (:repository, :task, :after);

-- import_task_signs: add a row copied from another store
INSERT INTO task_signs (repository, sign, task) VALUES (:repository, :sign, :task);

-- import_task_links: add a row copied from another store
INSERT INTO task_links (repository, task, other, reason) VALUES (:repository, :task, :other, :reason);

-- import_task_counts: add a row copied from another store
INSERT INTO task_counts (repository, last) VALUES (:repository, :last);

-- task_own: give a task to another session
UPDATE tasks SET owner = :owner, session = :session WHERE repository = :repository AND id = :task;

-- task_edit: change the fields that people may edit
UPDATE tasks SET title = :title, body = :body, priority = :priority, rank = :rank, paths = :paths,
                 labels = :labels, next_action = :next_action
WHERE repository = :repository AND id = :task;
