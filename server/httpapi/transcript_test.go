package httpapi

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the transcripts with what is answered now")

// TestTranscripts replays conversations with three nodes. Each is a list of
// paragraphs: a request, and under it the answer that must come. Lines with a
// hash are comments. Beside requests there are
//
//	at B                 the requests after it go to node B
//	clock +30s           time passes
//	fault no-quorum      no operation is applied
//	fault unknown        operations are applied, and their answers lost
//	fault none
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := newTranscript(t).play(string(data))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			wantLines, gotLines := strings.Split(string(data), "\n"), strings.Split(got, "\n")
			for i := range max(len(wantLines), len(gotLines)) {
				if i >= len(wantLines) || i >= len(gotLines) || wantLines[i] != gotLines[i] {
					t.Fatalf("%s:%d: got\n%s\nwant\n%s", file, i+1, lineAt(gotLines, i), lineAt(wantLines, i))
				}
			}
		})
	}
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "the end"
}

// transcript is a conversation in progress.
type transcript struct {
	t     *testing.T
	world *world
	nodes map[string]*Server
	at    string
}

func newTranscript(t *testing.T) *transcript {
	w := newWorld(t)
	s := &transcript{t: t, world: w, nodes: make(map[string]*Server), at: "A"}
	for _, tag := range []string{"A", "B", "C"} {
		s.nodes[tag] = w.newServer(tag, Config{}, "")
	}
	return s
}

// play returns the transcript with the answers that come now.
func (s *transcript) play(text string) string {
	var out strings.Builder
	for _, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		for line := range strings.SplitSeq(paragraph, "\n") {
			if verb, rest, _ := strings.Cut(line, " "); strings.HasPrefix(line, "#") || s.control(verb, rest) {
				fmt.Fprintln(&out, line)
			} else if strings.Contains(rest, "/") && strings.ToUpper(verb) == verb && !isAnswer(verb) {
				fmt.Fprintf(&out, "%s\n%s\n", line, s.request(verb, rest))
			}
		}
		fmt.Fprintln(&out)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func isAnswer(word string) bool { return word[0] >= '0' && word[0] <= '9' }

// control does what a line without a request asks for.
func (s *transcript) control(verb, rest string) bool {
	switch verb {
	case "at":
		s.at = rest
	case "clock":
		d, err := time.ParseDuration(rest)
		if err != nil {
			s.t.Fatal(err)
		}
		s.world.Advance(d)
	case "fault":
		faults := map[string]error{"none": nil, "no-quorum": errNoQuorum, "unknown": errUnknown}
		s.world.fail(faults[rest], rest == "unknown")
	default:
		return false
	}
	return true
}

// request sends a line: a target, and headers as Name=value behind it.
func (s *transcript) request(method, rest string) string {
	words := strings.Split(rest, "  ")
	var headers []string
	for _, header := range words[1:] {
		name, value, _ := strings.Cut(header, "=")
		headers = append(headers, name, value)
	}
	w := do(s.nodes[s.at], method, words[0], headers...)
	s.checkHeaders(w)
	return describe(s.t, w, words[0])
}

func (s *transcript) checkHeaders(w *httptest.ResponseRecorder) {
	h := w.Header()
	if h.Get("ETag") != "" {
		s.t.Error("an answer with an ETag, which clients would keep")
	}
	if w.Body.Len() > 0 && (h.Get("Content-Type") != "application/json; charset=utf-8" || h.Get("Cache-Control") != "no-store") {
		s.t.Errorf("headers %v", h)
	}
}

// describe returns an answer on one line: an error by its type and message.
func describe(t *testing.T, w *httptest.ResponseRecorder, target string) string {
	line := fmt.Sprint(w.Code)
	if refresh := w.Header().Get("Refresh-Topology"); refresh != "" {
		line += " Refresh-Topology=" + refresh
	}
	if w.Code < 400 {
		return strings.TrimSpace(line + " " + w.Body.String())
	}
	var p problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("%s: %v: %s", target, err, w.Body)
	}
	if p.URL != strings.ToValidUTF8(target, "\ufffd") || p.Error != p.Type+": "+p.Message {
		t.Errorf("%s: %s", target, w.Body)
	}
	return line + " " + p.Type + " | " + p.Message
}
