package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const deploy = "../../deploy/"

// TestChartIsTheManifests: with its own values the chart makes what deploy/kubernetes has,
// but for the namespace, which Helm makes.
func TestChartIsTheManifests(t *testing.T) {
	text, err := render(deploy+"helm/idnode", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, want := objects(t, text), make(map[string]any)
	for _, pattern := range []string{"kubernetes/*.yaml", "kubernetes/cert-manager/*.yaml"} {
		files, err := filepath.Glob(deploy + pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for key, object := range objects(t, string(text)) {
				want[key] = object
			}
		}
	}
	delete(want, "Namespace idnode")
	claim := got["PersistentVolumeClaim idnode-backup"].(map[string]any)["metadata"].(map[string]any)
	if fmt.Sprint(claim["annotations"]) != "map[helm.sh/resource-policy:keep]" {
		t.Error("Helm deletes the backups with the release")
	}
	delete(claim, "annotations") // For Helm alone.
	for key, object := range want {
		if !reflect.DeepEqual(got[key], object) {
			t.Errorf("%s: the chart has %v, the manifests %v", key, got[key], object)
		}
	}
	for key := range got {
		if want[key] == nil {
			t.Errorf("%s is in the chart alone", key)
		}
	}
}

// TestNullIsNoNode: a null may be left of a node that the chart does not have by itself, after --reuse-values too.
func TestNullIsNoNode(t *testing.T) {
	for nulls, same := range map[string]string{
		"nodes: {D: null}":          "",
		"nodes: {B: null, D: null}": "nodes: {B: null}",
	} {
		got, err := render(deploy+"helm/idnode", []byte(nulls))
		if err != nil {
			t.Fatalf("%s: %v", nulls, err)
		}
		want, err := render(deploy+"helm/idnode", []byte(same))
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s makes\n%s\nwant\n%s", nulls, got, want)
		}
	}
}

// TestNewNodesAskThoseThereAre: the first ones may all have been replaced.
func TestNewNodesAskThoseThereAre(t *testing.T) {
	text, err := render(deploy+"helm/idnode", []byte("nodes: {A: null, B: null, C: null, D: {}, E: {joinToken: x}, F: null}"))
	if err != nil {
		t.Fatal(err)
	}
	settings := objects(t, text)["ConfigMap idnode"].(map[string]any)["data"].(map[string]any)["idnode.yaml"].(map[string]any)
	want := []any{"idnode-d-0.idnode-nodes.idnode.svc:7400", "idnode-e-0.idnode-nodes.idnode.svc:7400"}
	if !reflect.DeepEqual(settings["join"], want) || len(settings["peer"].(map[string]any)) != 3 {
		t.Errorf("join is %v, want %v; peer is %v", settings["join"], want, settings["peer"])
	}
}

// TestRecoveryAsksTheMembers: the pod that recovers reaches what would tell it that the cluster lives.
func TestRecoveryAsksTheMembers(t *testing.T) {
	text, err := os.ReadFile(deploy + "kubernetes/recover/pod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	labels := objects(t, string(text))["Pod recover"].(map[string]any)["metadata"].(map[string]any)["labels"]
	policy, err := os.ReadFile(deploy + "kubernetes/network.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules := objects(t, string(policy))["NetworkPolicy idnode"].(map[string]any)["spec"].(map[string]any)["ingress"]
	for _, rule := range rules.([]any) {
		text := fmt.Sprint(rule)
		if strings.Contains(text, fmt.Sprintf("map[podSelector:map[matchLabels:%v]]", labels)) && strings.Contains(text, "port:grpc") {
			return
		}
	}
	t.Errorf("none of %v lets in %v", rules, labels)
}

// TestTheAuthorityKeepsItsKey when its certificate is renewed, and nobody else does: newer versions of
// cert-manager do otherwise where nothing is said.
func TestTheAuthorityKeepsItsKey(t *testing.T) {
	text, err := render(deploy+"helm/idnode", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, object := range objects(t, text) {
		spec, _ := object.(map[string]any)["spec"].(map[string]any)
		key, there := spec["privateKey"].(map[string]any)
		want := "Always"
		if spec["isCA"] == true {
			want = "Never"
		}
		if there && key["rotationPolicy"] != want {
			t.Errorf("%s: %v, want %s", name, key, want)
		}
	}
}

// TestRulesAreThoseOfPrometheus: the chart has no rules of its own.
func TestRulesAreThoseOfPrometheus(t *testing.T) {
	text, err := render(deploy+"helm/idnode", []byte("monitoring: {enabled: true}"))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile(deploy + "prometheus/idnode-alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var want any
	if err := yaml.Unmarshal(rules, &want); err != nil {
		t.Fatal(err)
	}
	object, _ := objects(t, text)["PrometheusRule idnode"].(map[string]any)
	if !reflect.DeepEqual(object["spec"], want) {
		t.Errorf("%v, want %v", object["spec"], want)
	}
}

// TestTLSIsOffOnlyWhereSaid, and then everywhere.
func TestTLSIsOffOnlyWhereSaid(t *testing.T) {
	text, err := render(deploy+"helm/idnode", []byte("tls: {enabled: false}\nmonitoring: {enabled: true}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"certs", "IDNODE_TLS", "cert-manager", "scheme: https", "admin:"} {
		if strings.Contains(text, word) {
			t.Errorf("%s is there", word)
		}
	}
	if !strings.Contains(text, "insecure: true") {
		t.Error("the nodes refuse to listen")
	}
}

// TestValuesThatAreNone are refused: with a slip in a name the chart would do as if nothing was said.
func TestValuesThatAreNone(t *testing.T) {
	for _, values := range []string{
		"tls: {enable: false}", "replicas: 5", "image: {repository: idnode, tag: v1}", "nodes: {a: {}}", "nodes: {RAFT: {}}",
		"nodes: {D: {token: x}}",
		"peers: [A, A]", "settings: {grpc: 0.0.0.0:1}", "backup: {keep: 0}", "networkPolicy: {enabled: true}",
	} {
		if _, err := render(deploy+"helm/idnode", []byte(values)); err == nil {
			t.Errorf("%s is taken", values)
		}
	}
}

// TestSettingsGoBeforeTheChartsOwn, each key once, also where they take something away.
func TestSettingsGoBeforeTheChartsOwn(t *testing.T) {
	text, err := render(deploy+"helm/idnode", []byte(`settings: {admin: [ops], audit: "", log-format: text, max-conns: 100000}`))
	if err != nil {
		t.Fatal(err)
	}
	settings := objects(t, text)["ConfigMap idnode"].(map[string]any)["data"].(map[string]any)["idnode.yaml"].(map[string]any)
	for key, want := range map[string]any{
		"admin": []any{"ops"}, "audit": "", "log-format": "text", "max-conns": 100000,
		"grpc": "0.0.0.0:7400",
	} {
		if !reflect.DeepEqual(settings[key], want) {
			t.Errorf("%s is %v, want %v", key, settings[key], want)
		}
	}
}

// TestPlacesAndSecrets: what a cluster of other people asks of pods, and no token but in a secret.
func TestPlacesAndSecrets(t *testing.T) {
	text, err := render(deploy+"helm/idnode", []byte(`
imagePullSecrets: [{name: registry}]
nodeSelector: {disk: ssd}
tolerations: [{key: ids, operator: Exists}]
env: [{name: OTEL_EXPORTER_OTLP_ENDPOINT, value: "http://collector:4318"}]
egress: [{ports: [{protocol: TCP, port: 4318}]}]
nodes: {D: {joinToken: hushed}, E: {joinTokenSecret: mine}}
`))
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, text)
	for key, words := range map[string]string{
		"StatefulSet idnode-a": "imagePullSecrets:[map[name:registry]] nodeSelector:map[disk:ssd] map[key:ids operator:Exists] " +
			"value:http://collector:4318",
		"CronJob idnode-backup": "imagePullSecrets:[map[name:registry]] nodeSelector:map[disk:ssd] map[key:ids operator:Exists]",
		"NetworkPolicy idnode":  "port:4318",
		"Secret idnode-d-token": "token:hushed",
		"StatefulSet idnode-d":  "optional:true secretName:idnode-d-token",
		"StatefulSet idnode-e":  "optional:true secretName:mine",
	} {
		object := fmt.Sprint(all[key])
		for _, word := range strings.SplitAfter(words, "] ") {
			if !strings.Contains(object, strings.TrimSpace(word)) {
				t.Errorf("%s has no %s", key, word)
			}
		}
	}
	delete(all, "Secret idnode-d-token")
	if strings.Contains(fmt.Sprint(all), "hushed") {
		t.Error("the token stands outside of its secret")
	}
}

// objects decodes the documents of a text, by kind and name. Settings in a text are
// compared as what they say, without comments.
func objects(t *testing.T, text string) map[string]any {
	t.Helper()
	all := make(map[string]any)
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var object map[string]any
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := object["data"].(map[string]any); ok {
			var settings any
			if err := yaml.Unmarshal([]byte(data["idnode.yaml"].(string)), &settings); err != nil {
				t.Fatal(err)
			}
			data["idnode.yaml"] = settings
		}
		all[object["kind"].(string)+" "+object["metadata"].(map[string]any)["name"].(string)] = object
	}
}
