package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // The driver "sqlite".

	"github.com/idnode/idnode/client"
)

// schema has the invoices. An invoice is written without a number; number and text are set
// together, and confirmed once the cluster knows that they are in the books.
const schema = `CREATE TABLE IF NOT EXISTS invoices (
	id        TEXT PRIMARY KEY DEFAULT (lower(hex(randomblob(16)))),
	customer  TEXT NOT NULL,
	cents     INTEGER NOT NULL,
	number    INTEGER UNIQUE,
	text      TEXT UNIQUE,
	confirmed INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS unfinished ON invoices (confirmed) WHERE NOT confirmed`

// books is the database. Other processes may use it at the same time.
type books struct{ *sql.DB }

// openBooks opens the database, which it makes if there is none. By SQLite's defaults, what
// a transaction has committed outlives a loss of power.
func openBooks(ctx context.Context, path string) (books, error) {
	options := url.Values{
		"_pragma": {"busy_timeout(20000)"}, // Milliseconds.
		// A transaction that begins with a read could not become one that writes.
		"_txlock": {"immediate"},
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+options.Encode())
	if err != nil {
		return books{}, err
	}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return books{}, errors.Join(fmt.Errorf("%s: %w", path, err), db.Close())
	}
	return books{db}, nil
}

// store writes new invoices, at most so many and until there are count. It returns how
// many it wrote.
func (b books) store(ctx context.Context, count, most int) (stored int, err error) {
	err = b.transaction(ctx, func(tx *sql.Tx) error {
		var have int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM invoices`).Scan(&have); err != nil {
			return err
		}
		stored = max(0, min(count-have, most))
		for i := range stored {
			n := have + i
			_, err := tx.ExecContext(ctx, `INSERT INTO invoices (customer, cents) VALUES (?, ?)`, fmt.Sprintf("customer %d", n%97), 100+n%9901)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return stored, err
}

// unfinished returns the keys of some invoices that are not confirmed, the oldest first,
// and whether all of them have a number.
func (b books) unfinished(ctx context.Context, most int) (numbers []client.DocumentNumber, numbered bool, err error) {
	rows, err := b.QueryContext(ctx, `SELECT id, coalesce(number, 0) FROM invoices WHERE NOT confirmed ORDER BY rowid LIMIT ?`, most)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	numbered = true
	for rows.Next() {
		var n client.DocumentNumber
		if err := rows.Scan(&n.Key, &n.Number); err != nil {
			return nil, false, err
		}
		numbers, numbered = append(numbers, n), numbered && n.Number != 0
	}
	return numbers, numbered, rows.Err()
}

// keep stores the numbers of invoices. One that has a number already has this one, or
// something is very wrong.
func (b books) keep(ctx context.Context, numbers []client.DocumentNumber) error {
	return b.each(ctx, numbers, func(tx *sql.Tx, n client.DocumentNumber) (sql.Result, error) {
		return tx.ExecContext(ctx, `UPDATE invoices SET number = ?1, text = ?2 WHERE id = ?3 AND coalesce(number, ?1) = ?1`, n.Number, n.Text, n.Key)
	})
}

// confirmed notes that the cluster knows what is in the books.
func (b books) confirmed(ctx context.Context, numbers []client.DocumentNumber) error {
	return b.each(ctx, numbers, func(tx *sql.Tx, n client.DocumentNumber) (sql.Result, error) {
		return tx.ExecContext(ctx, `UPDATE invoices SET confirmed = 1 WHERE id = ? AND number = ?`, n.Key, n.Number)
	})
}

// each changes one invoice for each number, in one transaction.
func (b books) each(ctx context.Context, numbers []client.DocumentNumber,
	change func(*sql.Tx, client.DocumentNumber) (sql.Result, error),
) error {
	return b.transaction(ctx, func(tx *sql.Tx) error {
		for _, n := range numbers {
			result, err := change(tx, n)
			if err != nil {
				return err
			}
			switch changed, err := result.RowsAffected(); {
			case err != nil:
				return err
			case changed != 1:
				return fmt.Errorf("invoice %s has another number than %d in the books", n.Key, n.Number)
			}
		}
		return nil
	})
}

func (b books) transaction(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := b.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// audit finds whether the numbers in the books are 1 to the last, each once and final, but
// for those that are on no invoice. It returns the last. The schema sees to it that no
// number is there twice, and a final invoice has one.
func (b books) audit(ctx context.Context, none int) (last int, err error) {
	var all, confirmed, first int
	err = b.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(confirmed), 0), coalesce(min(number), 1), coalesce(max(number), 0) FROM invoices`).
		Scan(&all, &confirmed, &first, &last)
	if err != nil {
		return 0, err
	}
	if first < 1 || first > 1+none || last != all+none || confirmed != all {
		return 0, fmt.Errorf("%d invoices, %d of them final, with numbers from %d to %d, of which %d are on none", all,
			confirmed, first, last, none)
	}
	return last, nil
}

// last returns the greatest number in the books; 0 if there is none.
func (b books) last(ctx context.Context) (last int64, err error) {
	err = b.QueryRowContext(ctx, `SELECT coalesce(max(number), 0) FROM invoices`).Scan(&last)
	return last, err
}

// holder returns the key of the invoice that has a number; "" if none has.
func (b books) holder(ctx context.Context, number int64) (key string, err error) {
	err = b.QueryRowContext(ctx, `SELECT id FROM invoices WHERE number = ?`, number).Scan(&key)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return key, err
}
