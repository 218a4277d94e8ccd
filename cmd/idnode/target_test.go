package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/idnode/idnode/backup"
	"github.com/idnode/idnode/client/idnodev1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// backupNode gives one backup, in pieces.
type backupNode struct {
	idnodev1.UnimplementedAdminServiceServer
	data []byte
}

func (n backupNode) Backup(_ *idnodev1.BackupRequest, stream grpc.ServerStreamingServer[idnodev1.BackupResponse]) error {
	for piece := n.data; len(piece) > 0; {
		size := min(len(piece), 100)
		if err := stream.Send(&idnodev1.BackupResponse{Data: piece[:size]}); err != nil {
			return err
		}
		piece = piece[size:]
	}
	return nil
}

// aBackup is a backup with one identity.
func aBackup(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := backup.NewWriter(&file, &raftlogv1.BackupHeader{ClusterId: bytes.Repeat([]byte{7}, 16), LogIndex: 42, NodeTag: "A"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*raftlogv1.SnapshotRecord{
		{Record: &raftlogv1.SnapshotRecord_Database{Database: "default"}},
		{Record: &raftlogv1.SnapshotRecord_Identity{Identity: &raftlogv1.IdentityRecord{Name: "invoices", Last: 7}}},
	} {
		if err := w.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestBackupToTheStandardOutput: the bytes of the backup and nothing else; what is
// damaged is noticed.
func TestBackupToTheStandardOutput(t *testing.T) {
	whole := aBackup(t)
	node := serveBackup(t, whole)
	got := command(t, "backup", "-", "--endpoint", unusedAddr(t), "--endpoint", node)
	if got.code != exitOK || got.stdout != string(whole) {
		t.Errorf("backup: exit code %d, %d bytes of %d: %s", got.code, len(got.stdout), len(whole), got.stderr)
	}
	if got := command(t, "backup", "-", "--endpoint", serveBackup(t, whole[:len(whole)-1])); got.code != exitFailed {
		t.Errorf("a backup that was cut off: %+v", got)
	}
	got = command(t, "export", "-", "--form", "csv", "--endpoint", node)
	if got.code != exitOK || got.stdout != "database,kind,guarded name,value\ndefault,identity,invoices,7\n" ||
		!strings.Contains(got.stderr, "1 counters") || !strings.Contains(got.stderr, "left out: series, pools,") {
		t.Errorf("export: %+v", got)
	}
}

// TestFromTheStandardInput: - is it for every command that reads a file, and no copy is left.
func TestFromTheStandardInput(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	whole, node := string(aBackup(t)), " --endpoint "+restored(t, true).addr
	for line, tt := range map[string]struct{ input, want string }{
		"backup inspect -":                              {whole, "1 identity,"},
		"export - --form csv --from -" + node:           {whole, "default,identity,invoices,7"},
		"restore - --yes --skip-ahead 5" + node:         {whole, "of log index 42 into cluster"},
		"import - --form csv --yes" + node:              {"database,kind,name,value\nshop,identity,invoices,7\n", "4 counters raised"},
		"restore - --skip-ahead 5" + node:               {whole, "say --yes"},
		"import - --form csv --yes --timeout 5s" + node: {"database,kind,name,value\nshop,identity,M\xfcller,7\n", "line 2, column 15"},
	} {
		var out strings.Builder
		code := run(t.Context(), strings.Fields(line), strings.NewReader(tt.input), &out, &out, nil)
		if failed := strings.Contains(tt.want, "column") || strings.Contains(tt.want, "--yes"); (code != exitOK) != failed ||
			!strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: exit code %d: %s, want %q", line, code, out.String(), tt.want)
		}
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
	if got := command(t, "import", "/proc/self/status", "--yes"); got.code != exitFailed ||
		!strings.Contains(got.stderr, "--form csv reads a list") {
		t.Errorf("%+v", got)
	}
	a := &app{stdout: io.Discard, stderr: io.Discard, toTerminal: true}
	if code := a.run(t.Context(), []string{"backup", "-"}, nil); code != exitUsage {
		t.Errorf("a backup at a terminal has exit code %d", code)
	}
}

// TestAnExportSaysWhichDatabasesItLeavesOut: RavenDB's form has one.
func TestAnExportSaysWhichDatabasesItLeavesOut(t *testing.T) {
	file := seriesBackup(t, nil, nil) // Of the databases "default" and "shop".
	for line, want := range map[string]bool{"--form ravendb": true, "--form ravendb --database shop": false, "--form csv": false} {
		got := command(t, append([]string{"export", "-", "--from", file}, strings.Fields(line)...)...)
		if said := strings.Contains(got.stderr, "left out: 1 other databases: "); got.code != exitOK || said != want {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// TestAnImportInsistsOnlyWhereANodeIs: it sends nothing where none answers.
func TestAnImportInsistsOnlyWhereANodeIs(t *testing.T) {
	node := newFakeNode(t, refuse(failure(t, codes.Unavailable, "STOPPING", "bye")))
	file := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(file, []byte("database,kind,name,value\nshop,identity,invoices,7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := command(t, "import", file, "--yes", "--endpoint", node.addr); got.code != exitUnavailable || len(node.requests()) != 1 {
		t.Errorf("%+v, and %d calls", got, len(node.requests()))
	}
}

// TestAFolderThatIsNotThere: the error names the file that was asked for.
func TestAFolderThatIsNotThere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "none", "x")
	got := command(t, "backup", file, "--endpoint", serveBackup(t, aBackup(t)))
	if want := "idnode: open " + file + ": no such file or directory\n"; got.code != exitFailed || got.stderr != want {
		t.Errorf("%+v, want %q", got, want)
	}
}

// TestOnlyFilesAreReplaced: a device, a pipe or a folder is no place for a backup,
// whatever was confirmed.
func TestOnlyFilesAreReplaced(t *testing.T) {
	dir := t.TempDir()
	device := filepath.Join(dir, "device")
	if err := os.Symlink(os.DevNull, device); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{dir, device, pipe, os.DevNull, "/dev/full"} {
		for _, name := range []string{"backup", "export"} {
			got := command(t, name, target, "--yes", "--endpoint", serveBackup(t, aBackup(t)))
			if got.code != exitUsage || !strings.Contains(got.stderr, "no regular file") {
				t.Errorf("%s %s: %+v", name, target, got)
			}
		}
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode()&os.ModeDevice == 0 {
		t.Fatalf("%s was replaced: %v %v", os.DevNull, info, err)
	}
}

// full is an output that takes nothing more, as a full disk does.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestAFullOutputIsAnError: a result that cannot be written is none, whatever was done
// before. Another endpoint would not help, and is not asked.
func TestAFullOutputIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	node := serveBackup(t, aBackup(t))
	for _, args := range [][]string{
		{"backup", "-"},
		{"backup", "-", "-v"},
		{"backup", file},
		{"backup", "inspect", file},
		{"export", "-", "--form", "csv"},
		{"export", "-", "--form", "ravendb"},
		{"export", file + ".csv"},
		{"export", file + ".csv", "-o", "json", "--yes"},
		{"version"},
		{"serve", "--print-config", "--data-dir", "data", "--tag", "A"},
	} {
		var stderr bytes.Buffer
		env := []string{"IDNODE_ENDPOINTS=" + node + "," + unusedAddr(t)}
		if args[0] == "serve" {
			env = nil
		}
		code := run(t.Context(), args, strings.NewReader(""), full{}, &stderr, env)
		if text := stderr.String(); code != exitFailed || strings.Count(text, "\n") != 1 || !strings.Contains(text, "no space left") ||
			strings.Contains(text, "tried") {
			t.Errorf("%s: exit code %d: %s", args, code, text)
		}
	}
}

// serveBackup starts a node that gives a backup, and returns its address.
func serveBackup(t *testing.T, data []byte) string {
	t.Helper()
	srv := grpc.NewServer()
	idnodev1.RegisterAdminServiceServer(srv, backupNode{data: data})
	return serveGRPC(t, srv)
}
