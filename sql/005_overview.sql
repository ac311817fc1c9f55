-- What people look at: how much happened per minute, and what the tests of a cause found.
-- MySQL 8 and MariaDB 10.11.

-- Counted from job_events; minute: minutes since 1970, UTC. Rows of more than a day ago go.
CREATE TABLE job_rates (
    tenant        VARCHAR(63)  NOT NULL,
    minute        INT UNSIGNED NOT NULL,
    accepted      BIGINT UNSIGNED NOT NULL,
    started       BIGINT UNSIGNED NOT NULL,
    finished      BIGINT UNSIGNED NOT NULL,
    failed        BIGINT UNSIGNED NOT NULL,
    cancelled     BIGINT UNSIGNED NOT NULL,
    PRIMARY KEY (tenant, minute),
    KEY by_minute (minute)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- One row. Events up to seq are counted in job_rates. seen was the newest one at seen_at; it is
-- counted up to there some seconds later, when what was written beside it has been committed.
CREATE TABLE job_rate_reader (
    id            TINYINT UNSIGNED NOT NULL PRIMARY KEY,
    seq           BIGINT UNSIGNED NOT NULL,
    seen          BIGINT UNSIGNED NOT NULL,
    seen_at       DATETIME(6)  NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
INSERT INTO job_rate_reader (id, seq, seen, seen_at) VALUES (1, 0, 0, UTC_TIMESTAMP(6));

-- The newest tests of each cause; they go with it.
CREATE TABLE recovery_tests (
    recovery_id   BINARY(16)   NOT NULL,
    test          INT UNSIGNED NOT NULL,
    at            DATETIME(6)  NOT NULL,
    result        VARCHAR(16)  NOT NULL,
    detail        VARCHAR(400) NULL,
    PRIMARY KEY (recovery_id, test)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
