package check_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/idnode/idnode/test/history"
	"github.com/idnode/idnode/test/history/check"
)

// Whatever a file holds, there is a verdict, and the same one each time.
func FuzzStream(f *testing.F) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 2))
		mix := randomTraffic(r)
		mix.releases = mix.claims
		f.Add([]byte(show(mutate(r, mix, randomHistory(r, mix)))))
		f.Add([]byte(show(randomHiLo(r))))
	}
	f.Add([]byte(`{"kind":"seed","value":-9223372036854775808,"force":true,"result":-9223372036854775808,"call":0,"return":1,"outcome":"ok"}
{"kind":"next","call":0,"return":1,"outcome":"unknown"}
{"kind":"claim","name":"","call":0,"return":1,"outcome":"unknown","value":3}
{"kind":"next","blocks":[[9223372036854775807,9223372036854775807]],"call":2,"return":3,"outcome":"ok"}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		first, err := check.Stream(history.Read(bytes.NewReader(file)), check.Options{Longest: 50})
		if err != nil {
			return
		}
		again, err := check.Stream(history.Read(bytes.NewReader(file)), check.Options{Longest: 50})
		if err != nil {
			t.Fatal(err)
		}
		var a, b bytes.Buffer
		for w, r := range map[io.Writer]*check.Report{&a: first, &b: again} {
			if err := r.Write(w, nil); err != nil {
				t.Fatal(err)
			}
		}
		if a.String() != b.String() {
			t.Errorf("one history, two verdicts:\n%s\n%s", a.String(), b.String())
		}
	})
}
