-- Jobs, what they refer to, and how they travel. MySQL 8 and MariaDB 10.11.
-- Times are UTC and come from the database (UTC_TIMESTAMP(6)), so that one clock orders them.

CREATE TABLE tenants (
    name          VARCHAR(63)  NOT NULL PRIMARY KEY,
    default_queue VARCHAR(63)  NOT NULL DEFAULT 'default',
    created_at    DATETIME(6)  NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- One row. queues rises with every change to any queue: a web process that sees it rise reads
-- the queues again.
CREATE TABLE site_versions (
    id            TINYINT UNSIGNED NOT NULL PRIMARY KEY,
    queues        BIGINT UNSIGNED  NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
INSERT INTO site_versions (id, queues) VALUES (1, 1);

CREATE TABLE job_queues (
    tenant        VARCHAR(63)  NOT NULL,
    name          VARCHAR(63)  NOT NULL,
    priority      INT          NOT NULL,
    filter        TEXT         NULL,
    queue_type    VARCHAR(16)  NOT NULL DEFAULT 'quorum' CHECK (queue_type IN ('quorum', 'classic')),
    enabled       TINYINT(1)   NOT NULL DEFAULT 1,
    max_seconds   INT UNSIGNED NULL,
    description   VARCHAR(400) NOT NULL DEFAULT '',
    version       INT UNSIGNED NOT NULL DEFAULT 1,
    created_at    DATETIME(6)  NOT NULL,
    updated_at    DATETIME(6)  NOT NULL,
    PRIMARY KEY (tenant, name),
    UNIQUE KEY by_priority (tenant, priority)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE apps (
    tenant        VARCHAR(63)  NOT NULL,
    id            VARCHAR(64)  NOT NULL,
    app_version   VARCHAR(32)  NOT NULL,
    enabled       TINYINT(1)   NOT NULL DEFAULT 1,
    definition    MEDIUMTEXT   NOT NULL,
    version       INT UNSIGNED NOT NULL DEFAULT 1,
    created_at    DATETIME(6)  NOT NULL,
    updated_at    DATETIME(6)  NOT NULL,
    PRIMARY KEY (tenant, id, app_version)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE workers (
    id            BINARY(16)   NOT NULL PRIMARY KEY,
    tenant        VARCHAR(63)  NOT NULL,
    queue         VARCHAR(63)  NOT NULL,
    name          VARCHAR(63)  NOT NULL,
    host          VARCHAR(255) NOT NULL,
    boot_id       VARCHAR(36)  NOT NULL,
    pid           INT UNSIGNED NOT NULL,
    version       VARCHAR(32)  NOT NULL,
    slots         INT UNSIGNED NOT NULL,
    busy          INT UNSIGNED NOT NULL DEFAULT 0,
    beat          BIGINT UNSIGNED NOT NULL DEFAULT 0,
    state         VARCHAR(16)  NOT NULL CHECK (state IN ('live', 'stopped', 'replaced', 'dead')),
    draining      TINYINT(1)   NOT NULL DEFAULT 0,
    started_at    DATETIME(6)  NOT NULL,
    beat_at       DATETIME(6)  NOT NULL,
    KEY by_state (state, beat_at),
    KEY by_name (host, name, state),
    KEY by_queue (tenant, queue, state)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE jobs (
    id            BINARY(16)   NOT NULL PRIMARY KEY,
    tenant        VARCHAR(63)  NOT NULL,
    owner         VARCHAR(128) NOT NULL,
    name          VARCHAR(128) NOT NULL,
    app_id        VARCHAR(64)  NULL,
    app_version   VARCHAR(32)  NULL,
    system_id     VARCHAR(64)  NULL,
    queue         VARCHAR(63)  NOT NULL,
    status        VARCHAR(24)  NOT NULL,
    job_condition VARCHAR(32)  NULL,
    epoch         INT UNSIGNED NOT NULL,
    fence         BIGINT UNSIGNED NOT NULL DEFAULT 0,
    owner_worker  BINARY(16)   NULL,
    cancel_requested_at DATETIME(6) NULL,
    cancel_by     VARCHAR(128) NULL,
    node_count    INT UNSIGNED NOT NULL,
    cores_per_node INT UNSIGNED NOT NULL,
    memory_mb     INT UNSIGNED NOT NULL,
    max_seconds   INT UNSIGNED NOT NULL,
    attempts      INT UNSIGNED NOT NULL DEFAULT 0,
    losses        INT UNSIGNED NOT NULL DEFAULT 0,
    exit_code     SMALLINT     NULL,
    term_signal   SMALLINT     NULL,
    reason        VARCHAR(400) NULL,
    run_fence     BIGINT UNSIGNED NOT NULL DEFAULT 0,
    stdout_bytes  BIGINT UNSIGNED NOT NULL DEFAULT 0,
    stdout_kept   BIGINT UNSIGNED NOT NULL DEFAULT 0,
    stderr_bytes  BIGINT UNSIGNED NOT NULL DEFAULT 0,
    stderr_kept   BIGINT UNSIGNED NOT NULL DEFAULT 0,
    visible       TINYINT(1)   NOT NULL DEFAULT 1,
    tags          VARCHAR(4096) NOT NULL DEFAULT '[]',
    request       MEDIUMTEXT   NOT NULL,
    created_at    DATETIME(6)  NOT NULL,
    updated_at    DATETIME(6)  NOT NULL,
    started_at    DATETIME(6)  NULL,
    ended_at      DATETIME(6)  NULL,
    KEY by_tenant (tenant, id),
    KEY by_status (tenant, status, id),
    KEY by_owner (tenant, owner, id),
    KEY by_worker (owner_worker, id),
    CONSTRAINT jobs_status CHECK (status IN ('PENDING', 'PROCESSING_INPUTS', 'STAGING_INPUTS', 'STAGING_JOB', 'SUBMITTING_JOB', 'QUEUED', 'RUNNING', 'ARCHIVING', 'BLOCKED', 'PAUSED', 'FINISHED', 'CANCELLED', 'FAILED'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Append-only: one row per change of state, written in the transaction that made it.
CREATE TABLE job_events (
    seq           BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    job_id        BINARY(16)   NOT NULL,
    tenant        VARCHAR(63)  NOT NULL,
    at            DATETIME(6)  NOT NULL,
    kind          VARCHAR(24)  NOT NULL,
    from_status   VARCHAR(24)  NULL,
    to_status     VARCHAR(24)  NOT NULL,
    job_condition VARCHAR(32)  NULL,
    epoch         INT UNSIGNED NOT NULL,
    fence         BIGINT UNSIGNED NOT NULL,
    worker        BINARY(16)   NULL,
    actor         VARCHAR(128) NULL,
    detail        VARCHAR(400) NULL,
    KEY by_job (job_id, seq),
    KEY by_tenant (tenant, seq)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Messages that are promised by a committed row and not yet confirmed by the broker.
CREATE TABLE outbox (
    id            BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    job_id        BINARY(16)   NOT NULL,
    epoch         INT UNSIGNED NOT NULL,
    tenant        VARCHAR(63)  NOT NULL,
    queue         VARCHAR(63)  NOT NULL,
    created_at    DATETIME(6)  NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE idempotency_keys (
    tenant        VARCHAR(63)  NOT NULL,
    owner         VARCHAR(128) NOT NULL,
    idem_key      VARCHAR(128) NOT NULL,
    body_hash     BINARY(32)   NOT NULL,
    job_id        BINARY(16)   NOT NULL,
    created_at    DATETIME(6)  NOT NULL,
    PRIMARY KEY (tenant, owner, idem_key),
    KEY by_age (created_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
