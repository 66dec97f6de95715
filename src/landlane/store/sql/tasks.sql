-- Statements about tasks. See statements.sql for how to read them.

-- task_next_id: the number of the next task
INSERT INTO task_counts (repository, last) VALUES (:repository, 1)
ON CONFLICT (repository) DO UPDATE SET last = task_counts.last + 1 RETURNING last;

-- task_add: a new task
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

-- task_lock: one task, held still
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks WHERE repository = :repository AND id = :task;

-- task_by_key: the task that was added under this key
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks WHERE repository = :repository AND key = :key;

-- tasks_all: every task, in the order in which they were added
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks WHERE repository = :repository ORDER BY created_at, length(id), id;

-- task_lock_ready: the best of these tasks that is ready, held still
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks WHERE repository = :repository AND id IN (:*ids) AND state = 'ready'
ORDER BY rank, length(id), id LIMIT 1;

-- lineage_tasks: a task with all its children and follow-ups, and how far each of them is
SELECT id, state FROM tasks WHERE repository = :repository AND lineage = :lineage ORDER BY length(id), id;

-- tasks_among: these tasks, as they stand
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks WHERE repository = :repository AND id IN (:*ids) ORDER BY length(id), id;

-- tasks_ready_after: what is ready for a role behind a place in the order
SELECT id, rank, paths FROM tasks
WHERE repository = :repository AND state = 'ready' AND role = :role
  AND (rank, length(id), id) > (:rank, length(:id), :id)
ORDER BY rank, length(id), id LIMIT :limit;

-- tasks_count: how many tasks are in each state that is not over
SELECT state, count(*) FROM tasks WHERE repository = :repository AND state = 'ready' AND role >= '' GROUP BY state
UNION ALL
SELECT state, count(*) FROM tasks
WHERE repository = :repository AND state IN ('active', 'reported', 'landing') AND session > '' GROUP BY state
UNION ALL
SELECT state, count(*) FROM tasks
WHERE repository = :repository AND state IN ('blocked', 'review', 'waiting_for_person', 'failed', 'dead')
GROUP BY state;

-- tasks_owners: the sessions that are at work on something
SELECT DISTINCT session FROM tasks
WHERE repository = :repository AND state IN ('active', 'reported', 'landing') AND session > ''
  AND state <> 'landing';

-- tasks_of_session: what a session has in hand, or on its way to the target branch
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks
WHERE repository = :repository AND state IN ('active', 'reported', 'landing') AND session = :session;

-- task_take: somebody is at work on it
UPDATE tasks SET state = 'active', owner = :owner, session = :session, attempt = attempt + 1, taken_at = :now, why = ''
WHERE repository = :repository AND id = :task;

-- task_accept: somebody goes on with the attempt that was handed over
UPDATE tasks SET state = 'active', owner = :owner, session = :session, taken_at = :now, why = ''
WHERE repository = :repository AND id = :task;

-- task_move: another state, and nobody's any more unless it says so
UPDATE tasks SET state = :state, why = :why, next_action = :next_action, owner = :owner, session = :session,
                 failures = :failures, lapses = :lapses, head = :head, result = :result, rank = :rank,
                 ready_at = :ready_at, max_attempts = :max_attempts
WHERE repository = :repository AND id = :task;

-- task_after_add: a task waits for another
INSERT INTO task_after (repository, task, after) VALUES (:repository, :task, :after) ON CONFLICT DO NOTHING;

-- task_after_of: what a task waits for, and how far that is
SELECT a.after, t.state FROM task_after a JOIN tasks t ON t.repository = a.repository AND t.id = a.after
WHERE a.repository = :repository AND a.task = :task ORDER BY length(a.after), a.after;

-- task_after_all: who waits for whom
SELECT task, after FROM task_after WHERE repository = :repository ORDER BY length(after), after;

-- tasks_behind: who waits for a task
SELECT task FROM task_after WHERE repository = :repository AND after = :task ORDER BY length(task), task;

-- task_set_waits: how many dependencies are not done
UPDATE tasks SET waits_for = :waits_for WHERE repository = :repository AND id = :task;

-- task_after_drop: a task waits for another no longer
DELETE FROM task_after WHERE repository = :repository AND task = :task AND after = :after;

-- tasks_with_signs: who shares any of these signs
SELECT sign, task FROM task_signs WHERE repository = :repository AND sign IN (:*signs) LIMIT :limit;

-- tasks_with_sign: the newest tasks that share a sign
SELECT task FROM task_signs WHERE repository = :repository AND sign = :sign ORDER BY task DESC LIMIT :limit;

-- task_signs_drop: it is over, and nothing is a duplicate of it any more
DELETE FROM task_signs WHERE repository = :repository AND task = :task AND sign IN (:*signs);

-- task_link_add: two tasks that look alike
INSERT INTO task_links (repository, task, other, reason) VALUES (:repository, :task, :other, :reason)
ON CONFLICT DO NOTHING;

-- task_links_of: what a task looks like, whichever of the two was first
SELECT other, reason FROM task_links WHERE repository = :repository AND task = :task
UNION
SELECT task, reason FROM task_links WHERE repository = :repository AND other = :task ORDER BY 1;

-- claims_of_task: what is held for a task
SELECT c.key, c.rest, c.token, c.pattern, c.kind, c.mode, c.session, s.agent, c.task, c.note, c.ttl_ms,
       c.granted_at, s.seen_at, s.ended_at
FROM claims c JOIN sessions s ON s.id = c.session
WHERE c.session = :session AND c.task = :task ORDER BY c.token, c.branch;

-- task_set_head: another commit was believed
UPDATE tasks SET head = :head WHERE repository = :repository AND id = :task;

-- task_set_why: why it is not further, and what to do
UPDATE tasks SET why = :why, next_action = :next_action WHERE repository = :repository AND id = :task;

-- task_set_failures: it failed, and is its owner's to mend
UPDATE tasks SET failures = :failures WHERE repository = :repository AND id = :task;

-- adopt_tasks: follow the repository's new id
UPDATE tasks SET repository = :repository WHERE repository = :former;

-- adopt_task_after: follow the repository's new id
UPDATE task_after SET repository = :repository WHERE repository = :former;

-- adopt_task_signs: follow the repository's new id
UPDATE task_signs SET repository = :repository WHERE repository = :former;

-- adopt_task_links: follow the repository's new id
UPDATE task_links SET repository = :repository WHERE repository = :former;

-- adopt_task_counts: follow the repository's new id
UPDATE task_counts SET repository = :repository WHERE repository = :former;

-- carry_tasks: everything, for another store
SELECT id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt, failures, lapses,
       max_attempts, lineage, check_command, output, key, labels, why, next_action, head, result, waits_for,
       created_at, ready_at, taken_at
FROM tasks WHERE repository = :repository;

-- carry_task_after: everything, for another store
SELECT task, after FROM task_after WHERE repository = :repository ORDER BY length(after), after;

-- carry_task_signs: everything, for another store
SELECT sign, task FROM task_signs WHERE repository = :repository;

-- carry_task_links: everything, for another store
SELECT task, other, reason FROM task_links WHERE repository = :repository;

-- carry_task_counts: everything, for another store
SELECT last FROM task_counts WHERE repository = :repository;

-- arrive_tasks: from another store
INSERT INTO tasks (repository, id, title, body, kind, state, role, priority, rank, paths, owner, session, attempt,
                   failures, lapses, max_attempts, lineage, check_command, output, key, labels, why, next_action,
                   head, result, waits_for, created_at, ready_at, taken_at)
VALUES (:repository, :id, :title, :body, :kind, :state, :role, :priority, :rank, :paths, :owner, :session, :attempt,
        :failures, :lapses, :max_attempts, :lineage, :check_command, :output, :key, :labels, :why, :next_action,
        :head, :result, :waits_for, :created_at, :ready_at, :taken_at);

-- arrive_task_after: from another store
INSERT INTO task_after (repository, task, after) VALUES (:repository, :task, :after);

-- arrive_task_signs: from another store
INSERT INTO task_signs (repository, sign, task) VALUES (:repository, :sign, :task);

-- arrive_task_links: from another store
INSERT INTO task_links (repository, task, other, reason) VALUES (:repository, :task, :other, :reason);

-- arrive_task_counts: from another store
INSERT INTO task_counts (repository, last) VALUES (:repository, :last);

-- task_own: somebody else goes on with it
UPDATE tasks SET owner = :owner, session = :session WHERE repository = :repository AND id = :task;

-- task_set_paths: what it will change
UPDATE tasks SET paths = :paths WHERE repository = :repository AND id = :task;
