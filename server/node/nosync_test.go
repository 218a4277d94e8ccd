package node

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/spf13/pflag"
	"go.etcd.io/bbolt"

	"github.com/idnode/idnode/cluster/store/wal"
	"github.com/idnode/idnode/internal/bytesize"
	"github.com/idnode/idnode/internal/freeport"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/test/tier"
)

// TestNoSettingLeavesOutASync is promise 7's "no switch weakens this": with each
// setting at its extremes, all files of the started node are synced.
func TestNoSettingLeavesOutASync(t *testing.T) {
	startSynced(t)
	t.Run("extremes", func(t *testing.T) {
		tier.Long(t)
		tried := 0
		for name, values := range extremes(t) {
			for _, value := range values {
				tried++
				t.Run(name+"="+value, func(t *testing.T) { startSynced(t, name, value) })
			}
		}
		if tried < 25 {
			t.Errorf("only %d values were tried", tried)
		}
	})
}

// startSynced starts a node with a setting, and looks into what it has opened.
func startSynced(t *testing.T, setting ...string) {
	t.Helper()
	c, err := loadWith(t, setting...)
	if err != nil {
		t.Fatal(err)
	}
	n, err := New(Options{Config: c})
	if err != nil {
		t.Fatal(err)
	}
	err = n.cluster.Start(t.Context())
	if ended := n.release(); err != nil || ended != nil {
		t.Fatal(err, ended)
	}
	// The node has ended, so nothing of it changes any more.
	s := switches{seen: map[unsafe.Pointer]bool{}, found: map[reflect.Type]int{}}
	s.walk(reflect.ValueOf(n.cluster), "cluster")
	s.walk(reflect.ValueOf(n.counters), "counters")
	if len(s.on) > 0 {
		t.Errorf("syncs are left out by %v", s.on)
	}
	const wantBolt = 2 // raft.db and etags.db
	if s.found[reflect.TypeFor[bbolt.DB]()] != wantBolt || s.found[reflect.TypeFor[wal.Config]()] == 0 {
		t.Errorf("the node's files were not all looked at: %v", s.found)
	}
}

// loadWith loads the configuration of a node alone, with settings.
func loadWith(t *testing.T, settings ...string) (*config.Config, error) {
	t.Helper()
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.AddFlags(fs)
	all := append([]string{
		"tag", "A", "single-node", "true", "data-dir", filepath.Join(t.TempDir(), "A"),
		"grpc", freeport.For(t), "raft", freeport.For(t), "http", freeport.For(t),
	}, settings...)
	for i := 0; i < len(all); i += 2 {
		if err := fs.Set(all[i], all[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	return config.Load(fs, nil)
}

// untried are the switches with which a node alone does not start: it would wait for
// others, or need a certificate.
var untried = []string{"single-node=false", "watcher=true"}

// extremes are, of each setting that is a switch or a size, the lowest and the highest
// value with which a node starts.
func extremes(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.AddFlags(fs)
	fs.VisitAll(func(f *pflag.Flag) {
		var show func(int64) string
		standard := int64(0)
		switch f.Value.Type() {
		case "bool":
			for _, value := range []string{"false", "true"} {
				if !slices.Contains(untried, f.Name+"="+value) {
					all[f.Name] = append(all[f.Name], value)
				}
			}
			return
		case "duration":
			show = func(n int64) string { return time.Duration(n).String() }
			d, _ := time.ParseDuration(f.DefValue)
			standard = int64(d)
		case "size":
			show = func(n int64) string { return strconv.FormatInt(n, 10) }
			size, _ := bytesize.Parse(f.DefValue)
			standard = int64(size)
		case "int", "uint64":
			show = func(n int64) string { return strconv.FormatInt(n, 10) }
			standard, _ = strconv.ParseInt(f.DefValue, 10, 64)
		default:
			return
		}
		for _, end := range []int64{0, math.MaxInt64} {
			all[f.Name] = append(all[f.Name], show(furthest(standard, end, func(n int64) bool {
				_, err := loadWith(t, f.Name, show(n))
				return err == nil
			})))
		}
	})
	return all
}

// furthest is the last value on the way from good to end that is accepted.
func furthest(good, end int64, accepted func(int64) bool) int64 {
	if accepted(end) {
		return end
	}
	for bad := end; ; {
		middle := good + (bad-good)/2
		switch {
		case middle == good || middle == bad:
			return good
		case accepted(middle):
			good = middle
		default:
			bad = middle
		}
	}
}

// switches are the fields that leave out syncs, of all that can be reached from a value.
type switches struct {
	seen  map[unsafe.Pointer]bool
	found map[reflect.Type]int
	on    []string
}

// own are the packages of whose values the fields are looked at.
var own = []string{"github.com/idnode/idnode/", "github.com/hashicorp/raft-boltdb", "go.etcd.io/bbolt", "sync/atomic"}

func (s *switches) walk(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Interface:
		s.walk(v.Elem(), path)
	case reflect.Pointer:
		if v.IsNil() || s.seen[v.UnsafePointer()] {
			return
		}
		s.seen[v.UnsafePointer()] = true
		s.walk(v.Elem(), path)
	case reflect.Slice, reflect.Array:
		if k := v.Type().Elem().Kind(); k != reflect.Struct && k != reflect.Pointer && k != reflect.Interface {
			return
		}
		for i := range v.Len() {
			s.walk(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Struct:
		s.fields(v, path)
	}
}

func (s *switches) fields(v reflect.Value, path string) {
	t := v.Type()
	if !slices.ContainsFunc(own, func(p string) bool { return strings.HasPrefix(t.PkgPath()+"/", p) || strings.HasPrefix(t.PkgPath(), p) }) {
		return
	}
	if strings.HasPrefix(t.String(), "atomic.Pointer[") {
		// Its first field, an array of no pointers, tells the type that the last one hides.
		if p := v.FieldByName("v").UnsafePointer(); p != nil {
			s.walk(reflect.NewAt(t.Field(0).Type.Elem().Elem(), p), path)
		}
		return
	}
	s.found[t]++
	for i := range t.NumField() {
		name := path + "." + t.Field(i).Name
		switch strings.ToLower(t.Field(i).Name) {
		case "nosync", "nogrowsync":
			if v.Field(i).Bool() {
				s.on = append(s.on, name)
			}
		default:
			s.walk(v.Field(i), name)
		}
	}
}
