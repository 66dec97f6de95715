-- What SQLite says differently.

-- opening: what every change must know first, in one go
SELECT (SELECT value FROM meta WHERE key = 'epoch'),
       EXISTS (SELECT 1 FROM sessions
               WHERE repository = :repository AND ended_at IS NULL AND lapses_at <= :now),
       EXISTS (SELECT 1 FROM waiters WHERE repository = :repository),
       (SELECT value FROM meta WHERE key = 'moved_to/' || :repository);

-- head: the end of the chain
SELECT position, hash FROM journal WHERE repository = :repository ORDER BY position DESC LIMIT 1;

-- entry_add: write and seal an entry; writers come one after the other anyway
INSERT INTO journal (repository, position, number, at, kind, agent, session, data, hash)
VALUES (:repository, :position, :number, :at, :kind, :agent, :session, :data, :hash);

-- journal_continue: number the next entry behind all that arrived; positions do so by themselves
SELECT 1;
