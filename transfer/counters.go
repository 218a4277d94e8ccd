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

// ReadCounters reads a whole file. Counters without a database belong to the given one.
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

// Export writes the counters of one database, or with CSV of all if the database is empty; with
// SeriesCSV it writes the numbers of series instead. The form RavenDB may be packed, and has no
// claims. It returns the number of lines written, and of claims left out.
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
		err = b.countersOf(docid.Fold(database), func(c counterfile.Counter) error {
			written++
			return w.Write(c)
		})
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
		left = 0
		err = b.countersOf(database, func(c counterfile.Counter) error {
			if c.Kind == counterfile.Claim {
				left++
			} else if hilos == (c.Kind == counterfile.HiLo) {
				written++
				return w.Write(c)
			}
			return nil
		})
		if err != nil {
			return written, 0, err
		}
	}
	return written, left, w.Close()
}

// countersOf calls each for the counters of a database, or of all if it is empty.
func (b *Backup) countersOf(database string, each counterfile.Each) error {
	return b.Counters(func(c counterfile.Counter) error {
		if database != "" && c.Database != database {
			return nil
		}
		return each(c)
	})
}
