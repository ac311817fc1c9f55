-- Who did what to what, when and from where, and what was refused. Rows are only ever added: no
-- statement of any program changes or deletes one. MySQL 8 and MariaDB 10.11.

-- id: UUIDv7, so in the order of time. tenant, actor: NULL if no token was good. action: the
-- operation's name in the contract. subject: what it was done to, as it stands in the path.
-- outcome: 'done' rows are written in the transaction that did it, or behind the act if that has none. status and code are
-- those of the answer; 0 in a row that was written with the act, before its answer.
CREATE TABLE audit_log (
    id            BINARY(16)   NOT NULL PRIMARY KEY,
    at            DATETIME(6)  NOT NULL,
    tenant        VARCHAR(63)  NULL,
    actor         VARCHAR(128) NULL,
    action        VARCHAR(40)  NOT NULL,
    method        VARCHAR(8)   NOT NULL,
    subject       VARCHAR(255) NOT NULL,
    address       VARCHAR(64)  NOT NULL,
    request_id    VARCHAR(63)  NOT NULL,
    outcome       VARCHAR(16)  NOT NULL CHECK (outcome IN ('done', 'refused', 'failed')),
    status        SMALLINT UNSIGNED NOT NULL,
    code          SMALLINT UNSIGNED NOT NULL,
    detail        VARCHAR(400) NOT NULL,
    KEY by_tenant (tenant, id),
    KEY by_actor (tenant, actor, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
