package system

import (
	"context"
	"errors"
	"flag"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// etcdMember is one member of an etcd cluster, with etcd's own defaults, until
// ctx ends.
func etcdMember(ctx context.Context, args []string) error {
	cfg := embed.NewConfig()
	flags := flag.NewFlagSet("etcd-member", flag.ContinueOnError)
	flags.StringVar(&cfg.Name, "name", "", "name of the member")
	flags.StringVar(&cfg.Dir, "dir", "", "where its data are")
	flags.StringVar(&cfg.InitialCluster, "cluster", "", "name=URL of every member, with commas between")
	client := flags.String("client", "", "address for clients")
	peer := flags.String("peer", "", "address for the other members")
	if err := flags.Parse(args); err != nil {
		return err
	}
	cfg.ListenClientUrls = []url.URL{{Scheme: "http", Host: *client}}
	cfg.ListenPeerUrls = []url.URL{{Scheme: "http", Host: *peer}}
	cfg.AdvertiseClientUrls, cfg.AdvertisePeerUrls = cfg.ListenClientUrls, cfg.ListenPeerUrls
	// When it is stopped, etcd calls its closed listeners an error.
	cfg.LogLevel = "fatal"
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	defer server.Close()
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		return err
	case <-time.After(readyWithin):
		return errors.New("the etcd member does not serve")
	case <-ctx.Done():
		return nil
	}
	if err := sayReady(); err != nil {
		return err
	}
	select {
	case err := <-server.Err():
		return err
	case <-ctx.Done():
		return nil
	}
}
