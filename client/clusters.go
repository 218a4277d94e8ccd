package client

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/idnode/idnode/client/docid"
)

// Cluster is a further cluster of a Client, and its databases.
type Cluster struct {
	// Endpoints and ClusterID are as in Config.
	Endpoints []string
	ClusterID string
	// Databases are the cluster's databases; at least one.
	Databases []string
}

// clusters returns all clusters, that of Config.Endpoints first. White space around an
// endpoint, as after the comma of a list, is removed.
func (c Config) clusters() []Cluster {
	all := append([]Cluster{{Endpoints: c.Endpoints, ClusterID: c.ClusterID}}, c.Clusters...)
	for i := range all {
		all[i].Endpoints = slices.Clone(all[i].Endpoints)
		for k, e := range all[i].Endpoints {
			all[i].Endpoints[k] = strings.TrimSpace(e)
		}
	}
	return all
}

// checkClusters checks that clusters share no endpoints, cluster ids or databases: calls of
// one would go to the other.
func (c Config) checkClusters() error {
	endpoints, ids, databases := owners{}, owners{}, owners{}
	for i, cluster := range c.clusters() {
		at := "Config"
		if i > 0 {
			at = fmt.Sprintf("Clusters[%d]", i-1)
		}
		if len(cluster.Endpoints) == 0 {
			return fmt.Errorf("client: %s.Endpoints: no endpoints", at)
		}
		for k, e := range cluster.Endpoints {
			field := fmt.Sprintf("%s.Endpoints[%d]", at, k)
			if err := checkEndpoint(e); err != nil {
				return fmt.Errorf("client: %s: endpoint %q: %w", field, e, err)
			}
			if err := endpoints.add(e, at, field); err != nil {
				return err
			}
		}
		if cluster.ClusterID != "" {
			if err := ids.add(cluster.ClusterID, at, at+".ClusterID"); err != nil {
				return err
			}
		}
		if i > 0 && len(cluster.Databases) == 0 {
			return fmt.Errorf("client: %s.Databases: no databases", at)
		}
		for k, d := range cluster.Databases {
			field := fmt.Sprintf("%s.Databases[%d]", at, k)
			database, err := docid.ParseDatabase(d)
			if err != nil {
				return fmt.Errorf("client: %s: %w", field, invalid(err))
			}
			if err := databases.add(docid.Fold(database), field, field); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkEndpoint(e string) error {
	if strings.ContainsFunc(e, unicode.IsSpace) {
		return errors.New("a blank in an address")
	}
	_, port, err := net.SplitHostPort(e)
	if n, wrong := strconv.ParseUint(port, 10, 16); err == nil && (wrong != nil || n == 0) {
		err = errors.New("a port is 1 to 65535")
	}
	return err
}

// owners has the owner of each value.
type owners map[string]string

// add refuses a value that has another owner; field is where the value was set.
func (o owners) add(value, owner, field string) error {
	if other, ok := o[value]; ok && other != owner {
		return fmt.Errorf("client: %s: %q stands in %s already", field, value, other)
	}
	o[value] = owner
	return nil
}

// newRouters makes the routers of all clusters.
func (c *Client) newRouters() error {
	c.mapped = make(map[string]*router)
	secured, err := newSecured(c.cfg)
	if err != nil {
		return fmt.Errorf("client: Config.TLSFiles: %w", err)
	}
	for _, cluster := range c.cfg.clusters() {
		cfg := c.cfg
		cfg.Endpoints, cfg.ClusterID = cluster.Endpoints, cluster.ClusterID
		r, err := newRouter(cfg, secured)
		if err != nil {
			return err
		}
		c.routers = append(c.routers, r)
		for _, database := range cluster.Databases {
			database, _ = docid.ParseDatabase(database) // Validated before.
			c.mapped[docid.Fold(database)] = r
		}
	}
	return nil
}

// router returns the router of a database's cluster. An unmapped or invalid name goes to that
// of Config.Endpoints, which refuses an invalid one.
func (c *Client) router(database string) *router {
	if len(c.mapped) > 0 {
		database, _ = docid.ParseDatabase(database)
		if r := c.mapped[docid.Fold(database)]; r != nil {
			return r
		}
	}
	return c.routers[0]
}
