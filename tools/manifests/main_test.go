package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const service = "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {ports: [{port: 1}]}\n"

func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"sound":             {service, ""},
		"two documents":     {service + "---\n" + service, ""},
		"a slip in a key":   {strings.Replace(service, "ports", "prots", 1), `unknown field "spec.prots"`},
		"in the second":     {service + "---\n" + strings.Replace(service, "port:", "prot:", 1), "unknown field"},
		"a text for number": {strings.Replace(service, "port: 1", "port: one", 1), "cannot unmarshal"},
		"a key twice":       {service + "kind: Service\n", "already"},
		"unknown kind":      {strings.Replace(service, "Service", "Servant", 1), "no kind"},
		"unknown version":   {strings.Replace(service, "v1", "v9", 1), "no kind"},
		"no name":           {strings.Replace(service, "name: x", "namespace: x", 1), "without a name"},
		"no YAML":           {"{", "error"},
	} {
		file := filepath.Join(t.TempDir(), "x.yaml")
		if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := run([]string{file})
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	if run(nil) == nil || run([]string{"none.yaml"}) == nil {
		t.Error("no file is no error")
	}
}

// TestRestricted: what the pods of deploy/kubernetes have is needed, each line.
func TestRestricted(t *testing.T) {
	for of, volume := range map[string]string{
		"node-a.yaml": "configMap: {name: idnode}",
		"backup.yaml": "persistentVolumeClaim: {claimName: idnode-backup}",
	} {
		whole, err := os.ReadFile(filepath.Join("../../deploy/kubernetes", of))
		if err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct{ without, with, want string }{
			{"", "", ""},
			{"allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "allowPrivilegeEscalation"},
			{"capabilities: {drop: [ALL]}", "capabilities: {}", "capabilities"},
			{"runAsNonRoot: true", "runAsNonRoot: false", "runAsNonRoot"},
			{"seccompProfile: {type: RuntimeDefault}", "seccompProfile: {type: Unconfined}", "seccomp"},
			{volume, "hostPath: {path: /etc}", "hostPath"},
		} {
			file := filepath.Join(t.TempDir(), "x.yaml")
			text := strings.Replace(string(whole), tc.without, tc.with, 1)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := run([]string{file})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s with %q: %v, want %q", of, tc.with, err, tc.want)
			}
		}
	}
}

// TestManual: the pod that the page of backups has made by hand can be made.
func TestManual(t *testing.T) {
	manual, err := os.ReadFile("../../docs/operate/backups.md")
	if err != nil {
		t.Fatal(err)
	}
	pods := strings.Split(string(manual), "create -f - <<EOF\n")[1:]
	if len(pods) == 0 {
		t.Error("no pod is made")
	}
	for _, pod := range pods {
		pod, _, _ = strings.Cut(pod, "\nEOF\n")
		file := filepath.Join(t.TempDir(), "pod.yaml")
		if err := os.WriteFile(file, []byte(pod), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run([]string{file}); err != nil {
			t.Error(err)
		}
	}
}
