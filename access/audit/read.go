package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// maxLine is the longest line that is written and read: far above the longest records,
// those of roles, with two tables.
const maxLine = 32 << 20

// Found is the content of a log.
type Found struct {
	// Records is the number of complete lines in the chain, up to the end of the log.
	Records uint64
	// Earlier is the number of lines in files before this log, which continues their chain; 0 if it
	// begins a chain.
	Earlier uint64
	// First and Last are the times of the first and the last line.
	First, Last time.Time
	// Head is the hash of the last line; empty without lines.
	Head string
	// Torn is the number of bytes after the last complete line: a crash left them.
	Torn int64
	// bytes is where the last whole line ends.
	bytes int64
	// earlierHead is the hash of the last line before this log.
	earlierHead string
	// seen has the hashes looked for that were found.
	seen map[string]bool
}

// Has reports whether a line has a hash that was passed to Verify.
func (f Found) Has(hash string) bool { return f.seen[hash] }

// Verify reads a log and checks that each line follows from the line before it. The error wraps
// ErrBroken and names the first line that does not, or is r's. It also looks for lines with the
// given hashes, which were kept elsewhere: if found, the file has the same beginning as then.
func Verify(r io.Reader, hashes ...string) (Found, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	f := Found{seen: map[string]bool{}}
	for {
		text, err := readLine(in)
		if errors.Is(err, io.EOF) {
			f.Torn = int64(len(text))
			return f, nil
		}
		if err != nil {
			return f, err
		}
		if err := f.check(text); err != nil {
			return f, fmt.Errorf("%w in line %d: %w", ErrBroken, f.Records+1, err)
		}
		for _, hash := range hashes {
			f.seen[hash] = f.seen[hash] || hash == f.Head || hash == f.earlierHead
		}
	}
}

// readLine returns the next line with its end, or the rest with io.EOF.
func readLine(in *bufio.Reader) ([]byte, error) {
	var text []byte
	for {
		part, err := in.ReadSlice('\n')
		text = append(text, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, err
		}
		if len(text) > maxLine {
			return nil, fmt.Errorf("%w: a line has more than %d bytes", ErrBroken, maxLine)
		}
	}
}

// check checks a line and makes it the last.
func (f *Found) check(text []byte) error {
	cut := len(text) - hashBytes
	if cut < 0 || !bytes.HasPrefix(text[cut:], []byte(hashKey)) || !bytes.HasSuffix(text, []byte(hashEnd)) {
		return errors.New("it has no hash")
	}
	body := append(bytes.Clone(text[:cut]), '}')
	hash := string(text[cut+len(hashKey) : len(text)-len(hashEnd)])
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != hash {
		return errors.New("its hash does not match its content: it was changed")
	}
	var l line
	if err := json.Unmarshal(body, &l); err != nil {
		return err
	}
	if f.bytes == 0 && l.Event == EventContinued && l.Seq > 0 {
		f.Records, f.Earlier, f.Head, f.earlierHead = l.Seq-1, l.Seq-1, l.Prev, l.Prev
	}
	if l.Seq != f.Records+1 || l.Prev != f.Head {
		return fmt.Errorf("it is number %d and does not follow the line before it", l.Seq)
	}
	if f.bytes == 0 {
		f.First = l.Time
	}
	f.Records, f.Last, f.Head, f.bytes = l.Seq, l.Time, hash, f.bytes+int64(len(text))
	return nil
}

// tailBytes is how much of the end of a file Tail reads.
const tailBytes = 256 << 10

// Tail returns the newest lines, at most n, oldest first: of the last 256 KiB of the file at the
// path, and only complete lines. It waits for no write. One Tail reads at a time; when ctx ends
// first, the reading continues in the background.
func (l *Log) Tail(ctx context.Context, n int) ([]json.RawMessage, error) {
	var lines []json.RawMessage
	err := inTurn(ctx, l.reading, func() (err error) {
		lines, err = tail(l.path, n)
		return err
	})
	if err != nil {
		return nil, err
	}
	return lines, nil
}

func tail(path string, n int) ([]json.RawMessage, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	defer func() { _ = file.Close() }() // It was only read.
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	text, err := io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-tailBytes), tailBytes))
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	lines := []json.RawMessage{}
	for line := range bytes.Lines(text) {
		if json.Valid(line) {
			lines = append(lines, bytes.TrimSpace(line))
		}
	}
	return lines[max(0, len(lines)-n):], nil
}
