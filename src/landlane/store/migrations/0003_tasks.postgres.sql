-- Migration 3 for PostgreSQL: tasks, what they wait for, and what makes two of them look alike.

CREATE TABLE tasks (
    repository text NOT NULL,
    id text NOT NULL,
    title text NOT NULL,
    body text NOT NULL,
    kind text NOT NULL,
    state text NOT NULL,
    role text NOT NULL,
    priority bigint NOT NULL,
    rank bigint NOT NULL,       -- the order in which ready tasks are offered: lower first
    paths text NOT NULL,         -- JSON: the declared patterns, each as [text, kind]
    owner text NOT NULL,
    session text NOT NULL,
    attempt bigint NOT NULL,    -- how often it was taken
    failures bigint NOT NULL,   -- how often an owner gave up
    lapses bigint NOT NULL,     -- how often an owner vanished
    max_attempts bigint NOT NULL,
    lineage text NOT NULL,       -- the first task of a family of retries and children
    check_command text NOT NULL,
    output text NOT NULL,
    key text,
    labels text NOT NULL,        -- JSON
    why text NOT NULL,
    next_action text NOT NULL,
    head text NOT NULL,          -- the commit that was believed
    result text NOT NULL,
    waits_for bigint NOT NULL,  -- how many of its dependencies are not done
    created_at bigint NOT NULL,
    ready_at bigint NOT NULL,
    taken_at bigint NOT NULL,
    PRIMARY KEY (repository, id)
);
-- length(id): T9 was added before T10.
CREATE INDEX tasks_ready ON tasks (repository, role, rank, length(id), id) WHERE state = 'ready';
-- Each index holds the tasks of some states only, so that those which are over cost nothing any more.
CREATE INDEX tasks_in_hand ON tasks (repository, session, state) WHERE state IN ('active', 'reported', 'landing');
CREATE INDEX tasks_aside ON tasks (repository, state)
WHERE state IN ('blocked', 'review', 'waiting_for_person', 'failed', 'dead');
CREATE UNIQUE INDEX tasks_by_key ON tasks (repository, key) WHERE key IS NOT NULL;

CREATE TABLE task_after (
    repository text NOT NULL,
    task text NOT NULL,
    after text NOT NULL,
    PRIMARY KEY (repository, task, after)
);
CREATE INDEX task_before ON task_after (repository, after);

-- The few words, issue ids and folders by which a task that looks like another is found.
CREATE TABLE task_signs (
    repository text NOT NULL,
    sign text NOT NULL,
    task text NOT NULL,
    PRIMARY KEY (repository, sign, task)
);

CREATE TABLE task_links (
    repository text NOT NULL,
    task text NOT NULL,
    other text NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (repository, task, other)
);

CREATE INDEX task_links_back ON task_links (repository, other);

CREATE TABLE task_counts (
    repository text PRIMARY KEY,
    last bigint NOT NULL
);

CREATE INDEX journal_of_task ON journal (repository, ((data::json) ->> 'task'), number)
WHERE kind >= 'task.' AND kind < 'task/';
