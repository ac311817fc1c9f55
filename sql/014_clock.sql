-- clock_ms: so far the process's clock was ahead of the database's when it was last heard of; NULL, of
-- a version that did not say so, is not known. Read by `sluice doctor` alone.
ALTER TABLE workers
    ADD COLUMN clock_ms BIGINT NULL;
ALTER TABLE processes
    ADD COLUMN clock_ms BIGINT NULL;
