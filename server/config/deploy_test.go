package config_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/idnode/idnode/server/config"
)

// deployed is where the files for operators are.
const deployed = "../../deploy"

// manifest is the part of a Kubernetes object that is looked at here; that there
// is nothing else which should not be there is for tools/manifests to say.
type manifest struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Data     map[string]string
	Spec     struct {
		Replicas    int
		ServiceName string   `yaml:"serviceName"`
		ClusterIP   string   `yaml:"clusterIP"`
		NotReady    bool     `yaml:"publishNotReadyAddresses"`
		SecretName  string   `yaml:"secretName"`
		DNSNames    []string `yaml:"dnsNames"`
		IPAddresses []string `yaml:"ipAddresses"`
		URIs        []string `yaml:"uris"`
		Usages      []string
		Ports       []port
		Template    struct{ Spec podSpec }
		JobTemplate struct {
			Spec struct {
				Template struct {
					Metadata struct{ Labels map[string]string }
					Spec     podSpec
				}
			}
		} `yaml:"jobTemplate"`
		Ingress []struct {
			From []struct {
				PodSelector struct {
					MatchLabels map[string]string `yaml:"matchLabels"`
				} `yaml:"podSelector"`
			}
			Ports []struct{ Port string }
		}
	}
}

type port struct {
	Name          string
	Port          int
	ContainerPort int `yaml:"containerPort"`
}

type podSpec struct {
	EnableServiceLinks *bool `yaml:"enableServiceLinks"`
	Containers         []struct {
		Args  []string
		Env   []struct{ Name, Value string }
		Ports []port
	}
	Volumes []volume
}

type volume struct {
	Name   string
	Secret struct {
		SecretName string `yaml:"secretName"`
	}
	Projected struct {
		Sources []struct {
			Secret struct {
				Name  string
				Items []struct{ Key, Path string }
			}
		}
	}
}

// manifests returns the objects of deploy/kubernetes by kind and name.
func manifests(t *testing.T) map[string]manifest {
	t.Helper()
	all := make(map[string]manifest)
	for _, pattern := range []string{"kubernetes/*.yaml", "kubernetes/cert-manager/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(deployed, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			decoder := yaml.NewDecoder(bytes.NewReader(text))
			for {
				var m manifest
				if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				all[m.Kind+" "+m.Metadata.Name] = m
			}
		}
	}
	return all
}

// set is the StatefulSet of the node with this tag.
func set(all map[string]manifest, tag string) manifest {
	return all["StatefulSet idnode-"+strings.ToLower(tag)]
}

// podConfig is the configuration with which the pod of a node starts.
func podConfig(t *testing.T, all map[string]manifest, tag string) *config.Config {
	t.Helper()
	container := set(all, tag).Spec.Template.Spec.Containers[0]
	pod := set(all, tag).Metadata.Name + "-0"
	expand := func(text string) string { return strings.ReplaceAll(text, "$(POD_NAME)", pod) }
	file := writeFile(t, all["ConfigMap idnode"].Data["idnode.yaml"])
	var flags, environ []string
	for _, arg := range container.Args[1:] {
		flags = append(flags, strings.ReplaceAll(expand(arg), "/etc/idnode/idnode.yaml", file))
	}
	for _, e := range container.Env {
		environ = append(environ, e.Name+"="+expand(e.Value))
	}
	return mustLoad(t, flags, environ)
}

// TestKubernetesPods: the pod of each node gets a configuration that is valid and
// guarded, its own tag and address, and a certificate that names both.
func TestKubernetesPods(t *testing.T) {
	all := manifests(t)
	for _, tag := range []string{"A", "B", "C"} {
		spec := set(all, tag).Spec
		if links := spec.Template.Spec.EnableServiceLinks; links == nil || *links {
			t.Error("variables of services, such as IDNODE_PORT, would be taken for settings")
		}
		if args := spec.Template.Spec.Containers[0].Args; args[0] != "serve" {
			t.Errorf("the pods run %q", args[0])
		}
		pod := set(all, tag).Metadata.Name + "-0"
		c := podConfig(t, all, tag)
		host := pod + "." + spec.ServiceName + "." + set(all, tag).Metadata.Namespace + ".svc"
		got := []any{
			c.Tag, c.AdvertiseGRPC, c.Peer[tag], c.AdvertiseRaft, c.AdvertiseHTTP, len(c.Peer), c.Join == nil, spec.Replicas,
			c.Audit != "", c.CheckFirstStart(),
		}
		want := []any{tag, host + ":7400", host + ":7400", host + ":7401", host + ":7402", 3, true, 1, true, nil}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pod, diff)
		}
		for _, service := range []string{"idnode.idnode.svc", "idnode-quorum.idnode.svc"} {
			if !slices.Contains(c.HTTPHost, service) {
				t.Errorf("%s: without TLS it would not be called as %s, only as %q", pod, service, c.HTTPHost)
			}
		}
		if names := all["Certificate idnode-client"].Spec.DNSNames; !slices.Equal(c.Admin, names) {
			t.Errorf("%s has the administrators %q, and the client is %q", pod, c.Admin, names)
		}
		checkCertificate(t, all, tag, host, c)
	}
}

// checkCertificate checks that the pod's certificate, and no other node's key, is mounted
// where the configuration looks for it, and that it has the names that others ask for.
func checkCertificate(t *testing.T, all map[string]manifest, tag, host string, c *config.Config) {
	t.Helper()
	name := set(all, tag).Metadata.Name
	secret := name + "-tls"
	var mounted []string
	for _, v := range set(all, tag).Spec.Template.Spec.Volumes {
		for _, source := range v.Projected.Sources {
			mounted = append(mounted, source.Secret.Name)
		}
		mounted = append(mounted, v.Secret.SecretName)
	}
	mounted = slices.DeleteFunc(mounted, func(secret string) bool { return secret == "" })
	if !slices.Equal(mounted, []string{secret}) {
		t.Errorf("%s mounts the secrets %q, want its own alone", name, mounted)
	}
	if files := []string{c.TLSCA, c.TLSCert, c.TLSKey}; !slices.Equal(files, []string{"/certs/ca.crt", "/certs/tls.crt", "/certs/tls.key"}) {
		t.Errorf("%s looks for %q", name, files)
	}
	certificate := all["Certificate "+name].Spec
	if !slices.Equal(certificate.URIs, []string{"idnode://*/node/" + tag}) ||
		!slices.Equal(certificate.Usages, []string{"server auth", "client auth"}) {
		t.Errorf("the certificate of %s is no node's: %s for %s", name, certificate.URIs, certificate.Usages)
	}
	names := append(certificate.DNSNames, certificate.IPAddresses...)
	for _, want := range []string{tag, host, "localhost", "127.0.0.1", "idnode.idnode.svc", "idnode-quorum.idnode.svc"} {
		if !slices.Contains(names, want) || certificate.SecretName != secret {
			t.Errorf("the certificate %s (%s) of %s does not name %s", certificate.SecretName, names, name, want)
		}
	}
}

// TestKubernetesNodesDifferInTheTagAlone, so that the file of a further node can be made
// of any; its pod joins.
func TestKubernetesNodesDifferInTheTagAlone(t *testing.T) {
	first, err := os.ReadFile(filepath.Join(deployed, "kubernetes", "node-a.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	further := func(tag string) string {
		return strings.NewReplacer("idnode-a", "idnode-"+strings.ToLower(tag), "--tag=A", "--tag="+tag, "# Node A",
			"# Node "+tag).Replace(string(first))
	}
	for _, tag := range []string{"B", "C"} {
		text, err := os.ReadFile(filepath.Join(deployed, "kubernetes", "node-"+strings.ToLower(tag)+".yaml"))
		if diff := cmp.Diff(further(tag), string(text)); err != nil || diff != "" {
			t.Errorf("node %s (-want +got): %v\n%s", tag, err, diff)
		}
	}
	all := manifests(t)
	var d manifest
	if err := yaml.Unmarshal([]byte(further("D")), &d); err != nil {
		t.Fatal(err)
	}
	all["StatefulSet idnode-d"] = d
	if c := podConfig(t, all, "D"); c.Tag != "D" || c.Peer != nil || len(c.Join) != 3 {
		t.Errorf("tag %s, peers %v, joins %v", c.Tag, c.Peer, c.Join)
	}
}

// TestKubernetesPorts: services and containers have the ports that nodes listen on.
func TestKubernetesPorts(t *testing.T) {
	all := manifests(t)
	want := map[string]int{"grpc": 7400, "raft": 7401, "http": 7402, "metrics": 7403}
	c := podConfig(t, all, "A")
	for name, listen := range map[string]string{"grpc": c.GRPC, "raft": c.Raft, "http": c.HTTP, "metrics": c.Metrics} {
		if !strings.HasSuffix(listen, ":"+[]string{"7400", "7401", "7402", "7403"}[want[name]-7400]) {
			t.Errorf("%s listens on %s", name, listen)
		}
	}
	for where, ports := range map[string][]port{
		"container": set(all, "A").Spec.Template.Spec.Containers[0].Ports,
		"nodes":     all["Service idnode-nodes"].Spec.Ports,
		"clients":   all["Service idnode"].Spec.Ports,
		"quorum":    all["Service idnode-quorum"].Spec.Ports,
	} {
		for _, p := range ports {
			if n := p.Port + p.ContainerPort; want[p.Name] != n {
				t.Errorf("%s: port %s is %d, want %d", where, p.Name, n, want[p.Name])
			}
		}
		if len(ports) < 2 {
			t.Errorf("%s: ports %v", where, ports)
		}
	}
	if all["Service idnode-nodes"].Spec.ClusterIP != "None" {
		t.Error("the service of the nodes is not headless")
	}
	// Without a quorum no node is ready, and all of them give ids that need none.
	for name, want := range map[string]bool{"idnode-nodes": true, "idnode": true, "idnode-quorum": false} {
		if all["Service "+name].Spec.NotReady != want {
			t.Errorf("the service %s has nodes that are not ready: %v", name, !want)
		}
	}
}

// TestKubernetesBackup: the scheduled backup asks the nodes where they are, with a
// certificate that there is, and is let in; and the services do not take it for a node.
func TestKubernetesBackup(t *testing.T) {
	all := manifests(t)
	pod := all["CronJob idnode-backup"].Spec.JobTemplate.Spec.Template
	environ := make(map[string]string)
	for _, e := range pod.Spec.Containers[0].Env {
		environ[e.Name] = e.Value
	}
	var nodes []string
	peers := podConfig(t, all, "A").Peer
	for _, tag := range slices.Sorted(maps.Keys(peers)) {
		nodes = append(nodes, peers[tag])
	}
	if got := environ["IDNODE_ENDPOINTS"]; got != strings.Join(nodes, ",") {
		t.Errorf("it asks %s, the nodes are %s", got, nodes)
	}
	for name, file := range map[string]string{"IDNODE_TLS_CA": "ca.crt", "IDNODE_TLS_CERT": "tls.crt", "IDNODE_TLS_KEY": "tls.key"} {
		if environ[name] != "/certs/"+file {
			t.Errorf("%s is %q", name, environ[name])
		}
	}
	secret := all["Certificate idnode-backup"].Spec.SecretName
	if !slices.ContainsFunc(pod.Spec.Volumes, func(v volume) bool { return v.Name == "certs" && v.Secret.SecretName == secret }) {
		t.Errorf("%v has no secret %s", pod.Spec.Volumes, secret)
	}
	label := pod.Metadata.Labels["app.kubernetes.io/name"]
	letIn := false
	for _, rule := range all["NetworkPolicy idnode"].Spec.Ingress {
		for _, from := range rule.From {
			letIn = letIn || from.PodSelector.MatchLabels["app.kubernetes.io/name"] == label && rule.Ports[0].Port == "grpc"
		}
	}
	if !letIn || label == "idnode" {
		t.Errorf("pods with the label %q are not let in, or are the nodes'", label)
	}
}

// TestSettingsFiles: the settings of the systemd unit are valid.
func TestSettingsFiles(t *testing.T) {
	c := mustLoad(t, []string{"--config", filepath.Join(deployed, "systemd", "idnode.yaml")}, nil)
	if err := c.CheckFirstStart(); err != nil || c.Audit != "/var/log/idnode/audit.log" {
		t.Errorf("it does not start, or records nothing (%s): %v", c.Audit, err)
	}
	if c.Tag != "A" || c.DataDir != "/var/lib/idnode" || c.AdvertiseGRPC != c.Peer["A"] || !c.TLS() {
		t.Errorf("%+v", c)
	}
}
