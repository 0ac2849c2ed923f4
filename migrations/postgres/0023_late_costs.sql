-- How many transactions have written costs that became known late (`Store::reprice`). The row is locked until such a transaction
-- ends, so a snapshot of the database with the number n has exactly the first n. Shared counters that are rebuilt from the ledger
-- recognise by it which of these costs they have.
CREATE TABLE late_costs (
    id SMALLINT PRIMARY KEY CHECK (id = 1),
    number BIGINT NOT NULL
);
