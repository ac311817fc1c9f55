-- lease_ms: the silence after which this worker may be taken for dead, by its own setting; NULL, of a
-- version that did not say so, counts as the longest that the setting allows. runner: which process
-- holds its runs (boot, pid and start time); NULL or '' is not known.
ALTER TABLE workers
    ADD COLUMN lease_ms INT UNSIGNED NULL,
    ADD COLUMN runner VARCHAR(96) NULL;
