-- Migration 3 for SQLite: tasks, what they wait for, and what makes two of them look alike.

CREATE TABLE tasks (
    repository TEXT NOT NULL,
    id TEXT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    role TEXT NOT NULL,
    priority INTEGER NOT NULL,
    rank INTEGER NOT NULL,       -- the order in which ready tasks are offered: lower first
    paths TEXT NOT NULL,         -- JSON: the declared patterns, each as [text, kind]
    owner TEXT NOT NULL,
    session TEXT NOT NULL,
    attempt INTEGER NOT NULL,    -- how often it was taken
    failures INTEGER NOT NULL,   -- how often an owner gave up
    lapses INTEGER NOT NULL,     -- how often an owner vanished
    max_attempts INTEGER NOT NULL,
    lineage TEXT NOT NULL,       -- the first task of a family of retries and children
    check_command TEXT NOT NULL,
    output TEXT NOT NULL,
    key TEXT,
    labels TEXT NOT NULL,        -- JSON
    why TEXT NOT NULL,
    next_action TEXT NOT NULL,
    head TEXT NOT NULL,          -- the commit that was believed
    result TEXT NOT NULL,
    waits_for INTEGER NOT NULL,  -- how many of its dependencies are not done
    created_at INTEGER NOT NULL,
    ready_at INTEGER NOT NULL,
    taken_at INTEGER NOT NULL,
    PRIMARY KEY (repository, id)
) WITHOUT ROWID;
-- length(id): T9 was added before T10.
CREATE INDEX tasks_ready ON tasks (repository, role, rank, length(id), id) WHERE state = 'ready';
-- Each index holds the tasks of some states only, so that those which are over cost nothing any more.
CREATE INDEX tasks_in_hand ON tasks (repository, session, state) WHERE state IN ('active', 'reported', 'landing');
CREATE INDEX tasks_aside ON tasks (repository, state)
WHERE state IN ('blocked', 'review', 'waiting_for_person', 'failed', 'dead');
CREATE UNIQUE INDEX tasks_by_key ON tasks (repository, key) WHERE key IS NOT NULL;

CREATE TABLE task_after (
    repository TEXT NOT NULL,
    task TEXT NOT NULL,
    after TEXT NOT NULL,
    PRIMARY KEY (repository, task, after)
) WITHOUT ROWID;
CREATE INDEX task_before ON task_after (repository, after);

-- The few words, issue ids and folders by which a task that looks like another is found.
CREATE TABLE task_signs (
    repository TEXT NOT NULL,
    sign TEXT NOT NULL,
    task TEXT NOT NULL,
    PRIMARY KEY (repository, sign, task)
) WITHOUT ROWID;

CREATE TABLE task_links (
    repository TEXT NOT NULL,
    task TEXT NOT NULL,
    other TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (repository, task, other)
) WITHOUT ROWID;

CREATE INDEX task_links_back ON task_links (repository, other);

CREATE TABLE task_counts (
    repository TEXT PRIMARY KEY,
    last INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX journal_of_task ON journal (repository, json_extract(data, '$.task'), position)
WHERE kind >= 'task.' AND kind < 'task/';
