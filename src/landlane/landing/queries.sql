-- Saved results of checks, by tree.

-- verdict_get: the saved result of a check on a tree
SELECT data FROM verdicts WHERE repository = :repository AND tree = :tree AND check_key = :check_key;

-- verdict_put: save the result of a check on a tree
INSERT INTO verdicts (repository, tree, check_key, data) VALUES (:repository, :tree, :check_key, :data)
ON CONFLICT (repository, tree, check_key) DO UPDATE SET data = excluded.data;

-- rekey_verdicts: change the repository id
UPDATE verdicts SET repository = :repository WHERE repository = :former;

-- export_verdicts: all rows, to copy them to another store
SELECT tree, check_key, data FROM verdicts WHERE repository = :repository;

-- import_verdicts: add a row copied from another store
INSERT INTO verdicts (repository, tree, check_key, data) VALUES (:repository, :tree, :check_key, :data);
