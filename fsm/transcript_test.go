package fsm

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/access/rights"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// TestTranscripts plays the conversations in testdata. Each directive is
//
//	log                           each line is an operation in an entry of its own
//	group from=A seq=1 [ack=0]    all lines are one group of A's newest session
//	show                          each line is a read
//	restart                       the state goes on from its snapshot
//	recover                       A goes on alone after a disaster
//	tick 30s                      the leader's clock
//
// and the lines are those that operation and show, below, understand.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		p := &transcript{testLog: newLog(t), sessions: map[string]uint64{}}
		p.state.cfg.MaxFormat = transcriptFormat
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			p.t = t
			return p.directive(d)
		})
	})
}

// transcriptFormat is one that members of transcripts can read, and this program cannot.
const transcriptFormat = 9

type transcript struct {
	*testLog
	sessions map[string]uint64 // newest by tag
}

func (p *transcript) directive(d *datadriven.TestData) string {
	var out strings.Builder
	switch d.Cmd {
	case "log":
		for _, line := range strings.Split(d.Input, "\n") {
			r := p.do(p.operation(line))
			p.note(line, r)
			fmt.Fprintf(&out, "%s: %s\n", line, p.show(r))
		}
	case "group":
		out.WriteString(p.group(d))
	case "show":
		for _, line := range strings.Split(d.Input, "\n") {
			fmt.Fprintf(&out, "%s: %s\n", line, p.read(line))
		}
	case "restart":
		index, hash := p.state.Hash()
		p.state = restored(p.t, snapshotOf(p.t, p.state))
		p.state.cfg.MaxFormat = transcriptFormat
		i, h := p.state.Hash()
		fmt.Fprintf(&out, "same index %v, same hash %v\n", i == index, h == hash)
	case "recover":
		p.recover(Recovery{Keep: []string{"A"}})
	case "tick":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			p.t.Fatal(err)
		}
		p.now = p.now.Add(by)
	default:
		p.t.Fatalf("unknown directive %q", d.Cmd)
	}
	if want := hashFromScratch(p.state.contents); want != p.state.contents.hash() {
		p.t.Fatalf("the hash is %x, from scratch %x", p.state.contents.hash(), want)
	}
	return out.String()
}

// note remembers the session that an announcement opened.
func (p *transcript) note(line string, r *raftlogv1.Result) {
	if w := words(line); w.verb == "announce" && r.GetRefusal() == nil {
		p.sessions[w.name(0)] = r.GetMember().GetSession()
	}
}

// group applies all lines as one group.
func (p *transcript) group(d *datadriven.TestData) string {
	var from string
	var seq, ack, session int
	d.ScanArgs(p.t, "from", &from)
	d.ScanArgs(p.t, "seq", &seq)
	session = int(p.sessions[from])
	if d.HasArg("ack") {
		d.ScanArgs(p.t, "ack", &ack)
	}
	if d.HasArg("session") {
		d.ScanArgs(p.t, "session", &session)
	}
	g := raftlog.Group{Origin: nodeNamed("node " + from), Session: uint64(session), Sequence: uint64(seq), Acknowledged: uint64(ack)}
	lines := strings.Split(d.Input, "\n")
	for _, line := range lines {
		g.Operations = append(g.Operations, encodeOperation(p.operation(line)))
	}
	r := p.apply(g)[0]
	if r.Status != raftlog.Applied {
		return r.Status.String() + "\n"
	}
	var out strings.Builder
	for i, line := range lines {
		fmt.Fprintf(&out, "%s: %s\n", line, p.show(p.result(r, i)))
	}
	return out.String()
}

// line is an operation in words: a verb, names, and options.
type line struct {
	verb    string
	names   []string
	options map[string]string
}

func words(s string) line {
	l := line{options: map[string]string{}}
	for _, w := range strings.Fields(s) {
		k, v, option := strings.Cut(w, "=")
		switch {
		case l.verb == "":
			l.verb = w
		case option:
			l.options[k] = v
		default:
			l.names = append(l.names, w)
		}
	}
	return l
}

// name returns the i-th name; "" is written for none at all.
func (l line) name(i int) string {
	if i >= len(l.names) || l.names[i] == `""` {
		return ""
	}
	return l.names[i]
}

func (l line) int(option string) int64 {
	n, _ := strconv.ParseInt(l.options[option], 10, 64)
	return n
}

func (l line) is(word string) bool {
	for _, n := range l.names {
		if n == word {
			return true
		}
	}
	return false
}

func (l line) number(i int) int64 {
	n, _ := strconv.ParseInt(l.name(i), 10, 64)
	return n
}

func (l line) text(option, otherwise string) string {
	if v, ok := l.options[option]; ok {
		return v
	}
	return otherwise
}

// numbers returns the options as numbers by name, without those named.
func (l line) numbers(without ...string) map[string]uint64 {
	m := map[string]uint64{}
	for k := range l.options {
		m[k] = uint64(l.int(k))
	}
	for _, k := range without {
		delete(m, k)
	}
	return m
}

// operation understands a line.
func (p *transcript) operation(s string) *raftlogv1.Operation {
	l := words(s)
	op := p.unkeyed(l)
	if op == nil {
		p.t.Fatalf("what is %q?", s)
	}
	if db, ok := l.options["db"]; ok {
		op.Database = db
	}
	if by, ok := l.options["by"]; ok {
		op.Principal = proto.String(strings.Trim(by, `"`))
	}
	if id, ok := l.options["id"]; ok {
		n, _ := strconv.Atoi(id)
		op.Request = key(n, uint64(l.int("fingerprint")))
		if _, retry := l.options["since"]; retry {
			op.Request.Retry, op.Request.Since = true, uint64(l.int("since"))
		}
		if op.Principal == nil && !l.is("unnamed") {
			op.Principal = proto.String("")
		}
	}
	return op
}

func (p *transcript) unkeyed(l line) *raftlogv1.Operation {
	switch l.verb {
	case "next":
		op := opNext(l.name(0), 1)
		if _, ok := l.options["count"]; ok {
			op.GetIdentityNext().Count = l.int("count")
		}
		op.GetIdentityNext().Separator = l.text("separator", "/")
		return op
	case "seed":
		op := opSeed(l.name(0), l.number(1), l.is("force"), nil)
		if _, ok := l.options["expected"]; ok {
			op.GetIdentitySeed().Expected = proto.Int64(l.int("expected"))
		}
		return op
	case "delete":
		return opDelete(l.name(0), l.is("forget"))
	case "hilo":
		return p.hilo(l)
	case "return":
		return opReturn(&raftlogv1.HiLoReturn{
			Tag: l.name(0), Low: l.int("low"), High: l.int("high"), Last: l.int("last"),
			Token: uint64(l.int("token")), CheckToken: !l.is("http"),
		})
	case "hilo-set":
		return opHiLoSetTo(l.name(0), l.number(1), l.int("expected"))
	case "claim":
		return opClaimID(l.name(0))
	case "release":
		return opReleaseID(l.name(0))
	case "set":
		return opSet(l.name(0), l.number(1))
	case "roles":
		return p.roles(l)
	}
	if o := p.series(l); o != nil {
		return o
	}
	if o := p.workers(l); o != nil {
		return o
	}
	return p.membership(l)
}

// joinToken understands a line of a token, the tag it is for, and how long it is valid.
func (p *transcript) joinToken(l line) *raftlogv1.Operation {
	hash := sha256.Sum256([]byte(l.name(0)))
	valid, err := time.ParseDuration(l.text("for", "1h"))
	if err != nil {
		p.t.Fatal(err)
	}
	return &raftlogv1.Operation{Op: &raftlogv1.Operation_JoinTokenCreate{JoinTokenCreate: &raftlogv1.JoinTokenCreate{
		TokenHash: hash[:], Tag: l.text("tag", ""), Watcher: l.is("watcher"), ValidNanos: int64(valid),
	}}}
}

// roles understands a line of roles, each as principal:rights:database:prefix, with a $
// behind a prefix that ends at a boundary and an @ before a name, and a limit on new names
// of every caller.
func (p *transcript) roles(l line) *raftlogv1.Operation {
	var list []rights.Role
	for i, name := range l.names {
		parts := strings.SplitN(name, ":", 4)
		grant := rights.Grant{Database: parts[2]}
		grant.Prefix, grant.Boundary = strings.CutSuffix(parts[3], "$")
		if name, ok := strings.CutPrefix(parts[3], "@"); ok {
			grant.Prefix, grant.Name = "", name
		}
		for _, word := range strings.Split(parts[1], ",") {
			for _, right := range rights.All.List() {
				if right.String() == word {
					grant.Rights |= right
				}
			}
		}
		list = append(list, rights.Role{Name: strconv.Itoa(i), Principals: []string{parts[0]}, Grants: []rights.Grant{grant}})
	}
	table := rights.Table{Roles: list}
	if names := l.int("new-names"); names != 0 {
		table.Limits = []rights.Limit{{Principals: []string{rights.Any}, NewNamesPerHour: names}}
	}
	data, err := rights.Encode(&table)
	if err != nil {
		p.t.Fatal(err)
	}
	set := &raftlogv1.RolesSet{Table: data}
	if _, ok := l.options["expected"]; ok {
		set.Expected = proto.Uint64(uint64(l.int("expected")))
	}
	return &raftlogv1.Operation{Op: &raftlogv1.Operation_RolesSet{RolesSet: set}}
}

// hilo understands a line whose idle=45s says how long ago the last range was.
func (p *transcript) hilo(l line) *raftlogv1.Operation {
	next := &raftlogv1.HiLoNext{
		Tag: l.name(0), Size: l.int("size"), LastSize: l.int("last-size"), LastMax: l.int("last-max"),
		Token: uint64(l.int("token")), ServerTag: l.text("server", "A"), ServerPrefix: l.text("prefix", ""),
		Label: strings.ReplaceAll(l.text("label", ""), `\n`, "\n"), Reserve: l.is("reserve"),
	}
	if idle, ok := l.options["idle"]; ok {
		by, err := time.ParseDuration(idle)
		if err != nil {
			p.t.Fatal(err)
		}
		next.HasLastRange, next.LastRangeUnixNano = true, p.now.Add(-by).UnixNano()
	}
	return opHiLo(next)
}

// membership understands lines on the cluster.
func (p *transcript) membership(l line) *raftlogv1.Operation {
	m := testMember(l.name(0))
	if node, ok := l.options["node"]; ok {
		m.Id = nodeNamed(node)
	}
	if _, ok := l.options["format"]; ok {
		m.LogFormat = uint32(l.int("format"))
	}
	m.GrpcAddress = l.text("at", m.GetGrpcAddress())
	m.Watcher = l.is("watcher")
	var data []byte
	switch l.verb {
	case "form":
		var members []*raftlogv1.Member
		for _, tag := range l.names {
			members = append(members, testMember(tag))
		}
		data = bootstrapOperation([]byte(l.text("cluster", string(testCluster))), members)
	case "add":
		add := &raftlogv1.MemberAdd{Member: m}
		if token, ok := l.options["token"]; ok {
			hash := sha256.Sum256([]byte(token))
			add.TokenHash = hash[:]
		}
		data = addOperation(add)
	case "join-token":
		return p.joinToken(l)
	case "announce":
		data = announceOperation(m)
	case "promote":
		data = promoteOperation(m.GetId())
	case "remove":
		data = removeOperation(l.name(0), 0)
	case "set-watcher":
		data = encodePayload(&raftlogv1.WatcherSet{Tag: l.name(0), Watcher: l.is("watcher"), MembershipIndex: uint64(l.int("judged"))})
	case "raise-format":
		data = formatRaiseOperation(uint32(l.number(0)))
	case "raise-etags":
		return opRaiseEtags(l.name(0), l.numbers())
	case "stop":
		return opCleanStop(l.name(0), uint64(l.int("start")), l.numbers("start"))
	default:
		return nil
	}
	op := &raftlogv1.Operation{}
	if err := proto.Unmarshal(data, op); err != nil {
		p.t.Fatal(err)
	}
	return op
}
