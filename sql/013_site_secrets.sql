-- What the web processes of a site share and nobody else knows. MySQL 8 and MariaDB 10.11.

-- cursor: the key of list cursors while web.cursor_key is empty.
CREATE TABLE site_secrets (
    name   VARCHAR(32) NOT NULL PRIMARY KEY,
    secret BINARY(32)  NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
INSERT INTO site_secrets (name, secret) VALUES ('cursor', RANDOM_BYTES(32));
