-- Jobs that wait for something other than a free slot: grouped by what they wait for, so that one
-- cause costs one test per interval, however many jobs it holds. MySQL 8 and MariaDB 10.11.

-- One row per (tenant, condition, tester, params, policy), cause_hash is SHA-256 over the last four.
-- first_at: since when the cause has not been found clear. ramp: jobs in the next batch of a
-- release that is under way, 0 if none is. asked: what an operator wants done
-- with the jobs that were blocked when he said so.
CREATE TABLE job_recovery (
    id            BINARY(16)    NOT NULL PRIMARY KEY,
    tenant        VARCHAR(63)   NOT NULL,
    cause_hash    BINARY(32)    NOT NULL,
    job_condition VARCHAR(32)   NOT NULL,
    tester        VARCHAR(32)   NOT NULL,
    params        VARCHAR(2048) NOT NULL,
    policy        VARCHAR(255)  NOT NULL,
    tests         INT UNSIGNED  NOT NULL DEFAULT 0,
    tries         INT UNSIGNED  NOT NULL DEFAULT 0,
    first_at      DATETIME(6)   NOT NULL,
    next_at       DATETIME(6)   NOT NULL,
    last_at       DATETIME(6)   NULL,
    last_result   VARCHAR(16)   NULL,
    last_detail   VARCHAR(400)  NULL,
    ramp          INT UNSIGNED  NOT NULL DEFAULT 0,
    released      BIGINT UNSIGNED NOT NULL DEFAULT 0,
    asked         VARCHAR(16)   NULL CHECK (asked IN ('release', 'fail')),
    asked_by      VARCHAR(128)  NULL,
    asked_at      DATETIME(6)   NULL,
    UNIQUE KEY by_cause (tenant, cause_hash),
    KEY by_due (next_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- One row per BLOCKED job, with the state to resume at.
CREATE TABLE job_blocked (
    job_id        BINARY(16)    NOT NULL PRIMARY KEY,
    recovery_id   BINARY(16)    NOT NULL,
    tenant        VARCHAR(63)   NOT NULL,
    resume_status VARCHAR(24)   NOT NULL,
    blocked_at    DATETIME(6)   NOT NULL,
    KEY by_recovery (recovery_id, job_id),
    KEY by_tenant (tenant, job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Who leads. fencing rises with every change of the leader, and each transaction of a leader looks at
-- its number first, so that one who was replaced without noticing writes nothing more.
CREATE TABLE recovery_leader (
    role          VARCHAR(80)   NOT NULL PRIMARY KEY,
    fencing       BIGINT UNSIGNED NOT NULL,
    holder        BINARY(16)    NOT NULL,
    renewed_at    DATETIME(6)   NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
