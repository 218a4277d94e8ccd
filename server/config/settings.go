package config

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/idnode/idnode/internal/bytesize"
)

// configFlag names the file, as a flag or as a variable.
const configFlag = "config"

const peerName, joinName = "peer", "join"

type setting struct {
	name  string
	usage string
	// field points into the Config: *string, *bool, *int, *uint64, *bytesize.Size,
	// *time.Duration, *[]string, or *map[string]string.
	field any
}

type group struct {
	title    string
	settings []setting
}

// groups lists every setting of c, in the order in which they are shown.
func groups(c *Config) []group {
	return []group{
		{"Identity", []setting{
			{"tag", "node tag, 1 to 4 letters A to Z; empty when joining: the cluster gives one", &c.Tag},
			{"data-dir", "folder of this node's data, made if it is not there; needed", &c.DataDir},
			{"server-prefix", "prefix of this node's ranges, instead of its tag in the ids", &c.ServerPrefix},
		}},
		{"Cluster", []setting{
			{peerName, "TAG=HOST:PORT, the gRPC address of a first node; give all of them, this one included, the same on all " +
				"nodes", &c.Peer},
			{joinName, "HOST:PORT, the gRPC address of a member of the cluster to join; several allowed; with --peer, for nodes that " +
				"are not among the peers", &c.Join},
			{"cluster-id", "id of this node's cluster, which the log of the first start prints; with it no node begins another " +
				"one", &c.ClusterID},
			{"join-token-file", "file with the token to join by, from 'idnode cluster join-token'; - is the standard " +
				"input", &c.JoinTokenFile},
			{"single-node", "begin a cluster of this node alone, where --peer names no other", &c.SingleNode},
			{"watcher", "join without a vote, which 'idnode cluster promote' gives; only for a node that joins", &c.Watcher},
			{"max-log-format", "newest log format that this node reports; the cluster stays at it (0: all that it does " +
				"read)", &c.MaxLogFormat},
			{"trust-data", "start from a data directory that was set back to an older copy; only where nothing newer is left, and for " +
				"one start", &c.TrustData},
			{"stay-down", "instead of ending with exit code 4 or 5, or 2 because administrators or peers are missing, wait to be " +
				"stopped", &c.StayDown},
		}},
		{"Addresses", []setting{
			{"grpc", "address to listen on for gRPC", &c.GRPC},
			{"raft", "address to listen on for the other members", &c.Raft},
			{"http", "address to listen on for HTTP; empty for none", &c.HTTP},
			{"metrics", "address to listen on for /metrics, /livez and /readyz (default: they are on --http); " +
				"http://ADDRESS: without TLS and certificates", &c.Metrics},
			{"advertise-grpc", "where others reach gRPC (default: the entry in --peer, else --grpc)", &c.AdvertiseGRPC},
			{"advertise-raft", "where others reach Raft (default: --raft, with the host of --advertise-grpc if it has " +
				"none)", &c.AdvertiseRaft},
			{"advertise-http", "where others reach HTTP (default: --http, with the host of --advertise-grpc if it has " +
				"none)", &c.AdvertiseHTTP},
			{"http-host", "host name of a balancer or service under which HTTP is called without TLS, beside those that members " +
				"advertise; .example.org for all below it; several allowed", &c.HTTPHost},
		}},
		{"TLS", []setting{
			{"tls-cert", "certificate file (PEM); that of this node, by a URI idnode://*/node/TAG", &c.TLSCert},
			{"tls-key", "key file (PEM)", &c.TLSKey},
			{"tls-ca", "CA file (PEM); with it, clients must show a certificate", &c.TLSCA},
			{"admin", "certificate that may make dangerous calls without roles, several allowed; * for all; with TLS this or roles are " +
				"needed", &c.Admin},
			{"insecure", "allow listening without TLS on more than loopback", &c.Insecure},
		}},
		{"Calls", []setting{
			{"call-timeout", "bound of every call; it waits for a leader until 100ms before", &c.CallTimeout},
			{"reserve-for", "how long HiLo ranges go on while this node is cut off, from numbers granted in advance; 0 for not at " +
				"all", &c.ReserveFor},
			{"max-in-flight", "most calls in flight on the node; one caller has three quarters of what the others leave", &c.MaxInFlight},
			{"max-held-bytes", "bytes held for callers; one caller has half of what the others leave, and a connection for each 64 " +
				"KiB", &c.MaxHeldBytes},
		}},
		{"Raft", []setting{
			{"heartbeat-timeout", "how long a follower waits for its leader; Raft's other timeouts follow from it", &c.HeartbeatTimeout},
			{"leader-priority", "leadership goes to the voter with the greatest that has caught up; with 0 this node leads only if no " +
				"other voter can", &c.LeaderPriority},
			{"snapshot-bytes", "bytes of log entries after which a snapshot is taken, an entry counted as 4 KiB at " +
				"least", &c.SnapshotBytes},
		}},
		{"Storage", []setting{
			{"storage-watchdog", "how long one write to the log may take before the process ends; a leader transfers leadership after " +
				"a sixth of it", &c.StorageWatchdog},
			{"storage-low-mark", "bytes that must be free on the disk for anything to be proposed", &c.StorageLowMark},
		}},
		{"Log", []setting{
			{"audit", "file that records who changed the cluster, took numbers back, or was denied a call (default: none)", &c.Audit},
			{"log-level", "debug, info, warn or error", &c.LogLevel},
			{"log-format", "text or json", &c.LogFormat},
		}},
	}
}

func settings(c *Config) []setting {
	var all []setting
	for _, g := range groups(c) {
		all = append(all, g.settings...)
	}
	return all
}

// FlagGroup has the flags that are shown under a heading.
type FlagGroup struct {
	Title string
	Flags *pflag.FlagSet
}

const envPrefix = "IDNODE_"

// EnvName returns the variable of a setting.
func EnvName(name string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// ClientVariables returns the variables that only the client commands and the clients of applications read;
// `serve` leaves them alone, so that one environment serves both.
func ClientVariables() []string {
	return []string{"IDNODE_CONTEXT", "IDNODE_DATABASE", "IDNODE_ENDPOINTS", "IDNODE_HTTP_ENDPOINTS", "IDNODE_TLS_SERVER_NAME"}
}

// AddListFlags adds --config, and --peer for where members are now.
func AddListFlags(fs *pflag.FlagSet) {
	addConfigFlag(fs)
	fs.StringSlice(peerName, nil,
		"TAG=HOST:PORT, where the gRPC port of a member is now; the node's own list by default ("+EnvName(peerName)+")")
}

func addConfigFlag(fs *pflag.FlagSet) {
	fs.String(configFlag, "", "YAML file with settings ("+EnvName(configFlag)+")")
}

// AddFlags adds a flag for every setting, and --config. It returns all but that one, by headings.
func AddFlags(fs *pflag.FlagSet) (shown []FlagGroup) {
	addConfigFlag(fs)
	c := Default()
	for _, g := range groups(&c) {
		flags := pflag.NewFlagSet(g.title, pflag.ContinueOnError)
		flags.SortFlags = false
		for _, s := range g.settings {
			s.addFlag(flags)
		}
		fs.AddFlagSet(flags)
		shown = append(shown, FlagGroup{g.title, flags})
	}
	return shown
}

func (s setting) addFlag(fs *pflag.FlagSet) {
	switch field := s.field.(type) {
	case *string:
		fs.String(s.name, *field, s.usage)
	case *bool:
		fs.Bool(s.name, *field, s.usage)
	case *int:
		fs.Int(s.name, *field, s.usage)
	case *bytesize.Size:
		size := *field
		fs.Var(&size, s.name, s.usage)
	case *uint64:
		fs.Uint64(s.name, *field, s.usage)
	case *time.Duration:
		fs.Duration(s.name, *field, s.usage)
	case *[]string, *map[string]string:
		fs.StringSlice(s.name, nil, s.usage)
	default:
		panic(fmt.Sprintf("config: %s has a type without a flag: %T", s.name, s.field))
	}
}

// set parses what a flag, a variable or a file holds: a list for several values, else one text.
func (s setting) set(value any) error {
	list, err := asList(value)
	if err != nil {
		return err
	}
	switch field := s.field.(type) {
	case *[]string:
		*field = list
		return nil
	case *map[string]string:
		*field, err = asMap(list)
		return err
	}
	if _, isText := value.(string); !isText {
		return fmt.Errorf("%v: one value is wanted", value)
	}
	return s.setText(value.(string))
}

// setText parses one text. What the parsers themselves say is for programmers,
// so the error only shows the text and says what would do.
func (s setting) setText(text string) (err error) {
	wanted := "a whole number that is not too large"
	switch field := s.field.(type) {
	case *string:
		*field = text
	case *bool:
		wanted = "true or false"
		*field, err = strconv.ParseBool(text)
	case *int:
		*field, err = strconv.Atoi(text)
	case *bytesize.Size:
		return field.Set(text)
	case *uint64:
		wanted = "a whole number of at least 0 that is not too large"
		*field, err = strconv.ParseUint(text, 10, 64)
	case *time.Duration:
		wanted = "a duration such as 500ms or 2s"
		*field, err = time.ParseDuration(text)
	}
	if err != nil {
		return fmt.Errorf("%q is not %s", text, wanted)
	}
	return nil
}

// asList takes a list as it is, and splits a text at its commas.
func asList(value any) ([]string, error) {
	switch value := value.(type) {
	case []string:
		if len(value) == 0 {
			return nil, nil // one form of nothing, whatever it came from
		}
		return value, nil
	case string:
		var list []string
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
		return list, nil
	default:
		return nil, fmt.Errorf("%v: a text or a list is wanted", value)
	}
}

func asMap(list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	m := make(map[string]string, len(list))
	for _, entry := range list {
		key, value, ok := strings.Cut(entry, "=")
		if !ok || key == "" || value == "" {
			return nil, fmt.Errorf("%q is not NAME=VALUE", entry)
		}
		if _, twice := m[key]; twice {
			return nil, fmt.Errorf("%s is given twice", key)
		}
		m[key] = value
	}
	return m, nil
}

func fromMap(m map[string]string) []string {
	list := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, key+"="+m[key])
	}
	return list
}

// Print writes the configuration as a YAML file that gives it again, in the order of the flags.
func (c *Config) Print(w io.Writer) error {
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, s := range settings(c) {
		var value yaml.Node
		_ = value.Encode(s.printed()) // Texts, numbers and lists of them have a form.
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: s.name}, &value)
	}
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return fmt.Errorf("config: print: %w", err)
	}
	return encoder.Close()
}

func (s setting) printed() any {
	switch field := s.field.(type) {
	case *time.Duration:
		return field.String()
	case *bytesize.Size:
		return field.String()
	case *map[string]string:
		return fromMap(*field)
	case *[]string:
		return append([]string{}, *field...)
	default:
		return s.field
	}
}
