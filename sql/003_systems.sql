-- Systems that jobs run on, and how many jobs may be active at once. MySQL 8 and MariaDB 10.11.
-- A NULL limit is none. Nothing is counted here: what is active is counted from jobs.

CREATE TABLE systems (
    tenant        VARCHAR(63)  NOT NULL,
    id            VARCHAR(64)  NOT NULL,
    kind          VARCHAR(16)  NOT NULL DEFAULT 'local' CHECK (kind IN ('local')),
    enabled       TINYINT(1)   NOT NULL DEFAULT 1,
    max_active    INT UNSIGNED NULL,
    max_active_per_owner INT UNSIGNED NULL,
    description   VARCHAR(400) NOT NULL DEFAULT '',
    version       INT UNSIGNED NOT NULL DEFAULT 1,
    created_at    DATETIME(6)  NOT NULL,
    updated_at    DATETIME(6)  NOT NULL,
    PRIMARY KEY (tenant, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- owner is a user, or '*' for the whole tenant.
CREATE TABLE quotas (
    tenant        VARCHAR(63)  NOT NULL,
    owner         VARCHAR(128) NOT NULL,
    max_active    INT UNSIGNED NOT NULL,
    version       INT UNSIGNED NOT NULL DEFAULT 1,
    created_at    DATETIME(6)  NOT NULL,
    updated_at    DATETIME(6)  NOT NULL,
    PRIMARY KEY (tenant, owner)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
