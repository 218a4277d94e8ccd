package config_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/idnode/idnode/internal/config"
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
		SecretName  string   `yaml:"secretName"`
		DNSNames    []string `yaml:"dnsNames"`
		IPAddresses []string `yaml:"ipAddresses"`
		URIs        []string `yaml:"uris"`
		Usages      []string
		Ports       []port
		Template    struct{ Spec podSpec }
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
	Volumes []struct {
		Name      string
		Projected struct {
			Sources []struct {
				Secret struct {
					Name  string
					Items []struct{ Key, Path string }
				}
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

// podConfig is the configuration with which a pod of the StatefulSet starts.
func podConfig(t *testing.T, all map[string]manifest, pod string) *config.Config {
	t.Helper()
	container := all["StatefulSet idnode"].Spec.Template.Spec.Containers[0]
	expand := func(text string) string { return strings.ReplaceAll(text, "$(POD_NAME)", pod) }
	file := writeFile(t, all["ConfigMap idnode"].Data["idnode.yaml"])
	var flags, environ []string
	for _, arg := range container.Args[1:] {
		flags = append(flags, strings.ReplaceAll(expand(arg), "/etc/idnode/idnode.yaml", file))
	}
	for _, e := range container.Env {
		environ = append(environ, e.Name+"="+expand(e.Value))
	}
	config.SetHostname(t, pod)
	return mustLoad(t, flags, environ)
}

// TestKubernetesPods: each pod of the StatefulSet gets a configuration that is
// valid, its own tag and address, and a certificate that names both.
func TestKubernetesPods(t *testing.T) {
	all := manifests(t)
	set := all["StatefulSet idnode"].Spec
	if links := set.Template.Spec.EnableServiceLinks; links == nil || *links {
		t.Error("variables of services, such as IDNODE_PORT, would be taken for settings")
	}
	if args := set.Template.Spec.Containers[0].Args; args[0] != "serve" {
		t.Errorf("the pods run %q", args[0])
	}
	domain := set.ServiceName + "." + all["StatefulSet idnode"].Metadata.Namespace + ".svc"
	for i, tag := range []string{"A", "B", "C"}[:set.Replicas] {
		pod := "idnode-" + string(rune('0'+i))
		c := podConfig(t, all, pod)
		host := pod + "." + domain
		got := []any{c.Tag, c.AdvertiseGRPC, c.Peer[tag], c.AdvertiseRaft, c.AdvertiseHTTP, len(c.Peer), c.Join == nil}
		want := []any{tag, host + ":7400", host + ":7400", host + ":7401", host + ":7402", set.Replicas, true}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pod, diff)
		}
		if service := "idnode." + all["Service idnode"].Metadata.Namespace + ".svc"; !slices.Contains(c.HTTPHost, service) {
			t.Errorf("%s: without TLS it would not be called as %s, only as %q", pod, service, c.HTTPHost)
		}
		checkCertificate(t, all, pod, tag, host, c)
	}
}

// checkCertificate checks that the pod's certificate is mounted where the
// configuration looks for it, and that it has the names that others ask for.
func checkCertificate(t *testing.T, all map[string]manifest, pod, tag, host string, c *config.Config) {
	t.Helper()
	mounted := make(map[string]string)
	for _, v := range all["StatefulSet idnode"].Spec.Template.Spec.Volumes {
		for _, source := range v.Projected.Sources {
			for _, item := range source.Secret.Items {
				mounted["/certs/"+item.Path] = source.Secret.Name + " " + item.Key
			}
		}
	}
	secret := pod + "-tls"
	for path, want := range map[string]string{c.TLSCert: secret + " tls.crt", c.TLSKey: secret + " tls.key"} {
		if mounted[path] != want {
			t.Errorf("%s has %q in %s, want %q", pod, mounted[path], path, want)
		}
	}
	if !strings.HasSuffix(mounted[c.TLSCA], " ca.crt") {
		t.Errorf("%s has %q in %s", pod, mounted[c.TLSCA], c.TLSCA)
	}
	certificate := all["Certificate "+pod].Spec
	if !slices.Equal(certificate.URIs, []string{"idnode://*/node/" + tag}) || !slices.Equal(certificate.Usages, []string{"server auth", "client auth"}) {
		t.Errorf("the certificate of %s, which is %s, is no node's: %s for %s", pod, tag, certificate.URIs, certificate.Usages)
	}
	names := append(certificate.DNSNames, certificate.IPAddresses...)
	for _, name := range []string{tag, host, "localhost", "127.0.0.1", "idnode.idnode.svc"} {
		if !slices.Contains(names, name) || certificate.SecretName != secret {
			t.Errorf("the certificate %s (%s) of %s does not name %s", certificate.SecretName, names, pod, name)
		}
	}
}

// TestKubernetesLaterPod: a pod that was given a new tag joins.
func TestKubernetesLaterPod(t *testing.T) {
	all := manifests(t)
	settings := all["ConfigMap idnode"].Data
	settings["idnode.yaml"] = strings.Replace(settings["idnode.yaml"], "idnode-1: B", "idnode-1: D", 1)
	c := podConfig(t, all, "idnode-1")
	if c.Tag != "D" || c.Peer != nil || len(c.Join) != 3 {
		t.Errorf("tag %s, peers %v, joins %v", c.Tag, c.Peer, c.Join)
	}
}

// TestKubernetesPorts: services and containers have the ports that nodes listen on.
func TestKubernetesPorts(t *testing.T) {
	all := manifests(t)
	want := map[string]int{"grpc": 7400, "raft": 7401, "http": 7402}
	c := podConfig(t, all, "idnode-0")
	for name, listen := range map[string]string{"grpc": c.GRPC, "raft": c.Raft, "http": c.HTTP} {
		if !strings.HasSuffix(listen, ":"+[]string{"7400", "7401", "7402"}[want[name]-7400]) {
			t.Errorf("%s listens on %s", name, listen)
		}
	}
	for where, ports := range map[string][]port{
		"container": all["StatefulSet idnode"].Spec.Template.Spec.Containers[0].Ports,
		"nodes":     all["Service idnode-nodes"].Spec.Ports,
		"clients":   all["Service idnode"].Spec.Ports,
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
}

// TestSettingsFiles: the settings of the systemd unit are valid.
func TestSettingsFiles(t *testing.T) {
	c := mustLoad(t, []string{"--config", filepath.Join(deployed, "systemd", "idnode.yaml")}, nil)
	if c.Tag != "A" || c.DataDir != "/var/lib/idnode" || c.AdvertiseGRPC != c.Peer["A"] || !c.TLS() {
		t.Errorf("%+v", c)
	}
}
