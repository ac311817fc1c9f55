-- Webhooks: who wants to be told of what, and what he was told. MySQL 8 and MariaDB 10.11.

-- job_id: 16 zero bytes for all jobs of the tenant; otherwise the subscription came with that job's
-- request, and has no name. states: the states that are told of, separated by commas. seed: what
-- the signing secret is made from, together with webhook.key (common/auth/hook_sign.h); NULL: not
-- signed. old_seed signs as well until old_until. after_seq: events up to it are not told of.
-- lane: deliveries of one lane wait for each other's receiver, those of others never do.
CREATE TABLE subscriptions (
    id            BINARY(16)    NOT NULL PRIMARY KEY,
    tenant        VARCHAR(63)   NOT NULL,
    job_id        BINARY(16)    NOT NULL,
    name          VARCHAR(64)   NULL,
    owner         VARCHAR(128)  NOT NULL,
    url           VARCHAR(2048) NOT NULL,
    states        VARCHAR(255)  NOT NULL,
    enabled       TINYINT(1)    NOT NULL DEFAULT 1,
    description   VARCHAR(400)  NOT NULL DEFAULT '',
    secret_of     VARCHAR(64)   NULL,
    seed          BINARY(32)    NULL,
    old_seed      BINARY(32)    NULL,
    old_until     DATETIME(6)   NULL,
    lane          BINARY(16)    NOT NULL,
    after_seq     BIGINT UNSIGNED NOT NULL,
    version       INT UNSIGNED  NOT NULL DEFAULT 1,
    created_at    DATETIME(6)   NOT NULL,
    updated_at    DATETIME(6)   NOT NULL,
    UNIQUE KEY by_name (tenant, name),
    KEY by_job (job_id, tenant, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- One event for one subscription. state: 'held' waits for an earlier event of the same job, 'due'
-- is sent when next_at has come. body: the bytes that are sent, the same at each attempt.
CREATE TABLE webhook_deliveries (
    id            BINARY(16)    NOT NULL PRIMARY KEY,
    subscription_id BINARY(16)  NOT NULL,
    tenant        VARCHAR(63)   NOT NULL,
    job_id        BINARY(16)    NOT NULL,
    seq           BIGINT UNSIGNED NOT NULL,
    event         VARCHAR(24)   NOT NULL,
    lane          BINARY(16)    NOT NULL,
    state         VARCHAR(16)   NOT NULL CHECK (state IN ('held', 'due', 'delivered', 'dead', 'dropped')),
    attempts      INT UNSIGNED  NOT NULL DEFAULT 0,
    http_status   SMALLINT UNSIGNED NOT NULL DEFAULT 0,
    error         VARCHAR(400)  NOT NULL DEFAULT '',
    body          TEXT          NOT NULL,
    created_at    DATETIME(6)   NOT NULL,
    since         DATETIME(6)   NOT NULL,
    next_at       DATETIME(6)   NOT NULL,
    ended_at      DATETIME(6)   NULL,
    UNIQUE KEY by_event (subscription_id, seq),
    KEY by_lane (state, lane, next_at),
    KEY by_chain (subscription_id, job_id, state, seq),
    KEY by_tenant (tenant, id),
    KEY by_job (job_id, id),
    KEY by_end (ended_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The newest attempts of each delivery (HOOK_ATTEMPTS_MAX).
CREATE TABLE webhook_attempts (
    delivery_id   BINARY(16)    NOT NULL,
    attempt       INT UNSIGNED  NOT NULL,
    at            DATETIME(6)   NOT NULL,
    took_ms       INT UNSIGNED  NOT NULL,
    http_status   SMALLINT UNSIGNED NOT NULL,
    error         VARCHAR(400)  NOT NULL,
    PRIMARY KEY (delivery_id, attempt)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- One row: who sends, and how far the history was looked through. fencing rises with every change
-- of the sender, and each of his transactions locks the row with his number; beat rises while he
-- lives.
CREATE TABLE webhook_sender (
    id            TINYINT UNSIGNED NOT NULL PRIMARY KEY,
    fencing       BIGINT UNSIGNED NOT NULL,
    holder        BINARY(16)    NULL,
    beat          BIGINT UNSIGNED NOT NULL,
    seq           BIGINT UNSIGNED NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
INSERT INTO webhook_sender (id, fencing, holder, beat, seq) SELECT 1, 0, NULL, 0, COALESCE(MAX(seq), 0) FROM job_events;
