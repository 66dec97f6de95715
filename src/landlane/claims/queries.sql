-- Statements about claims and lapsed claims.

-- claim_add: add one branch of a claim
INSERT INTO claims (repository, key, token, branch, rest, session, pattern, kind, mode, ttl_ms, granted_at, task, note)
VALUES (:repository, :key, :token, :branch, :rest, :session, :pattern, :kind, :mode, :ttl_ms, :granted_at, :task,
        :note);

-- claims_near: claims that may overlap a key: all on the way to it, and those of other sessions below it
SELECT c.key, c.rest, c.token, c.pattern, c.kind, c.mode, c.session, s.agent, c.task, c.note, c.ttl_ms,
       c.granted_at, s.seen_at, s.ended_at
FROM claims c JOIN sessions s ON s.id = c.session
WHERE c.repository = :repository AND c.key IN (:*ancestors)
UNION ALL
SELECT c.key, c.rest, c.token, c.pattern, c.kind, c.mode, c.session, s.agent, c.task, c.note, c.ttl_ms,
       c.granted_at, s.seen_at, s.ended_at
FROM claims c JOIN sessions s ON s.id = c.session
WHERE c.repository = :repository AND c.key > :low AND c.key < :high AND c.session <> :session;

-- claims_of: the claims of a session
SELECT c.key, c.rest, c.token, c.pattern, c.kind, c.mode, c.session, s.agent, c.task, c.note, c.ttl_ms,
       c.granted_at, s.seen_at, s.ended_at
FROM claims c JOIN sessions s ON s.id = c.session
WHERE c.session = :session ORDER BY c.token, c.branch;

-- claims_all: all claims, in the order in which they were granted
SELECT c.key, c.rest, c.token, c.pattern, c.kind, c.mode, c.session, s.agent, c.task, c.note, c.ttl_ms,
       c.granted_at, s.seen_at, s.ended_at
FROM claims c JOIN sessions s ON s.id = c.session
WHERE c.repository = :repository ORDER BY c.token, c.branch;

-- claims_count: the number of claims
SELECT count(DISTINCT token) AS claims FROM claims WHERE repository = :repository;

-- claim_renew: start the lease of a claim again
UPDATE claims SET granted_at = :now, ttl_ms = :ttl_ms WHERE session = :session AND token = :token;

-- claim_end: what the end of the lease of one claim follows from
SELECT c.granted_at, s.seen_at, c.ttl_ms
FROM claims c JOIN sessions s ON s.id = c.session
WHERE c.session = :session AND c.token = :token AND s.ended_at IS NULL;

-- claim_drop: remove a claim
DELETE FROM claims WHERE session = :session AND token = :token;

-- lapsed_add: remember a claim that an agent lost
INSERT INTO lapsed (repository, agent, pattern, kind, mode, ttl_ms, token, ended_at)
VALUES (:repository, :agent, :pattern, :kind, :mode, :ttl_ms, :token, :ended_at)
ON CONFLICT (repository, agent, pattern) DO UPDATE
SET kind = excluded.kind, mode = excluded.mode, ttl_ms = excluded.ttl_ms, token = excluded.token,
    ended_at = excluded.ended_at;

-- lapsed_get: the claim that this agent lost on a pattern
SELECT agent, pattern, kind, mode, ttl_ms, token, ended_at FROM lapsed
WHERE repository = :repository AND agent = :agent AND pattern = :pattern;

-- lapsed_of: the claims that this agent lost and has not taken again
SELECT agent, pattern, kind, mode, ttl_ms, token, ended_at FROM lapsed
WHERE repository = :repository AND agent = :agent ORDER BY token;

-- lapsed_of_others: the claims that other agents lost and have not taken again
SELECT agent, pattern, kind, mode, ttl_ms, token, ended_at FROM lapsed
WHERE repository = :repository AND agent <> :agent ORDER BY token;

-- lapsed_drop: forget a lost claim, because its agent has taken it again
DELETE FROM lapsed WHERE repository = :repository AND agent = :agent AND pattern = :pattern;

-- lapsed_forget: forget claims that were lost long ago
DELETE FROM lapsed WHERE repository = :repository AND ended_at < :before;

-- rekey_claims: change the repository id
UPDATE claims SET repository = :repository WHERE repository = :former;

-- rekey_lapsed: change the repository id
UPDATE lapsed SET repository = :repository WHERE repository = :former;

-- claim_branches_drop: remove all branches of a claim
DELETE FROM claims WHERE repository = :repository AND token = :token;

-- export_claims: all rows, to copy them to another store
SELECT key, rest, token, branch, session, pattern, kind, mode, ttl_ms, granted_at, task, note
FROM claims WHERE repository = :repository;

-- export_lapsed: all rows, to copy them to another store
SELECT agent, pattern, kind, mode, ttl_ms, token, ended_at FROM lapsed WHERE repository = :repository;

-- import_claims: add a row copied from another store
INSERT INTO claims (repository, key, token, branch, rest, session, pattern, kind, mode, ttl_ms, granted_at, task, note)
VALUES (:repository, :key, :token, :branch, :rest, :session, :pattern, :kind, :mode, :ttl_ms, :granted_at, :task,
        :note);

-- import_lapsed: add a row copied from another store
INSERT INTO lapsed (repository, agent, pattern, kind, mode, ttl_ms, token, ended_at)
VALUES (:repository, :agent, :pattern, :kind, :mode, :ttl_ms, :token, :ended_at);

-- claim_hand_up: give a claim of a subagent to its parent
UPDATE claims SET session = :parent WHERE session = :session AND token = :token;
