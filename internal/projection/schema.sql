-- Times are UTC with nine digits of fraction, so that their order as text is
-- their order in time. They are the stream's own: two projections of one log
-- are equal. JSONTEXT columns hold JSON.

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE events (
  seq            INTEGER PRIMARY KEY,
  time           TEXT NOT NULL,
  subject        TEXT NOT NULL,
  session        TEXT NOT NULL,
  kind           TEXT NOT NULL,
  id             TEXT NOT NULL,
  fact           TEXT NOT NULL,
  route          TEXT NOT NULL,
  type           TEXT NOT NULL,
  headers        JSONTEXT NOT NULL,
  body           TEXT NOT NULL,
  content_sha256 TEXT NOT NULL,
  holds          BOOLEAN NOT NULL,
  error          TEXT
);
CREATE INDEX events_aggregate ON events (session, kind, id);
CREATE INDEX events_error ON events (seq) WHERE error IS NOT NULL;

CREATE TABLE sessions (
  session           TEXT PRIMARY KEY,
  state             TEXT NOT NULL,
  task              TEXT NOT NULL,
  system            TEXT NOT NULL,
  model             TEXT NOT NULL,
  capability        TEXT NOT NULL,
  tools             JSONTEXT,
  mode              TEXT NOT NULL,
  limits            JSONTEXT NOT NULL,
  generation        JSONTEXT NOT NULL,
  actor             TEXT NOT NULL,
  command           TEXT NOT NULL,
  stage             TEXT NOT NULL DEFAULT '',
  turns             INTEGER NOT NULL DEFAULT 0,
  tool_calls        INTEGER NOT NULL DEFAULT 0,
  prompt_tokens     INTEGER NOT NULL DEFAULT 0,
  completion_tokens INTEGER NOT NULL DEFAULT 0,
  total_tokens      INTEGER NOT NULL DEFAULT 0,
  inference         TEXT NOT NULL DEFAULT '',
  answer            TEXT,
  code              TEXT NOT NULL DEFAULT '',
  reason            TEXT NOT NULL DEFAULT '',
  seq               INTEGER NOT NULL,
  started_at        TEXT NOT NULL,
  ended_at          TEXT,
  fork_of           TEXT NOT NULL DEFAULT '', -- the session whose past it shares,
  fork_at           INTEGER                   -- and up to which sequence
);
CREATE INDEX sessions_seq ON sessions (seq);

CREATE TABLE messages (
  seq     INTEGER PRIMARY KEY,
  session TEXT NOT NULL,
  role    TEXT NOT NULL,
  text    TEXT NOT NULL,
  actor   TEXT NOT NULL,
  command TEXT NOT NULL,
  time    TEXT NOT NULL
);
CREATE INDEX messages_session ON messages (session, seq);

CREATE TABLE rules (
  seq               INTEGER PRIMARY KEY,
  session           TEXT NOT NULL,
  tool              TEXT NOT NULL,
  parameters_sha256 TEXT NOT NULL,
  max_tier          TEXT NOT NULL,
  until             TEXT NOT NULL,
  actor             TEXT NOT NULL,
  command           TEXT NOT NULL,
  time              TEXT NOT NULL
);

CREATE TABLE inferences (
  session           TEXT NOT NULL,
  inference         TEXT NOT NULL,
  status            TEXT NOT NULL,
  stage             TEXT NOT NULL,
  model             TEXT NOT NULL,
  model_token       TEXT NOT NULL,
  through           INTEGER NOT NULL,
  tools             JSONTEXT,
  withdrawn         JSONTEXT,
  final_only        BOOLEAN NOT NULL,
  generation        JSONTEXT NOT NULL,
  retry             TEXT NOT NULL,
  messages          JSONTEXT,
  actor             TEXT NOT NULL,
  command           TEXT NOT NULL,
  seq               INTEGER NOT NULL,
  requested_at      TEXT NOT NULL,
  deadline          TEXT NOT NULL,
  worker            TEXT,
  boot              TEXT,
  nonce             TEXT,
  attempt           INTEGER,
  started_seq       INTEGER,
  started_at        TEXT,
  text              TEXT,
  final             TEXT,
  calls             JSONTEXT,
  finish_reason     TEXT,
  prompt_tokens     INTEGER,
  completion_tokens INTEGER,
  total_tokens      INTEGER,
  cached_tokens     INTEGER,
  latency_ns        INTEGER,
  timings           JSONTEXT,
  prompt_sha256     TEXT,
  cut               INTEGER,
  tokenizer         TEXT,
  code              TEXT,
  reason            TEXT,
  recoverable       BOOLEAN,
  end_seq           INTEGER,
  completed_at      TEXT,
  PRIMARY KEY (session, inference)
);

CREATE TABLE invocations (
  session            TEXT NOT NULL,
  invocation         TEXT NOT NULL,
  status             TEXT NOT NULL,
  tool               TEXT NOT NULL,
  tool_token         TEXT NOT NULL,
  tier               TEXT NOT NULL,
  stage              TEXT NOT NULL,
  parameters         JSONTEXT NOT NULL,
  offer_digest       TEXT NOT NULL,
  preview_by         TEXT,
  actor              TEXT NOT NULL,
  command            TEXT NOT NULL,
  follows            TEXT NOT NULL,
  seq                INTEGER NOT NULL,
  requested_at       TEXT NOT NULL,
  previewed_seq      INTEGER,
  previewed_at       TEXT,
  preview_worker     TEXT,
  preview_valid      BOOLEAN,
  preview_reason     TEXT,
  preview_diff       TEXT,
  preview_base       JSONTEXT,
  preview_affected   JSONTEXT,
  preview_notes      JSONTEXT,
  worker             TEXT,
  boot               TEXT,
  nonce              TEXT,
  attempt            INTEGER,
  isolation          TEXT,
  started_seq        INTEGER,
  started_at         TEXT,
  cancel_seq         INTEGER,
  cancel_reason      TEXT,
  exit_code          INTEGER,
  output             TEXT,
  structured_output  JSONTEXT,
  affected_entities  JSONTEXT,
  duration_ns        INTEGER,
  receipt_tier       TEXT,
  receipt_timestamp  TEXT,
  metadata           JSONTEXT,
  diff               TEXT,
  receipt_isolation  TEXT,
  artifacts          JSONTEXT,
  follow_up          JSONTEXT,
  reason             TEXT,
  recoverable        BOOLEAN,
  effects            TEXT,
  rejected_by        TEXT,
  denied             BOOLEAN,
  expired            BOOLEAN,
  end_seq            INTEGER,
  completed_at       TEXT,
  recovered_seq      INTEGER,
  recovered_by       TEXT,
  recovered          JSONTEXT,
  PRIMARY KEY (session, invocation)
);

CREATE TABLE approvals (
  session        TEXT NOT NULL,
  invocation     TEXT NOT NULL,
  status         TEXT NOT NULL,
  tool           TEXT NOT NULL,
  tool_token     TEXT NOT NULL,
  tier           TEXT NOT NULL,
  digest         TEXT NOT NULL,
  policy_version TEXT NOT NULL,
  why            TEXT,
  notes          JSONTEXT,
  deadline       TEXT,
  seq            INTEGER NOT NULL,
  requested_at   TEXT,
  answered_seq   INTEGER,
  answered_at    TEXT,
  answered_by    TEXT,
  actor          TEXT,
  command        TEXT,
  scope          TEXT,
  reason         TEXT,
  until          TEXT,
  key            TEXT,
  signature      TEXT,
  PRIMARY KEY (session, invocation)
);

CREATE TABLE models (
  id             TEXT PRIMARY KEY,
  worker         TEXT NOT NULL,
  model          TEXT NOT NULL,
  model_token    TEXT,
  offered        BOOLEAN NOT NULL,
  context_size   INTEGER,
  capabilities   JSONTEXT,
  residency_mode TEXT,
  state          TEXT NOT NULL,
  pid            INTEGER,
  loaded_context INTEGER,
  latency_ns     INTEGER,
  server         TEXT,
  force          BOOLEAN,
  reason         TEXT,
  exit_code      INTEGER,
  signal         TEXT,
  log            JSONTEXT,
  seq            INTEGER NOT NULL,
  time           TEXT NOT NULL
);
CREATE INDEX models_worker ON models (worker);

CREATE TABLE workers (
  worker      TEXT PRIMARY KEY,
  role        TEXT NOT NULL,
  state       TEXT NOT NULL,
  boot        TEXT NOT NULL,
  host        TEXT NOT NULL,
  pid         INTEGER NOT NULL,
  version     TEXT NOT NULL,
  concurrency INTEGER NOT NULL,
  settings    JSONTEXT,
  starts      INTEGER NOT NULL,
  seq         INTEGER NOT NULL,
  started_at  TEXT NOT NULL,
  stopped_seq INTEGER,
  stopped_at  TEXT,
  reason      TEXT
);

CREATE TABLE tools (
  worker         TEXT NOT NULL,
  tool           TEXT NOT NULL,
  tool_token     TEXT NOT NULL,
  description    TEXT NOT NULL,
  tier           TEXT NOT NULL,
  capabilities   JSONTEXT,
  schema         JSONTEXT NOT NULL,
  digest         TEXT NOT NULL,
  previews       BOOLEAN NOT NULL,
  idempotent     BOOLEAN NOT NULL,
  example        JSONTEXT,
  isolation      TEXT NOT NULL,
  follow_up_only BOOLEAN NOT NULL,
  origin         TEXT NOT NULL,
  seq            INTEGER NOT NULL,
  PRIMARY KEY (worker, tool)
);

CREATE TABLE commands (
  command TEXT PRIMARY KEY,
  status  TEXT NOT NULL,
  actor   TEXT NOT NULL,
  subject TEXT,
  reasons JSONTEXT,
  fact    TEXT NOT NULL,
  session TEXT NOT NULL,
  id      TEXT NOT NULL,
  facts   INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  time    TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX commands_seq ON commands (seq);

CREATE TABLE audit (
  seq          INTEGER PRIMARY KEY,
  id           TEXT NOT NULL,
  through      INTEGER NOT NULL,
  chain_sha256 TEXT NOT NULL,
  root_sha256  TEXT NOT NULL,
  previous     INTEGER NOT NULL,
  key          TEXT NOT NULL,
  signature    TEXT NOT NULL,
  time         TEXT NOT NULL
);

-- What was said, in order: the task, people, the model, the tools.
CREATE VIEW transcript AS
  SELECT session, seq, started_at AS time, 'task' AS who, task AS text FROM sessions
  UNION ALL
  SELECT session, seq, time, role, text FROM messages
  UNION ALL
  SELECT session, end_seq, completed_at, 'assistant', coalesce(final, text) FROM inferences
    WHERE status = 'COMPLETED'
  UNION ALL
  SELECT session, end_seq, completed_at, tool, coalesce(output, reason) FROM invocations
    WHERE end_seq IS NOT NULL;

-- Records that do not hold.
CREATE VIEW alarms AS
  SELECT seq, time, subject, error FROM events WHERE error IS NOT NULL;
