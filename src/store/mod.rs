//! The database: schema, migrations and every SQL statement. PostgreSQL and SQLite behind one code.
