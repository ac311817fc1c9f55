-- Which work folder a worker lives in: a random id that the folder keeps. A worker that comes back
-- is known by it; two hosts or containers may well have equal names.
ALTER TABLE workers
    ADD COLUMN home BINARY(16) NULL,
    ADD KEY by_home (home, state),
    DROP KEY by_name;
