package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/client/idnodev1"
)

// Bounds of a call, below a server's bounds.
const (
	reconciledAtOnce = 1_000
	reconciledBytes  = 32_000
)

func newSeriesReconcileCommand(a *app) *cobra.Command {
	var msg idnodev1.ReconcileNumbersRequest
	cmd := &cobra.Command{
		Use:   "reconcile NAME SCOPE",
		Short: "Say which documents have the unknown numbers",
		Long: `Says of unknown numbers of a scope which document has each, which confirms it, or that
none has it, which voids it. 'idnode series report NAME --state unknown' lists them.
This cannot be undone, so the command asks first. It prints a line for each
number: text, state, key, date, reason. The same command again changes nothing.

--file reads a CSV: a line "number,key", and then a line for each number, without a
key if no document has it. - is the standard input. The file is read to its end
before anything is changed; then the numbers go out in calls of 1,000, each of which
counts whole or not at all.`,
		Example: `  idnode series reconcile invoices 2026,BERLIN --number 7=cart-3 --number 8=
  idnode series reconcile orders - --file books.csv --reason 'not in the books of 31 March'`,
	}
	f := cmd.Flags()
	numbers := f.StringArray("number", nil, "NUMBER=KEY: the document that has a number; NUMBER= if none has it; one flag for each")
	file := f.String("file", "", "CSV (number,key) from the books; - is the standard input")
	f.StringVar(&msg.Reason, "reason", "", `why numbers without a document are voided, at most 128 bytes (default "not in the books")`)
	sure := a.asks(cmd)
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) (err error) {
		msg.Database, msg.Series = s.database, args[0]
		if msg.Scope, err = parseScope(args[1]); err != nil {
			return err
		}
		var books []*idnodev1.ReconciledNumber
		send := sending(s.keyed)
		switch {
		case (len(*numbers) == 0) == (*file == ""):
			return usagef("exactly one of --number and --file is required")
		case *file != "":
			send = s.untilAnswered
			books, err = readBooks(ctx, *file, a.stdin)
		default:
			books, err = parseReconciled(*numbers)
		}
		if err != nil {
			return err
		}
		none := 0
		for _, b := range books {
			if b.GetKey() == "" {
				none++
			}
		}
		question := fmt.Sprintf("Gives %d unknown numbers of scope %s of %s to their documents, and voids %d, for good.", len(books)-none,
			scopeText(msg.GetScope()), quote(msg.GetSeries()), none)
		if err := s.confirm(ctx, sure, question); err != nil {
			return err
		}
		return reconcile(ctx, s, send, &msg, books)
	})
}

// parseReconciled parses the numbers of --number.
func parseReconciled(texts []string) (numbers []*idnodev1.ReconciledNumber, err error) {
	for _, text := range texts {
		number, key, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usagef("--number must be NUMBER=KEY, or NUMBER= if no document has it, not %q", text)
		}
		n, err := parseNumber("the number of --number", number)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, &idnodev1.ReconciledNumber{Number: n, Key: key})
	}
	return numbers, nil
}

func readBooks(ctx context.Context, path string, in io.Reader) ([]*idnodev1.ReconciledNumber, error) {
	file, err := openInput(ctx, path, in)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // It is only read.
	numbers, err := parseBooks(file)
	if err == nil && len(numbers) == 0 {
		err = errors.New("it has no numbers")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return numbers, nil
}

// reconcile makes the calls in sequence and prints the numbers' new states.
func reconcile(ctx context.Context, s *clusterClient, send sending, msg *idnodev1.ReconcileNumbersRequest,
	numbers []*idnodev1.ReconciledNumber,
) error {
	done := 0
	for _, part := range partsOf(numbers) {
		msg.Numbers = part
		res, err := seriesVia(send).ReconcileNumbers(ctx, msg)
		if err != nil && done > 0 {
			fmt.Fprintf(s.stderr, "%d numbers were reconciled before this: the same command again is safe\n", done)
		}
		if err := s.out.numbers(err, res); err != nil {
			return err
		}
		done += len(part)
	}
	return nil
}

// partsOf cuts what the books have into what calls hold.
func partsOf(numbers []*idnodev1.ReconciledNumber) (parts [][]*idnodev1.ReconciledNumber) {
	for rest := numbers; len(rest) > 0; {
		size, n := 0, 0
		for n < min(len(rest), reconciledAtOnce) && size <= reconciledBytes {
			size += len(rest[n].GetKey())
			n++
		}
		parts, rest = append(parts, slices.Clip(rest[:n])), rest[n:]
	}
	return parts
}

// booksColumns is the first line of a file that says what the books have.
var booksColumns = []string{"number", "key"}

// parseBooks reads such a file: a line for each number of a scope, without a key if no
// document has it.
func parseBooks(r io.Reader) (numbers []*idnodev1.ReconciledNumber, err error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord, in.ReuseRecord = len(booksColumns), true
	head, err := in.Read()
	if err != nil && !errors.Is(err, csv.ErrFieldCount) {
		return nil, fmt.Errorf("it has no first line: %w", err)
	}
	head[0] = strings.TrimPrefix(head[0], "\ufeff") // Some programs put it before everything.
	if !slices.Equal(head, booksColumns) {
		return nil, errors.New("its first line must be number,key, with a comma")
	}
	lines := map[int64]int{}
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return numbers, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := in.FieldPos(0)
		n, err := strconv.ParseInt(row[0], 10, 64)
		switch {
		case err != nil || n < 1:
			return nil, fmt.Errorf("line %d: %q is no number from 1 on", line, row[0])
		case lines[n] > 0:
			return nil, fmt.Errorf("line %d: number %d is in line %d too", line, n, lines[n])
		case !utf8.ValidString(row[1]):
			return nil, fmt.Errorf("line %d: the key is not UTF-8", line)
		}
		lines[n] = line
		numbers = append(numbers, &idnodev1.ReconciledNumber{Number: n, Key: row[1]})
	}
}
