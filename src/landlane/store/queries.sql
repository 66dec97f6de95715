-- Statements about the store itself, the repository, the journal and records.
--
-- The format of every `queries.sql`: a statement begins with a line `-- name: purpose`. `:name` is a parameter and
-- `IN (:*name)` a list; :repository and :now are always available. `queries.sqlite.sql` and `queries.postgres.sql`
-- hold statements for one database, in addition to the common ones or in their place. store/statements.py loads all.

-- meta_all: all facts about the store
SELECT key, value FROM meta;

-- meta_get: one fact about the store
SELECT value FROM meta WHERE key = :key;

-- meta_set: set a fact about the store
INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- meta_drop: remove a fact about the store
DELETE FROM meta WHERE key = :key;

-- repository_get: whether paths in this repository ignore case
SELECT ignore_case FROM repositories WHERE id = :repository;

-- repository_add: add this repository
INSERT INTO repositories (id, ignore_case) VALUES (:repository, :ignore_case) ON CONFLICT DO NOTHING;

-- repository_ids: all repositories in this store
SELECT id FROM repositories ORDER BY id;

-- entries_after: sealed entries in order
SELECT position, number, at, kind, agent, session, data, hash FROM journal
WHERE repository = :repository AND position > :after ORDER BY position LIMIT :limit;

-- entry_last: the newest sealed entry
SELECT position, number, at, kind, agent, session, data, hash FROM journal
WHERE repository = :repository AND position IS NOT NULL ORDER BY position DESC LIMIT 1;

-- entry_count: the number of entries
SELECT count(*) AS entries FROM journal WHERE repository = :repository;

-- repository_known: whether this repository id is in the store
SELECT id FROM repositories WHERE id = :id;

-- repository_rename: give the repository a new id
UPDATE repositories SET id = :repository WHERE id = :former;

-- repository_set_case: change whether paths ignore case
UPDATE repositories SET ignore_case = :ignore_case WHERE id = :repository;

-- rekey_journal: change the repository id
UPDATE journal SET repository = :repository WHERE repository = :former;

-- export_repositories: all rows, to copy them to another store
SELECT id, ignore_case FROM repositories WHERE id = :repository;

-- export_journal: all rows, to copy them to another store
SELECT position, number, at, kind, agent, session, data, hash FROM journal
WHERE repository = :repository ORDER BY position;

-- import_repositories: add a row copied from another store
INSERT INTO repositories (id, ignore_case) VALUES (:repository, :ignore_case);

-- import_journal: add a row copied from another store
INSERT INTO journal (repository, position, number, at, kind, agent, session, data, hash)
VALUES (:repository, :position, :number, :at, :kind, :agent, :session, :data, :hash);

-- record_next: the next number for a kind of record
INSERT INTO record_counts (repository, noun, last) VALUES (:repository, :noun, 1)
ON CONFLICT (repository, noun) DO UPDATE SET last = record_counts.last + 1 RETURNING last;

-- record_count_at_least: never give out numbers up to this one again
INSERT INTO record_counts (repository, noun, last) VALUES (:repository, :noun, :last)
ON CONFLICT (repository, noun) DO UPDATE SET last = excluded.last WHERE record_counts.last < excluded.last;

-- record_get: one record
SELECT data FROM records WHERE repository = :repository AND noun = :noun AND id = :id;

-- record_lock: one record, locked
SELECT data FROM records WHERE repository = :repository AND noun = :noun AND id = :id;

-- records_all: all records of a kind, oldest first
SELECT data FROM records WHERE repository = :repository AND noun = :noun ORDER BY length(id), id;

-- records_in: the records of a kind in one of these states
SELECT data FROM records WHERE repository = :repository AND noun = :noun AND state IN (:*states)
ORDER BY length(id), id;

-- records_of: the records of a kind with this key
SELECT data FROM records WHERE repository = :repository AND noun = :noun AND key = :key ORDER BY length(id), id;

-- records_of_in: the records of a kind with this key and state
SELECT data FROM records WHERE repository = :repository AND noun = :noun AND key = :key AND state = :state
ORDER BY length(id), id;

-- record_put: add or replace a record
INSERT INTO records (repository, noun, id, state, key, data) VALUES (:repository, :noun, :id, :state, :key, :data)
ON CONFLICT (repository, noun, id) DO UPDATE SET state = excluded.state, key = excluded.key, data = excluded.data;

-- rekey_records: change the repository id
UPDATE records SET repository = :repository WHERE repository = :former;

-- rekey_record_counts: change the repository id
UPDATE record_counts SET repository = :repository WHERE repository = :former;

-- export_records: all rows, to copy them to another store
SELECT noun, id, state, key, data FROM records WHERE repository = :repository;

-- export_record_counts: all rows, to copy them to another store
SELECT noun, last FROM record_counts WHERE repository = :repository;

-- import_records: add a row copied from another store
INSERT INTO records (repository, noun, id, state, key, data) VALUES (:repository, :noun, :id, :state, :key, :data);

-- import_record_counts: add a row copied from another store
INSERT INTO record_counts (repository, noun, last) VALUES (:repository, :noun, :last);
