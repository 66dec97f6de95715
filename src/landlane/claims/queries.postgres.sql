-- What PostgreSQL needs differently; see queries.sql.

-- claims_near_all: claims that may overlap any of these keys, in one round trip
SELECT c.key, c.rest, c.token, c.pattern, c.kind, c.mode, c.session, s.agent, c.task, c.note, c.ttl_ms,
       c.granted_at, s.seen_at, s.ended_at
FROM claims c JOIN sessions s ON s.id = c.session
WHERE c.repository = :repository AND c.key IN (:*ancestors)
UNION
SELECT c.key, c.rest, c.token, c.pattern, c.kind, c.mode, c.session, s.agent, c.task, c.note, c.ttl_ms,
       c.granted_at, s.seen_at, s.ended_at
FROM unnest(:lows ::text[], :highs ::text[]) AS r (low, high)
     -- OFFSET 0 makes each range a look into the index; joined in the ordinary way it would be a filter on all
     -- claims of the repository.
     CROSS JOIN LATERAL (SELECT * FROM claims c WHERE c.repository = :repository AND c.key > r.low
                         AND c.key < r.high AND c.session <> :session OFFSET 0) AS c
     JOIN sessions s ON s.id = c.session;
