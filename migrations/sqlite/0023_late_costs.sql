-- How many transactions have written costs that became known late (`Store::reprice`): a snapshot of the database with the number n has
-- exactly the first n. Counters in Redis that are rebuilt from the ledger recognise by it which of these costs they have.
CREATE TABLE late_costs (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    number INTEGER NOT NULL
);
