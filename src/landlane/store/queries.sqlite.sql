-- What SQLite needs differently; see queries.sql.

-- opening: what every change needs to know first, in one statement
SELECT (SELECT value FROM meta WHERE key = 'epoch') AS epoch,
       EXISTS (SELECT 1 FROM sessions
               WHERE repository = :repository AND ended_at IS NULL AND lapses_at <= :now) AS has_lapsed,
       EXISTS (SELECT 1 FROM waiters WHERE repository = :repository) AS has_waiters,
       (SELECT value FROM meta WHERE key = 'moved_to/' || :repository) AS moved_to;

-- head: the end of the chain
SELECT position, hash, number FROM journal WHERE repository = :repository ORDER BY position DESC LIMIT 1;

-- entry_add: add an entry; SQLite has one writer at a time, so it is sealed at once
INSERT INTO journal (repository, position, number, at, kind, agent, session, data, hash)
VALUES (:repository, :position, :number, :at, :kind, :agent, :session, :data, :hash);

-- journal_continue: the highest number of an entry; after an import it need not be the newest one's
SELECT max(number) AS done FROM journal WHERE repository = :repository;
