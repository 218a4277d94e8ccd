package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/transfer/counterfile"
)

// exportBackup writes the counters of a backup into a file, or to the standard output.
func exportBackup(s *clusterClient, from, path, form string, a *app) error {
	b, err := openBackup(from)
	if err != nil {
		return err
	}
	if path == standardOutput {
		out := bufio.NewWriter(a.stdout)
		written, left, err := export(b, out, path, form, s.database)
		sayExported(a.stderr, b, "standard output", form, written, left)
		return errors.Join(err, out.Flush())
	}
	draft, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft.Name()) }() // Gone already when all went well.
	written, left, err := export(b, draft, path, form, s.database)
	if err := errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return err
	}
	if err := likeReplaced(draft.Name(), path); err != nil {
		return err
	}
	if err := moveFile(draft.Name(), path); err != nil {
		return err
	}
	if !s.out.json {
		sayExported(s.out.w, b, path, form, written, left)
		return nil
	}
	s.out.object(b.info)
	return nil
}

func sayExported(w io.Writer, b *backupFile, path, form string, written, left int) {
	fmt.Fprintf(w, "%s: %d counters and claims of log index %d, as %s\n", path, written, b.info.GetLogIndex(), form)
	if left > 0 {
		fmt.Fprintf(w, "left out: %d claims, which RavenDB does not have\n", left)
	}
}

// counterWriter writes a form.
type counterWriter interface {
	Write(c counterfile.Counter) error
	Close() error
}

// export writes one database, or with CSV all if none is named, and returns how
// many counters that were, and how many claims were left out.
func export(b *backupFile, to io.Writer, path, form, database string) (written, left int, err error) {
	if form == formCSV {
		w, err := counterfile.NewCSVWriter(to)
		if err != nil {
			return 0, 0, err
		}
		written, err = exportKinds(b, w, docid.Fold(database), func(counterfile.Kind) bool { return true })
		return written, 0, errors.Join(err, w.Close())
	}
	database = docid.Fold(cmp.Or(database, docid.DefaultDatabase))
	if ext := strings.ToLower(filepath.Ext(path)); ext == ".gz" || ext == ".ravendbdump" {
		zip := gzip.NewWriter(to)
		defer func() { err = errors.Join(err, zip.Close()) }()
		to = zip
	}
	w := counterfile.NewRavenDBWriter(to)
	// Its form has HiLo counters before identities.
	for _, hilos := range []bool{true, false} {
		n, failed := exportKinds(b, w, database, func(k counterfile.Kind) bool {
			return k != counterfile.Claim && hilos == (k == counterfile.HiLo)
		})
		if written += n; failed != nil {
			return written, 0, failed
		}
	}
	err = b.counters(func(c counterfile.Counter) error {
		if c.Database == database && c.Kind == counterfile.Claim {
			left++
		}
		return nil
	})
	return written, left, errors.Join(err, w.Close())
}

// exportKinds writes some kinds of counters of a database, or of all if it is
// empty.
func exportKinds(b *backupFile, w counterWriter, database string, kinds func(counterfile.Kind) bool) (written int, err error) {
	err = b.counters(func(c counterfile.Counter) error {
		if database != "" && c.Database != database || !kinds(c.Kind) {
			return nil
		}
		written++
		return w.Write(c)
	})
	return written, err
}
