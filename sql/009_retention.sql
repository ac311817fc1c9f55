-- What is kept for how long, and which programs run. MySQL 8 and MariaDB 10.11.

-- One row: who removes what is old (holder, while renewed_at is young), and how far it has come.
-- begun_at, ended_at: of the last pass, and of the last that went through. events_upto: events up to
-- this number may be gone. archive_*: what the last walk through the archive (swept_at) found.
CREATE TABLE retention (
    id            TINYINT UNSIGNED NOT NULL PRIMARY KEY,
    holder        BINARY(16)   NULL,
    renewed_at    DATETIME(6)  NOT NULL,
    created_at    DATETIME(6)  NOT NULL,
    begun_at      DATETIME(6)  NULL,
    ended_at      DATETIME(6)  NULL,
    swept_at      DATETIME(6)  NULL,
    events_upto   BIGINT UNSIGNED NOT NULL DEFAULT 0,
    archive_jobs  BIGINT UNSIGNED NOT NULL DEFAULT 0,
    archive_bytes BIGINT UNSIGNED NOT NULL DEFAULT 0
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
INSERT INTO retention (id, renewed_at, created_at) VALUES (1, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6));

-- Every web, recovery, alternate and dead-letter process that runs; workers have a table of their
-- own. schema_number: the newest that the program knows. A row goes when its process ends, or a day
-- after it was last heard of.
CREATE TABLE processes (
    id            BINARY(16)   NOT NULL PRIMARY KEY,
    service       VARCHAR(32)  NOT NULL,
    host          VARCHAR(255) NOT NULL,
    pid           INT UNSIGNED NOT NULL,
    version       VARCHAR(32)  NOT NULL,
    schema_number INT UNSIGNED NOT NULL,
    started_at    DATETIME(6)  NOT NULL,
    seen_at       DATETIME(6)  NOT NULL,
    KEY by_age (seen_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
