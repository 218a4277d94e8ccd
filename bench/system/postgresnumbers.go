package system

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The operations that give documents numbers without holes.
const (
	// numberedKey stores the number with the document's key in the transaction that counts.
	// It is one statement, so that the row is locked no longer than a commit takes: not
	// for round trips between statements.
	numberedKey = "counter row with key"
	// lockedWork is what an ERP system does whose numbers have no holes (Odoo calls it
	// no_gap): the row is locked, and stays so while the business transaction goes on.
	lockedWork = "counter row locked for 10 ms"
)

const (
	numbersSchema = `
CREATE TABLE bench_series (name text PRIMARY KEY, value bigint NOT NULL);
INSERT INTO bench_series VALUES ('keyed', 0), ('locked', 0);
CREATE TABLE bench_number (name text, key text, value bigint NOT NULL, PRIMARY KEY (name, key));`

	numberKey = `
WITH taken AS (UPDATE bench_series SET value = value + 1 WHERE name = 'keyed' RETURNING name, value)
INSERT INTO bench_number SELECT name, $1, value FROM taken RETURNING value`

	lockSeries  = `SELECT value + 1 FROM bench_series WHERE name = 'locked' FOR UPDATE`
	work        = `SELECT pg_sleep(0.010)`
	countSeries = `UPDATE bench_series SET value = $1 WHERE name = 'locked'`
)

// lockAndWork takes a number as lockedWork says. Callers wait for the lock in their order.
func lockAndWork(ctx context.Context, pool *pgxpool.Pool) (id int64, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, lockSeries).Scan(&id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, work); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, countSeries, id)
		return err
	})
	return id, err
}
