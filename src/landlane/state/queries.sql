-- Statements about versioned keys, numbers, slots and commands that run once.

-- state_get: the current version of a key
SELECT key, value, version, reducer, agent, session, written_at FROM state
WHERE repository = :repository AND key = :key;

-- state_put: write a new version of a key
INSERT INTO state (repository, key, version, value, reducer, agent, session, written_at)
VALUES (:repository, :key, :version, :value, :reducer, :agent, :session, :written_at)
ON CONFLICT (repository, key) DO UPDATE
SET version = excluded.version, value = excluded.value, reducer = excluded.reducer, agent = excluded.agent,
    session = excluded.session, written_at = excluded.written_at;

-- state_list: the keys in a range, in order
SELECT key, value, version, reducer, agent, session, written_at FROM state
WHERE repository = :repository AND key >= :low AND key < :high ORDER BY key;

-- state_version_add: keep a version
INSERT INTO state_versions (repository, key, version, value, reducer, agent, session, written_at)
VALUES (:repository, :key, :version, :value, :reducer, :agent, :session, :written_at);

-- state_versions_trim: remove all but the newest versions
DELETE FROM state_versions WHERE repository = :repository AND key = :key AND version <= :before;

-- state_versions_of: the versions of a key, oldest first
SELECT key, value, version, reducer, agent, session, written_at FROM state_versions
WHERE repository = :repository AND key = :key ORDER BY version;

-- number_last: the highest number given out
SELECT max(number) AS number FROM numbers WHERE repository = :repository AND kind = :kind;

-- number_kinds: the kinds of which numbers were given out
SELECT DISTINCT kind FROM numbers WHERE repository = :repository;

-- number_add: give out a number
INSERT INTO numbers (repository, kind, number, agent, session, purpose, given_at)
VALUES (:repository, :kind, :number, :agent, :session, :purpose, :given_at);

-- numbers_of: all numbers of a kind, and whether the session that got each has ended
SELECT n.number, n.agent, n.session, n.purpose, n.given_at, s.ended_at
FROM numbers n LEFT JOIN sessions s ON s.id = n.session
WHERE n.repository = :repository AND n.kind = :kind ORDER BY n.number;

-- slots_in: slots of a kind that are held or still count, in the order in which they were taken
SELECT l.token, l.id, l.kind, l.place, l.name, l.workspace, l.amount, l.session, s.agent, l.taken_at,
       l.until AS expires_at, l.freed_at, s.seen_at, s.lease_ms, s.ended_at
FROM slots l JOIN sessions s ON s.id = l.session
WHERE l.repository = :repository AND l.kind = :kind ORDER BY l.token;

-- slots_all: all slots that are held
SELECT l.token, l.id, l.kind, l.place, l.name, l.workspace, l.amount, l.session, s.agent, l.taken_at,
       l.until AS expires_at, l.freed_at, s.seen_at, s.lease_ms, s.ended_at
FROM slots l JOIN sessions s ON s.id = l.session WHERE l.repository = :repository ORDER BY l.token;

-- slots_of: the slots of a session
SELECT l.token, l.id, l.kind, l.place, l.name, l.workspace, l.amount, l.session, s.agent, l.taken_at,
       l.until AS expires_at, l.freed_at, s.seen_at, s.lease_ms, s.ended_at
FROM slots l JOIN sessions s ON s.id = l.session
WHERE l.session = :session AND l.freed_at IS NULL ORDER BY l.token;

-- slot_add: take a slot
INSERT INTO slots (repository, token, id, kind, place, name, workspace, amount, session, taken_at, until)
VALUES (:repository, :token, :id, :kind, :place, :name, :workspace, :amount, :session, :taken_at, :until);

-- slot_drop: free a slot
DELETE FROM slots WHERE repository = :repository AND token = :token;

-- slot_give_up: free a slot that counts until its time is over
UPDATE slots SET freed_at = :now WHERE repository = :repository AND token = :token AND freed_at IS NULL;

-- slot_place_get: the place that a workspace had last
SELECT place FROM slot_places
WHERE repository = :repository AND kind = :kind AND workspace = :workspace AND name = :name;

-- slot_places_of: all places of a kind that workspaces had
SELECT place FROM slot_places WHERE repository = :repository AND kind = :kind;

-- slot_place_set: remember the place of a workspace
INSERT INTO slot_places (repository, kind, workspace, name, place)
VALUES (:repository, :kind, :workspace, :name, :place)
ON CONFLICT (repository, kind, workspace, name) DO UPDATE SET place = excluded.place;

-- slot_waiters: who waits for a kind, in order of arrival
SELECT w.ticket, w.session, s.agent, p.rest AS place
FROM waiter_paths p JOIN waiters w ON w.repository = p.repository AND w.ticket = p.ticket
     JOIN sessions s ON s.id = w.session
WHERE p.repository = :repository AND p.key = :key AND w.alive_until > :now ORDER BY w.ticket;

-- once_get: the newest run of a key
SELECT key, run, agent, session, machine, boot_id, namespace, pid, started, child_pid, child_started, command,
       begun_at, done_at, exit_code, output
FROM once WHERE repository = :repository AND key = :key;

-- once_begin: record that a run begins
INSERT INTO once (repository, key, run, agent, session, machine, boot_id, namespace, pid, started, child_pid,
                  child_started, command, begun_at, output)
VALUES (:repository, :key, :run, :agent, :session, :machine, :boot_id, :namespace, :pid, :started, 0,
        0, :command, :begun_at, '')
ON CONFLICT (repository, key) DO UPDATE
SET run = excluded.run, agent = excluded.agent, session = excluded.session, machine = excluded.machine,
    boot_id = excluded.boot_id, namespace = excluded.namespace, pid = excluded.pid, started = excluded.started,
    child_pid = 0, child_started = 0, command = excluded.command, begun_at = excluded.begun_at,
    done_at = NULL, exit_code = NULL, output = '';

-- once_child: record the process of a run
UPDATE once SET child_pid = :child_pid, child_started = :child_started
WHERE repository = :repository AND key = :key AND run = :run;

-- once_end: record how a run ended
UPDATE once SET done_at = :done_at, exit_code = :exit_code, output = :output
WHERE repository = :repository AND key = :key AND run = :run AND done_at IS NULL;

-- once_running: the runs that have not ended
SELECT key, agent, session, boot_id, namespace, pid, started, child_pid, child_started
FROM once WHERE repository = :repository AND done_at IS NULL;

-- once_waits: which calls wait for the run of a key, and inside of which run
SELECT wait, inside, key, session, boot_id, namespace, pid, started
FROM once_waits WHERE repository = :repository ORDER BY inside, key;

-- once_wait_add: record that a call inside of a run waits for a key
INSERT INTO once_waits (repository, wait, inside, key, session, boot_id, namespace, pid, started)
VALUES (:repository, :wait, :inside, :key, :session, :boot_id, :namespace, :pid, :started);

-- once_wait_drop: record that a call waits no more
DELETE FROM once_waits WHERE repository = :repository AND wait = :wait;

-- rekey_once_waits: change the repository id
UPDATE once_waits SET repository = :repository WHERE repository = :former;

-- rekey_state: change the repository id
UPDATE state SET repository = :repository WHERE repository = :former;

-- rekey_state_versions: change the repository id
UPDATE state_versions SET repository = :repository WHERE repository = :former;

-- rekey_numbers: change the repository id
UPDATE numbers SET repository = :repository WHERE repository = :former;

-- rekey_slots: change the repository id
UPDATE slots SET repository = :repository WHERE repository = :former;

-- rekey_slot_places: change the repository id
UPDATE slot_places SET repository = :repository WHERE repository = :former;

-- rekey_once: change the repository id
UPDATE once SET repository = :repository WHERE repository = :former;

-- export_state: all rows, to copy them to another store
SELECT key, version, value, reducer, agent, session, written_at FROM state WHERE repository = :repository;

-- export_state_versions: all rows, to copy them to another store
SELECT key, version, value, reducer, agent, session, written_at FROM state_versions WHERE repository = :repository;

-- export_numbers: all rows, to copy them to another store
SELECT kind, number, agent, session, purpose, given_at FROM numbers WHERE repository = :repository;

-- export_slots: all rows, to copy them to another store
SELECT token, id, kind, place, name, workspace, amount, session, taken_at, until, freed_at
FROM slots WHERE repository = :repository;

-- export_slot_places: all rows, to copy them to another store
SELECT kind, workspace, name, place FROM slot_places WHERE repository = :repository;

-- export_once: all rows, to copy them to another store
SELECT key, run, agent, session, machine, boot_id, namespace, pid, started, child_pid, child_started, command,
       begun_at, done_at, exit_code, output
FROM once WHERE repository = :repository;

-- import_state: add a row copied from another store
INSERT INTO state (repository, key, version, value, reducer, agent, session, written_at)
VALUES (:repository, :key, :version, :value, :reducer, :agent, :session, :written_at);

-- import_state_versions: add a row copied from another store
INSERT INTO state_versions (repository, key, version, value, reducer, agent, session, written_at)
VALUES (:repository, :key, :version, :value, :reducer, :agent, :session, :written_at);

-- import_numbers: add a row copied from another store
INSERT INTO numbers (repository, kind, number, agent, session, purpose, given_at)
VALUES (:repository, :kind, :number, :agent, :session, :purpose, :given_at);

-- import_slots: add a row copied from another store
INSERT INTO slots (repository, token, id, kind, place, name, workspace, amount, session, taken_at, until, freed_at)
VALUES (:repository, :token, :id, :kind, :place, :name, :workspace, :amount, :session, :taken_at, :until, :freed_at);

-- import_slot_places: add a row copied from another store
INSERT INTO slot_places (repository, kind, workspace, name, place)
VALUES (:repository, :kind, :workspace, :name, :place);

-- import_once: add a row copied from another store
INSERT INTO once (repository, key, run, agent, session, machine, boot_id, namespace, pid, started, child_pid,
                  child_started, command, begun_at, done_at, exit_code, output)
VALUES (:repository, :key, :run, :agent, :session, :machine, :boot_id, :namespace, :pid, :started, :child_pid,
        :child_started, :command, :begun_at, :done_at, :exit_code, :output);
