package transfer

import (
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/transfer/counterfile"
)

// Form is the form of a file that lists counters.
type Form string

// The forms, by their names on the command line.
const (
	// RavenDB is RavenDB's export of a database, packed or not.
	RavenDB Form = "ravendb"
	// CSV has a line for each counter.
	CSV Form = "csv"
)

// ReadCounters reads a whole file. What names no database is of the given one.
func ReadCounters(path string, form Form, database string) (all []counterfile.Counter, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // It was only read.
	read := counterfile.ReadRavenDB
	if form == CSV {
		read = counterfile.ReadCSV
	}
	err = read(file, func(c counterfile.Counter) error {
		if c.Database == "" {
			c.Database = database
		}
		all = append(all, c)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

type counterWriter interface {
	Write(c counterfile.Counter) error
	Close() error
}

// Export writes the counters of one database, or with CSV of all if none is named; with
// SeriesCSV the numbers of series in their place. The form RavenDB may be packed, and has no
// claims. It returns how many lines were written, and how many claims were left out.
func (b *Backup) Export(to io.Writer, form Form, database string, packed bool) (written, left int, err error) {
	if form == SeriesCSV {
		written, err = b.exportSeries(to, docid.Fold(database))
		return written, 0, err
	}
	if form == CSV {
		w, err := counterfile.NewCSVWriter(to)
		if err != nil {
			return 0, 0, err
		}
		written, err = b.exportKinds(w, docid.Fold(database), func(counterfile.Kind) bool { return true })
		return written, 0, errors.Join(err, w.Close())
	}
	database = docid.Fold(cmp.Or(database, docid.DefaultDatabase))
	if packed {
		zip := gzip.NewWriter(to)
		defer func() { err = errors.Join(err, zip.Close()) }()
		to = zip
	}
	w := counterfile.NewRavenDBWriter(to)
	// Its form has HiLo counters before identities.
	for _, hilos := range []bool{true, false} {
		n, failed := b.exportKinds(w, database, func(k counterfile.Kind) bool {
			return k != counterfile.Claim && hilos == (k == counterfile.HiLo)
		})
		if written += n; failed != nil {
			return written, 0, failed
		}
	}
	err = b.Counters(func(c counterfile.Counter) error {
		if c.Database == database && c.Kind == counterfile.Claim {
			left++
		}
		return nil
	})
	return written, left, errors.Join(err, w.Close())
}

// exportKinds writes some kinds of counters of a database, or of all if it is empty.
func (b *Backup) exportKinds(w counterWriter, database string, kinds func(counterfile.Kind) bool) (written int, err error) {
	err = b.Counters(func(c counterfile.Counter) error {
		if database != "" && c.Database != database || !kinds(c.Kind) {
			return nil
		}
		written++
		return w.Write(c)
	})
	return written, err
}
