package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/idnode/idnode/client/docid"
)

// ConfigFromEnv returns the Config that the environment describes, by the variables of the command
// line:
//
//	IDNODE_ENDPOINTS	gRPC addresses (host:7400), separated by commas
//	IDNODE_DATABASE	the default database
//	IDNODE_CLUSTER_ID	the cluster's id
//	IDNODE_TLS_CA	the file of the authorities (PEM); turns TLS on
//	IDNODE_TLS_CERT, IDNODE_TLS_KEY	the files of the client's certificate and its key (PEM)
//	IDNODE_TLS_SERVER_NAME	the name in the nodes' certificates, in place of each address's host
//
// An empty variable counts as none. It is an error, which names the variable, if there are no endpoints
// or if a value cannot be used. No file is opened before New.
func ConfigFromEnv() (Config, error) {
	list := os.Getenv("IDNODE_ENDPOINTS")
	if list == "" {
		return Config{}, configError(errors.New("client: IDNODE_ENDPOINTS has no addresses"))
	}
	value := func(parameter string) string {
		if parameter == "tls" { // The command line has no such flag.
			return ""
		}
		return os.Getenv(variable(parameter))
	}
	cfg, err := configOf(strings.Split(list, ","), os.Getenv("IDNODE_DATABASE"), value, variable)
	if err != nil {
		return Config{}, configError(fmt.Errorf("client: the environment: %w", err))
	}
	return cfg, nil
}

// variable returns the environment variable of a parameter.
func variable(parameter string) string {
	return "IDNODE_" + strings.ToUpper(strings.ReplaceAll(parameter, "-", "_"))
}

// parameters are those of a URL, each once.
var parameters = map[string]bool{
	"tls": true, "tls-ca": true, "tls-cert": true, "tls-key": true, "tls-server-name": true, "cluster-id": true,
}

// ParseURL returns the Config that a URL describes:
//
//	idnode://HOST:PORT,HOST:PORT/DATABASE?tls-ca=FILE&tls-cert=FILE&tls-key=FILE&tls-server-name=NAME&cluster-id=ID
//
// The addresses are gRPC addresses (host:7400). The database and all parameters may be missing. The
// parameters are called as the command line's flags; tls=true in place of tls-ca is TLS with the system's
// authorities. Percent-encoding is decoded, and a plus is a plus. What is unknown, repeated or empty is an
// error that names it, as are a user and a fragment. No file is opened before New.
func ParseURL(text string) (Config, error) {
	cfg, err := parseURL(text)
	if err != nil {
		return Config{}, configError(fmt.Errorf("client: the URL: %w", err))
	}
	return cfg, nil
}

func parseURL(text string) (Config, error) {
	rest, ours := strings.CutPrefix(text, "idnode://")
	switch {
	case strings.HasPrefix(text, "idnode+http://"):
		return Config{}, errors.New("idnode+http:// names HTTP addresses, and this client calls gRPC ones")
	case !ours:
		scheme, _, _ := strings.Cut(text, ":") // No more: the rest may have a password.
		return Config{}, fmt.Errorf("it begins with idnode://, not with %q", scheme)
	}
	if strings.Contains(rest, "#") {
		return Config{}, errors.New("it has a fragment")
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, path, _ := strings.Cut(rest, "/")
	if strings.Contains(hosts, "@") {
		return Config{}, errors.New("it has a user or a password")
	}
	database, err := url.PathUnescape(path)
	if err != nil || strings.Contains(path, "/") {
		return Config{}, fmt.Errorf("%q is no database", path)
	}
	values, err := parseQuery(query)
	if err != nil {
		return Config{}, err
	}
	var endpoints []string
	if hosts != "" {
		endpoints = strings.Split(hosts, ",")
	}
	return configOf(endpoints, database, func(parameter string) string { return values[parameter] },
		func(parameter string) string { return parameter })
}

// parseQuery returns the parameters of a URL.
func parseQuery(query string) (map[string]string, error) {
	values := make(map[string]string)
	if query == "" {
		return values, nil
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, text, _ := strings.Cut(pair, "=")
		value, err := url.PathUnescape(text)
		switch {
		case !parameters[name]:
			return nil, fmt.Errorf("there is no parameter %q", name)
		case values[name] != "":
			return nil, fmt.Errorf("the parameter %s is repeated", name)
		case err != nil, value == "":
			return nil, fmt.Errorf("the parameter %s has no value, or a wrong one", name)
		case name == "tls" && value != "true":
			return nil, errors.New("the parameter tls is true, or missing")
		}
		values[name] = value
	}
	return values, nil
}

// configOf returns a Config of texts; called names a parameter as its user does.
func configOf(endpoints []string, database string, value, called func(parameter string) string) (Config, error) {
	cfg := Config{
		Endpoints: endpoints, Database: database, ClusterID: value("cluster-id"),
		TLSFiles: TLSFiles{CA: value("tls-ca"), Cert: value("tls-cert"), Key: value("tls-key")},
	}
	name := value("tls-server-name")
	switch on := value("tls") != "" || cfg.TLSFiles.CA != ""; {
	case on && cfg.TLSFiles.Cert != "" && cfg.TLSFiles.Key == "":
		return cfg, fmt.Errorf("%s needs %s", called("tls-cert"), called("tls-key"))
	case on && cfg.TLSFiles.Cert == "" && cfg.TLSFiles.Key != "":
		return cfg, fmt.Errorf("%s needs %s", called("tls-key"), called("tls-cert"))
	case on:
		cfg.TLS = &tls.Config{ServerName: name}
	case name != "" || cfg.TLSFiles != TLSFiles{}:
		return cfg, fmt.Errorf("the TLS settings need %s", called("tls-ca"))
	}
	if _, err := docid.ParseDatabase(database); err != nil {
		return cfg, fmt.Errorf("%s: %w", called("database"), invalid(err))
	}
	if err := cfg.checkClusters(); err != nil {
		return cfg, fmt.Errorf("%s: %w", called("endpoints"), err)
	}
	return cfg, nil
}
