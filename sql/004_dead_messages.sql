-- What the broker could not deliver: dead letters (source 'dead') and messages that no queue was
-- bound for ('alternate'). MySQL 8 and MariaDB 10.11.

-- digest: SHA-256 over what tells two messages apart (common/store/dead_store.h); a message that is
-- delivered twice has one row. tenant: NULL if its origin is no queue of a tenant. body: at most
-- the first 64 KiB of size_bytes. outcome: what the reader did; state:
-- what is left to do for people.
CREATE TABLE dead_messages (
    id            BINARY(16)    NOT NULL PRIMARY KEY,
    digest        BINARY(32)    NOT NULL,
    source        VARCHAR(16)   NOT NULL CHECK (source IN ('dead', 'alternate')),
    tenant        VARCHAR(63)   NULL,
    state         VARCHAR(16)   NOT NULL CHECK (state IN ('open', 'settled', 'replaying', 'replayed', 'discarded')),
    reason        VARCHAR(32)   NOT NULL,
    exchange_name VARCHAR(200)  NOT NULL,
    queue_name    VARCHAR(200)  NOT NULL,
    routing_key   VARCHAR(200)  NOT NULL,
    message_id    VARCHAR(64)   NOT NULL,
    content_type  VARCHAR(64)   NOT NULL,
    traceparent   VARCHAR(64)   NOT NULL,
    death_count   BIGINT UNSIGNED NOT NULL,
    delivery_count INT UNSIGNED NOT NULL,
    died_at       DATETIME(6)   NULL,
    job_id        BINARY(16)    NULL,
    epoch         INT UNSIGNED  NOT NULL,
    size_bytes    BIGINT UNSIGNED NOT NULL,
    body          MEDIUMBLOB    NOT NULL,
    outcome       VARCHAR(32)   NULL,
    detail        VARCHAR(400)  NULL,
    seen          INT UNSIGNED  NOT NULL DEFAULT 1,
    replays       INT UNSIGNED  NOT NULL DEFAULT 0,
    acted_by      VARCHAR(128)  NULL,
    acted_at      DATETIME(6)   NULL,
    created_at    DATETIME(6)   NOT NULL,
    seen_at       DATETIME(6)   NOT NULL,
    UNIQUE KEY by_digest (digest),
    KEY by_tenant (tenant, id),
    KEY by_state (state, tenant, id),
    KEY by_job (job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
